//! What the store in etcd does when members end, stop answering or forget old revisions.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use simshard_cluster::{
    EtcdKeyValues, KeyValueError, KeyValueStore, Outcome, Snapshot, Transaction, follow,
};
use simshard_testkit::{EtcdServer, free_addresses, until};
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

/// Longer than a member may be quiet before it is asked for a sign of life.
const QUIET: Duration = Duration::from_secs(3);

/// Shorter than the keep-alive of a connection takes.
const LONGEST_SILENCE: Duration = Duration::from_secs(6);

fn store(address: &str) -> EtcdKeyValues {
    EtcdKeyValues::at(address).unwrap()
}

fn put(value: &str) -> Transaction {
    Transaction::new().put("key", value)
}

async fn value(store: &EtcdKeyValues) -> Result<Option<String>, KeyValueError> {
    let snapshot = store.read("key").await?;
    Ok(snapshot.pairs.into_iter().next().map(|pair| pair.value))
}

async fn is_made(store: &EtcdKeyValues, transaction: &Transaction) -> bool {
    matches!(store.commit(transaction).await, Ok(Outcome::Committed(_)))
}

#[tokio::test]
async fn a_member_that_has_ended_is_left_for_the_next() {
    let etcd = EtcdServer::start();
    let ended = free_addresses(1)[0];
    let store = store(&format!("etcd://{ended},{}", etcd.address()));
    assert!(is_made(&store, &put("1")).await);
    assert_eq!(value(&store).await, Ok(Some("1".to_owned())));
}

#[tokio::test]
async fn a_member_that_does_not_answer_is_left_for_the_next() {
    let (hanging, etcd) = (EtcdServer::start(), EtcdServer::start());
    let store = store(&format!("etcd://{},{}", hanging.address(), etcd.address()));
    assert_eq!(value(&store).await, Ok(None));
    hanging.freeze();
    assert!(!is_made(&store, &put("1")).await);
    // The write did not go to the next one, which would have it twice if it were of the same cluster.
    assert_eq!(value(&store).await, Ok(None));
    assert!(is_made(&store, &put("2")).await);
}

/// A member that is frozen keeps its connections.
#[tokio::test]
async fn who_waits_for_changes_leaves_a_member_that_gives_no_sign_of_life() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    let newest = store.read("key").await.unwrap().revision;
    let mut waiting = pin!(store.changed("key", newest));
    assert!(timeout(QUIET, &mut waiting).await.is_err(), "it lives");
    etcd.freeze();
    let left = timeout(LONGEST_SILENCE, waiting).await.unwrap();
    assert!(matches!(left, Err(KeyValueError::Unreachable { .. })));
}

#[tokio::test]
async fn a_write_without_an_answer_may_have_been_made_and_a_read_has_failed() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    assert!(is_made(&store, &put("1")).await);
    etcd.freeze();
    let unanswered = store.commit(&put("2")).await;
    assert!(matches!(unanswered, Err(KeyValueError::Unknown { .. })));
    let unread = value(&store).await;
    assert!(matches!(unread, Err(KeyValueError::Unreachable { .. })));
    etcd.thaw();
    let found = value(&store).await.unwrap();
    assert!(found.is_some_and(|value| ["1", "2"].contains(&value.as_str())));
}

#[tokio::test]
async fn what_cannot_be_sent_has_not_been_made() {
    let mut etcd = EtcdServer::start();
    let store = store(&etcd.url());
    etcd.stop();
    let unsent = store.commit(&put("1")).await;
    assert!(
        matches!(unsent, Err(KeyValueError::Unreachable { .. })),
        "{unsent:?}"
    );
    etcd.restart();
    assert_eq!(value(&store).await, Ok(None));
}

#[tokio::test]
async fn a_follower_goes_on_after_a_restart() {
    let mut etcd = EtcdServer::start();
    let store = Arc::new(store(&etcd.url()));
    let (failures, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (Arc::clone(&failures), Arc::clone(&ends));
    let followed: Arc<dyn KeyValueStore> = Arc::<EtcdKeyValues>::clone(&store);
    let following = follow(followed, "key".to_owned(), move |turn| {
        let count = if turn.is_ok() { &counted.1 } else { &counted.0 };
        count.fetch_add(1, Ordering::Relaxed);
    });
    let mut receiver = following.await.unwrap();
    let has = |expected: &'static str| {
        move |snapshot: &Arc<Snapshot>| {
            let mut pairs = snapshot.pairs.iter();
            pairs.any(|pair| pair.value == expected)
        }
    };
    assert!(is_made(&store, &put("1")).await);
    receiver.wait_for(has("1")).await.unwrap();
    etcd.stop();
    until("a read fails", async || {
        failures.load(Ordering::Relaxed) > 0
    })
    .await;
    etcd.restart();
    until("a change is made", async || {
        is_made(&store, &put("2")).await
    })
    .await;
    receiver.wait_for(has("2")).await.unwrap();
    // Of a row of failures, the first alone is told, and the end.
    assert_eq!(failures.load(Ordering::Relaxed), 1);
    assert_eq!(ends.load(Ordering::Relaxed), 1);
}

/// etcd tells a watch that begins in the past late, by its tick of 100 ms.
#[tokio::test]
async fn a_follower_keeps_its_watch_from_change_to_change() {
    let etcd = EtcdServer::start();
    let store = Arc::new(store(&etcd.url()));
    let followed: Arc<dyn KeyValueStore> = Arc::<EtcdKeyValues>::clone(&store);
    let following = follow(followed, "key".to_owned(), |turn| turn.unwrap());
    let mut receiver = following.await.unwrap();
    for number in 1..=20 {
        // The first of two changes is told while the second is made.
        for part in ["a", "b"] {
            assert!(is_made(&store, &put(&format!("{number}{part}"))).await);
        }
        let last = format!("{number}b");
        let is_last = |snapshot: &Arc<Snapshot>| {
            let mut pairs = snapshot.pairs.iter();
            pairs.any(|pair| pair.value == last)
        };
        receiver.wait_for(is_last).await.unwrap();
    }
    let opened = etcd.counted("grpc_server_started_total{grpc_method=\"Watch\"");
    assert_eq!(opened, 1);
}

/// A request to forget all revisions before this one.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct CompactionRequest {
    #[prost(int64, tag = "1")]
    revision: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct CompactionResponse {}

#[tokio::test]
async fn who_waits_hears_of_a_change_that_etcd_has_forgotten() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    let before = store.read("key").await.unwrap().revision;
    for number in 0..3 {
        assert!(is_made(&store, &put(&number.to_string())).await);
    }
    assert!(is_made(&store, &Transaction::new().delete("key")).await);
    let newest = store.read("key").await.unwrap().revision;
    let endpoint = Endpoint::from_shared(format!("http://{}", etcd.address())).unwrap();
    let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
    grpc.ready().await.unwrap();
    let request = CompactionRequest {
        revision: newest.0.cast_signed(),
    };
    let codec = ProstCodec::<CompactionRequest, CompactionResponse>::default();
    let compact = PathAndQuery::from_static("/etcdserverpb.KV/Compact");
    let compacted = grpc.unary(tonic::Request::new(request), compact, codec);
    compacted.await.unwrap();
    let heard = store.changed("key", before).await.unwrap();
    assert_eq!(heard.pairs, []);
    assert!(heard.revision >= newest);
}
