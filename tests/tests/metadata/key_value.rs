//! The contract of `KeyValueStore`, run against every backend.
//!
//! A backend joins by a function that makes a pair of handles on one fresh store: the same object twice where handles
//! share memory, two openings where they do not.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use simshard_cluster::{
    EtcdKeyValues, FileKeyValues, KeyValueError, KeyValueStore, LeaseId, MAX_OPERATIONS,
    MemoryKeyValues, Outcome, Revision, Snapshot, Transaction, follow,
};
use simshard_testkit::EtcdServer;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a wait lasts that is then dropped.
const SHORT: Duration = Duration::from_millis(20);

/// Two handles on one store.
#[derive(Clone)]
struct Handles {
    here: Arc<dyn KeyValueStore>,
    there: Arc<dyn KeyValueStore>,
}

/// Runs the whole contract, each clause on a store of its own.
async fn keeps_the_contract<F: Future<Output = Handles>>(fresh: impl Fn() -> F) {
    a_fresh_store_is_empty(fresh().await).await;
    what_was_written_is_read_back_exactly(fresh().await).await;
    a_read_finds_the_keys_of_its_prefix_sorted(fresh().await).await;
    a_transaction_is_made_whole_or_not_at_all(fresh().await).await;
    each_condition_is_checked(fresh().await).await;
    of_concurrent_changes_on_one_state_one_is_made(fresh().await).await;
    revisions_grow_with_writes_only(fresh().await).await;
    who_waits_hears_of_each_kind_of_change(fresh().await).await;
    a_change_that_was_made_before_the_waiting_is_heard_of(fresh().await).await;
    waits_that_are_dropped_lose_no_change(fresh().await).await;
    a_follower_sees_the_last_state(fresh().await).await;
    followers_of_the_same_keys_see_every_last_state(fresh().await).await;
    a_lease_takes_its_keys_along_when_it_is_revoked(fresh().await).await;
    a_lease_that_is_not_kept_alive_ends(fresh().await).await;
    a_lease_that_is_kept_alive_lasts(fresh().await).await;
    nothing_is_put_under_a_lease_that_is_gone(fresh().await).await;
    a_transaction_may_be_as_large_as_promised(fresh().await).await;
}

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    keeps_the_contract(|| async {
        let store: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        Handles {
            here: Arc::clone(&store),
            there: store,
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_a_file_keeps_the_contract_through_two_instances() {
    let folder = tempfile::tempdir().unwrap();
    let stores = AtomicUsize::new(0);
    keeps_the_contract(|| async {
        let number = stores.fetch_add(1, Ordering::Relaxed);
        let path = folder.path().join(number.to_string());
        Handles {
            here: Arc::new(FileKeyValues::at(&path)),
            there: Arc::new(FileKeyValues::at(&path)),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_keeps_the_contract_through_two_connections() {
    let etcd = EtcdServer::start();
    let stores = AtomicUsize::new(0);
    keeps_the_contract(|| async {
        let number = stores.fetch_add(1, Ordering::Relaxed);
        let open = || EtcdKeyValues::at(&format!("{}/test-{number}", etcd.url())).unwrap();
        Handles {
            here: Arc::new(open()),
            there: Arc::new(open()),
        }
    })
    .await;
}

/// A write that meets no other.
async fn made(store: &Arc<dyn KeyValueStore>, transaction: Transaction) -> Revision {
    match store.commit(&transaction).await.unwrap() {
        Outcome::Committed(revision) => revision,
        Outcome::Conflict => panic!("{transaction:?} conflicts"),
    }
}

async fn put(store: &Arc<dyn KeyValueStore>, key: &str, value: &str) -> Revision {
    made(store, Transaction::new().put(key, value)).await
}

fn texts(snapshot: &Snapshot) -> Vec<(&str, &str)> {
    let pairs = snapshot.pairs.iter();
    pairs
        .map(|pair| (pair.key.as_str(), pair.value.as_str()))
        .collect()
}

/// Waits until the keys of a prefix are these.
async fn until(store: &Arc<dyn KeyValueStore>, prefix: &str, expected: &[(&str, &str)]) {
    let mut changes = store.changes(prefix);
    let mut snapshot = store.read(prefix).await.unwrap();
    while texts(&snapshot) != expected {
        snapshot = changes.next(snapshot.revision).await.unwrap();
    }
}

async fn a_fresh_store_is_empty(store: Handles) {
    assert_eq!(store.here.read("").await.unwrap().pairs, []);
}

/// KV1.
async fn what_was_written_is_read_back_exactly(store: Handles) {
    let odd = "\"odd\"\n\u{1f980}\0\t";
    let revision = put(&store.here, odd, odd).await;
    for handle in [&store.here, &store.there] {
        let found = handle.read("").await.unwrap();
        assert_eq!(texts(&found), [(odd, odd)]);
        assert_eq!(found.pairs[0].revision, revision);
        assert!(found.revision >= revision);
    }
    put(&store.there, odd, "").await;
    assert_eq!(texts(&store.here.read("").await.unwrap()), [(odd, "")]);
}

/// KV1.
async fn a_read_finds_the_keys_of_its_prefix_sorted(store: Handles) {
    let keys = ["a", "a/", "a/b", "a/a", "a0", "b", "a/\u{10ffff}"];
    let all = keys
        .iter()
        .fold(Transaction::new(), |all, key| all.put(*key, ""));
    made(&store.here, all).await;
    let found = |snapshot: Snapshot| -> Vec<String> {
        let pairs = snapshot.pairs.into_iter();
        pairs.map(|pair| pair.key).collect()
    };
    let read = |prefix| store.there.read(prefix);
    assert_eq!(
        found(read("a/").await.unwrap()),
        ["a/", "a/a", "a/b", "a/\u{10ffff}"]
    );
    assert_eq!(found(read("").await.unwrap()).len(), keys.len());
    assert_eq!(found(read("c").await.unwrap()).len(), 0);
}

/// KV2.
async fn a_transaction_is_made_whole_or_not_at_all(store: Handles) {
    let old = put(&store.here, "a", "1").await;
    let new = put(&store.here, "a", "2").await;
    let change = |revision| {
        Transaction::new()
            .if_unchanged("a", revision)
            .delete("a")
            .put("b", "3")
    };
    let late = store.there.commit(&change(old)).await.unwrap();
    assert_eq!(late, Outcome::Conflict);
    assert_eq!(texts(&store.here.read("").await.unwrap()), [("a", "2")]);
    made(&store.there, change(new)).await;
    assert_eq!(texts(&store.here.read("").await.unwrap()), [("b", "3")]);
}

/// KV2.
async fn each_condition_is_checked(store: Handles) {
    let revision = put(&store.here, "a", "1").await;
    let holds = |transaction: Transaction| {
        let store = Arc::clone(&store.there);
        async move { store.commit(&transaction).await.unwrap() != Outcome::Conflict }
    };
    let both = || {
        Transaction::new()
            .if_unchanged("a", revision)
            .if_absent("b")
    };
    assert!(holds(both()).await);
    assert!(!holds(both().if_absent("a")).await);
    assert!(!holds(both().if_unchanged("b", revision)).await);
    let later = Revision(revision.0 + 1);
    assert!(!holds(Transaction::new().if_unchanged("a", later)).await);
    made(&store.here, Transaction::new().delete("a")).await;
    assert!(!holds(both()).await);
    // A key that was written anew is another.
    put(&store.here, "a", "1").await;
    assert!(!holds(both()).await);
}

/// KV2.
async fn of_concurrent_changes_on_one_state_one_is_made(store: Handles) {
    let revision = put(&store.here, "counter", "0").await;
    let mut attempts = JoinSet::new();
    for number in 0..16 {
        let handle = if number % 2 == 0 {
            &store.here
        } else {
            &store.there
        };
        let handle = Arc::clone(handle);
        let change = Transaction::new()
            .if_unchanged("counter", revision)
            .put("counter", number.to_string())
            .put(format!("made/{number}"), "");
        attempts.spawn(async move { handle.commit(&change).await.unwrap() });
    }
    let outcomes = attempts.join_all().await;
    let made = outcomes
        .iter()
        .filter(|outcome| **outcome != Outcome::Conflict);
    assert_eq!(made.count(), 1);
    assert_eq!(store.here.read("made/").await.unwrap().pairs.len(), 1);
}

/// KV3.
async fn revisions_grow_with_writes_only(store: Handles) {
    let first = put(&store.here, "a", "1").await;
    let second = put(&store.here, "b", "1").await;
    assert!(second > first);
    let refused = Transaction::new().if_absent("a").put("a", "2");
    assert_eq!(
        store.here.commit(&refused).await.unwrap(),
        Outcome::Conflict
    );
    made(&store.here, Transaction::new().if_absent("c")).await;
    let found = store.there.read("").await.unwrap();
    assert_eq!(found.revision, second);
    let revisions: Vec<Revision> = found.pairs.iter().map(|pair| pair.revision).collect();
    assert_eq!(revisions, [first, second]);
}

/// KV4.
async fn who_waits_hears_of_each_kind_of_change(store: Handles) {
    let steps: [(Transaction, &[(&str, &str)]); 3] = [
        (Transaction::new().put("p/a", "1"), &[("p/a", "1")]),
        (Transaction::new().put("p/a", "2"), &[("p/a", "2")]),
        (Transaction::new().delete("p/a"), &[]),
    ];
    for (change, expected) in steps {
        let before = store.there.read("p/").await.unwrap();
        let waiting = Arc::clone(&store.there);
        let after = before.revision;
        let heard = tokio::spawn(async move {
            let mut changes = waiting.changes("p/");
            let mut snapshot = before;
            while snapshot.revision <= after {
                snapshot = changes.next(after).await.unwrap();
            }
            snapshot
        });
        made(&store.here, change).await;
        assert_eq!(texts(&heard.await.unwrap()), expected);
    }
}

/// KV4.
async fn a_change_that_was_made_before_the_waiting_is_heard_of(store: Handles) {
    put(&store.here, "p/a", "1").await;
    let before = store.there.read("p/").await.unwrap().revision;
    made(&store.here, Transaction::new().delete("p/a")).await;
    put(&store.here, "q", "1").await;
    let heard = store.there.changes("p/").next(before).await.unwrap();
    assert_eq!(heard.pairs, []);
    assert!(heard.revision > before);
}

/// KV4.
async fn waits_that_are_dropped_lose_no_change(store: Handles) {
    let mut changes = store.there.changes("p/");
    let mut seen = store.there.read("p/").await.unwrap();
    for value in ["1", "2"] {
        for _ in 0..3 {
            // It may come early, with what has not changed.
            if let Ok(early) = timeout(SHORT, changes.next(seen.revision)).await {
                seen = early.unwrap();
            }
        }
        put(&store.here, "p/a", value).await;
        let expected = [("p/a", value)];
        while texts(&seen) != expected {
            if let Ok(heard) = timeout(SHORT, changes.next(seen.revision)).await {
                seen = heard.unwrap();
            }
        }
    }
}

/// KV4.
async fn followers_of_the_same_keys_see_every_last_state(store: Handles) {
    let on_turn = |turn: Result<(), &KeyValueError>| panic!("{turn:?}");
    let follow_them = || follow(Arc::clone(&store.there), "p/".to_owned(), on_turn);
    let mut receivers = [follow_them().await.unwrap(), follow_them().await.unwrap()];
    for number in 0..20 {
        let value = number.to_string();
        put(&store.here, "p/a", &value).await;
        for receiver in &mut receivers {
            let is_last = |snapshot: &Arc<Snapshot>| texts(snapshot) == [("p/a", &*value)];
            receiver.wait_for(is_last).await.unwrap();
        }
    }
}

/// KV4.
async fn a_follower_sees_the_last_state(store: Handles) {
    let on_turn = |turn: Result<(), &KeyValueError>| panic!("{turn:?}");
    let following = follow(Arc::clone(&store.there), "p/".to_owned(), on_turn);
    let mut receiver = following.await.unwrap();
    for number in 0..20 {
        put(&store.here, "p/a", &number.to_string()).await;
    }
    made(&store.here, Transaction::new().put("p/b", "last")).await;
    let is_last = |snapshot: &Arc<Snapshot>| texts(snapshot) == [("p/a", "19"), ("p/b", "last")];
    receiver.wait_for(is_last).await.unwrap();
}

/// KV5.
async fn a_lease_takes_its_keys_along_when_it_is_revoked(store: Handles) {
    let lease = store.here.grant(Duration::from_secs(60)).await.unwrap();
    let both = Transaction::new()
        .put_leased("a", "1", lease)
        .put_leased("b", "1", lease)
        .put("c", "1");
    made(&store.there, both).await;
    store.there.revoke(lease).await.unwrap();
    assert_eq!(texts(&store.here.read("").await.unwrap()), [("c", "1")]);
    store.here.revoke(lease).await.unwrap();
}

/// KV5. Stores raise the time to a few seconds.
async fn a_lease_that_is_not_kept_alive_ends(store: Handles) {
    let lease = store.here.grant(Duration::from_secs(1)).await.unwrap();
    made(&store.here, Transaction::new().put_leased("a", "1", lease)).await;
    until(&store.there, "", &[]).await;
    assert_eq!(
        store.here.keep_alive(lease).await,
        Err(KeyValueError::NoLease)
    );
}

/// KV5. A lease of the same length that is not kept alive tells the time.
async fn a_lease_that_is_kept_alive_lasts(store: Handles) {
    let time_to_live = Duration::from_secs(2);
    let kept = store.here.grant(time_to_live).await.unwrap();
    made(&store.here, Transaction::new().put_leased("kept", "", kept)).await;
    let left = store.here.grant(time_to_live).await.unwrap();
    made(&store.here, Transaction::new().put_leased("left", "", left)).await;
    while !store.there.read("left").await.unwrap().pairs.is_empty() {
        store.there.keep_alive(kept).await.unwrap();
    }
    assert_eq!(texts(&store.here.read("").await.unwrap()), [("kept", "")]);
    store.here.revoke(kept).await.unwrap();
}

/// KV5.
async fn nothing_is_put_under_a_lease_that_is_gone(store: Handles) {
    let under = |lease| Transaction::new().put("b", "").put_leased("a", "1", lease);
    let gone = store.here.grant(Duration::from_secs(60)).await.unwrap();
    store.here.revoke(gone).await.unwrap();
    for lease in [gone, LeaseId(i64::MAX)] {
        let refusal = store.there.commit(&under(lease)).await;
        assert_eq!(refusal, Err(KeyValueError::NoLease));
    }
    assert_eq!(store.here.read("").await.unwrap().pairs, []);
}

async fn a_transaction_may_be_as_large_as_promised(store: Handles) {
    let keys = || (0..MAX_OPERATIONS).map(|number| format!("shards/{number:03}"));
    let value = "x".repeat(1_000);
    let all = keys().fold(Transaction::new(), |all, key| {
        all.if_absent(key.clone()).put(key, &*value)
    });
    made(&store.here, all).await;
    let found = store.there.read("shards/").await.unwrap();
    assert_eq!(found.pairs.len(), MAX_OPERATIONS);
}
