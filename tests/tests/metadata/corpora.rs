//! The contract of `MetadataStore`, run against every backend.
//!
//! A backend joins by a function that makes a pair of handles on one fresh store:
//! the same object twice where handles share memory, two openings of the same files
//! or endpoints where they do not.

use std::future::Future;
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use simshard_cluster::{
    ClusterLayout, CorpusName, CorpusRecord, CorpusState, CorpusUid, FileStore, KeyValueMetadata,
    KeyValueStore, MemoryKeyValues, MemoryStore, MetadataError, MetadataStore, Node, key_values_at,
    random_corpus_uid,
};
use simshard_testkit::EtcdServer;
use simshard_topology::NodeId;

/// Two handles on one store.
#[derive(Clone)]
struct Handles {
    here: Arc<dyn MetadataStore>,
    there: Arc<dyn MetadataStore>,
}

/// Runs the whole contract, each clause on a store of its own.
async fn keeps_the_contract<F: Future<Output = Handles>>(fresh: impl Fn() -> F) {
    a_fresh_store_has_no_corpora(fresh().await).await;
    the_layout_is_the_same_by_read_and_by_watch(fresh().await).await;
    a_created_corpus_is_read_back_exactly(fresh().await).await;
    corpora_are_sorted_by_name(fresh().await).await;
    a_taken_name_is_refused_and_keeps_its_corpus(fresh().await).await;
    of_concurrent_creations_exactly_one_wins(fresh().await).await;
    concurrent_creations_of_different_names_all_succeed(fresh().await).await;
    a_uid_that_another_corpus_has_is_refused(fresh().await).await;
    there_are_never_more_corpora_than_allowed(fresh().await).await;
    only_the_matching_uid_deletes(fresh().await).await;
    only_a_deletion_that_has_begun_is_finished(fresh().await).await;
    a_name_is_taken_from_the_beginning_of_its_creation(fresh().await).await;
    of_concurrent_completions_of_a_creation_one_succeeds(fresh().await).await;
    a_creation_can_be_deleted_before_it_is_finished(fresh().await).await;
    a_creation_goes_on_with_the_same_configuration_only(fresh().await).await;
    a_name_is_taken_until_its_deletion_is_finished(fresh().await).await;
    a_deleted_name_is_free_again(fresh().await).await;
    of_concurrent_deletions_all_begin_and_one_finishes(fresh().await).await;
    the_revision_counts_changes_and_nothing_else(fresh().await).await;
}

#[tokio::test]
async fn the_memory_store_keeps_the_contract() {
    keeps_the_contract(|| async {
        let store: Arc<dyn MetadataStore> = Arc::new(MemoryStore::new(layout()));
        Handles {
            here: Arc::clone(&store),
            there: store,
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_store_keeps_the_contract_through_two_instances() {
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(|| async {
        let cluster = tempfile::tempdir_in(folder.path()).unwrap().keep();
        let path = cluster.join("cluster.toml");
        std::fs::write(&path, LAYOUT_FILE).unwrap();
        Handles {
            here: open(&path).await,
            there: open(&path).await,
        }
    })
    .await;
}

/// KM1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_of_key_values_keeps_the_contract() {
    keeps_the_contract(|| async {
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let open = || KeyValueMetadata::with_layout(Arc::new(layout()), Arc::clone(&keys));
        Handles {
            here: Arc::new(open()),
            there: Arc::new(open()),
        }
    })
    .await;
}

/// KM1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpora_in_etcd_keep_the_contract_through_two_connections() {
    let etcd = EtcdServer::start();
    let stores = AtomicUsize::new(0);
    keeps_the_contract(|| async {
        let number = stores.fetch_add(1, Ordering::Relaxed);
        let address = format!("{}/test-{number}", etcd.url());
        let open =
            || KeyValueMetadata::with_layout(Arc::new(layout()), key_values_at(&address).unwrap());
        Handles {
            here: Arc::new(open()),
            there: Arc::new(open()),
        }
    })
    .await;
}

/// `layout()` as a file.
const LAYOUT_FILE: &str = r#"
[[nodes]]
name = "n1"
address = "http://127.0.0.1:7470"

[[nodes]]
name = "n2"
address = "http://127.0.0.1:7472"
"#;

fn layout() -> ClusterLayout {
    let node = |name: &str, port: u16| Node {
        id: NodeId::new(name).unwrap(),
        address: format!("http://127.0.0.1:{port}"),
    };
    ClusterLayout::planned(vec![node("n1", 7470), node("n2", 7472)], 1).unwrap()
}

async fn open(path: &Path) -> Arc<dyn MetadataStore> {
    Arc::new(FileStore::open(path).await.unwrap())
}

fn name(name: &str) -> CorpusName {
    CorpusName::new(name).unwrap()
}

/// A corpus of this name with a uid of its own.
fn corpus(text: &str) -> CorpusRecord {
    CorpusRecord {
        name: name(text),
        uid: random_corpus_uid(),
        blocks: 5,
        distance: 3,
        recipe: "words-v1".to_owned(),
        create_time: SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789),
        state: CorpusState::Live,
    }
}

/// More corpora than any test makes.
const MOST_CORPORA: usize = 1_000;

impl Handles {
    /// The two in turn.
    fn of(&self, number: usize) -> Arc<dyn MetadataStore> {
        match number % 2 {
            0 => Arc::clone(&self.here),
            _ => Arc::clone(&self.there),
        }
    }
}

async fn create(store: &Arc<dyn MetadataStore>, record: &CorpusRecord) {
    store
        .create_corpus(record.clone(), MOST_CORPORA)
        .await
        .unwrap();
}

async fn records(store: &Arc<dyn MetadataStore>) -> Vec<CorpusRecord> {
    store.corpora().await.unwrap().records().cloned().collect()
}

async fn revision(store: &Arc<dyn MetadataStore>) -> u64 {
    store.corpora().await.unwrap().revision()
}

/// MS6.
async fn a_fresh_store_has_no_corpora(store: Handles) {
    let corpora = store.here.corpora().await.unwrap();
    assert!(corpora.is_empty());
    assert_eq!(corpora.revision(), 0);
    assert_eq!(store.here.corpus(&name("default")).await.unwrap(), None);
}

/// MS5.
async fn the_layout_is_the_same_by_read_and_by_watch(store: Handles) {
    let read = store.here.layout().await.unwrap();
    assert_eq!(*read, layout());
    assert_eq!(*store.there.layout().await.unwrap(), *read);
    let watch = store.there.watch_layout();
    assert_eq!(**watch.borrow(), *read);
    assert!(
        !watch.has_changed().unwrap(),
        "the watch must be open and quiet"
    );
}

/// MS4.
async fn a_created_corpus_is_read_back_exactly(store: Handles) {
    let record = CorpusRecord {
        blocks: u32::MAX,
        distance: 0,
        recipe: "\"odd\"\n# recipe \u{1f980}".to_owned(),
        create_time: SystemTime::UNIX_EPOCH - Duration::from_millis(250),
        ..corpus("odd")
    };
    create(&store.here, &record).await;
    for handle in [&store.here, &store.there] {
        let found = handle.corpus(&record.name).await.unwrap();
        assert_eq!(found, Some(record.clone()));
        assert_eq!(records(handle).await, slice::from_ref(&record));
        assert_eq!(handle.corpus(&name("od")).await.unwrap(), None);
    }
}

/// MS1.
async fn corpora_are_sorted_by_name(store: Handles) {
    for text in ["b", "a.b", "a", "a-b", "10", "9"] {
        create(&store.here, &corpus(text)).await;
    }
    let corpora = store.there.corpora().await.unwrap();
    assert_eq!(corpora.len(), 6);
    let names: Vec<&str> = corpora.records().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["10", "9", "a", "a-b", "a.b", "b"]);
}

/// MS1.
async fn a_taken_name_is_refused_and_keeps_its_corpus(store: Handles) {
    let (first, second) = (corpus("default"), corpus("default"));
    create(&store.here, &first).await;
    // Even where no corpus may be made at all, the better reason is given.
    for most in [MOST_CORPORA, 1, 0] {
        let refusal = store.there.create_corpus(second.clone(), most).await;
        let Err(MetadataError::AlreadyExists { name, uid, state }) = refusal else {
            panic!("{refusal:?}");
        };
        assert_eq!((&name, uid), (&first.name, first.uid));
        assert_eq!(state, CorpusState::Live);
    }
    assert_eq!(records(&store.here).await, [first]);
}

/// MS1.
async fn a_uid_that_another_corpus_has_is_refused(store: Handles) {
    let first = corpus("first");
    create(&store.here, &first).await;
    let second = CorpusRecord {
        uid: first.uid,
        ..corpus("second")
    };
    let refusal = store.there.create_corpus(second, MOST_CORPORA).await;
    let Err(MetadataError::UidTaken { uid, name }) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!((uid, &name), (first.uid, &first.name));
    assert_eq!(records(&store.here).await, [first]);
}

/// MS8.
async fn there_are_never_more_corpora_than_allowed(store: Handles) {
    let mut attempts = tokio::task::JoinSet::new();
    for number in 0..16 {
        let handle = store.of(number);
        let record = corpus(&format!("c{number}"));
        attempts.spawn(async move { handle.create_corpus(record, 5).await });
    }
    let mut refused = 0;
    for result in attempts.join_all().await {
        match result {
            Ok(_) => {}
            Err(MetadataError::TooMany { max_corpora: 5 }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 11);
    let corpora = records(&store.here).await;
    assert_eq!(corpora.len(), 5);
    // One that is being deleted counts until it is gone.
    let gone = &corpora[0];
    let begun = store.here.begin_deletion(&gone.name, &gone.uid).await;
    begun.unwrap();
    let refusal = store.there.create_corpus(corpus("new"), 5).await;
    assert!(matches!(refusal, Err(MetadataError::TooMany { .. })));
    let finished = store.here.finish_deletion(&gone.name, &gone.uid).await;
    finished.unwrap();
    store.there.create_corpus(corpus("new"), 5).await.unwrap();
}

/// MS2.
async fn of_concurrent_creations_exactly_one_wins(store: Handles) {
    let mut attempts = tokio::task::JoinSet::new();
    for round in 0..16 {
        let handle = store.of(round);
        let record = corpus("contested");
        attempts
            .spawn(async move { (record.uid, handle.create_corpus(record, MOST_CORPORA).await) });
    }
    let mut winners = Vec::new();
    let mut told = Vec::new();
    for (uid, result) in attempts.join_all().await {
        match result {
            Ok(_) => winners.push(uid),
            Err(MetadataError::AlreadyExists { uid, .. }) => told.push(uid),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(told, [winners[0]; 15], "losers must be told the winner");
    let found = store.here.corpus(&name("contested")).await.unwrap();
    assert_eq!(found.unwrap().uid, winners[0]);
}

/// MS4: no creation overwrites another with a stale copy of the whole.
async fn concurrent_creations_of_different_names_all_succeed(store: Handles) {
    let mut attempts = tokio::task::JoinSet::new();
    for number in 0..16 {
        let handle = store.of(number);
        let record = corpus(&format!("c{number}"));
        attempts.spawn(async move { handle.create_corpus(record, MOST_CORPORA).await });
    }
    for result in attempts.join_all().await {
        result.unwrap();
    }
    assert_eq!(records(&store.here).await.len(), 16);
}

/// MS3.
async fn only_the_matching_uid_deletes(store: Handles) {
    let record = corpus("default");
    create(&store.here, &record).await;
    let wrong = [
        (record.name.clone(), random_corpus_uid()),
        (name("absent"), record.uid),
    ];
    for (wrong_name, wrong_uid) in &wrong {
        let refusal = store.there.begin_deletion(wrong_name, wrong_uid).await;
        assert_not_found(refusal, wrong_name, wrong_uid);
    }
    assert_eq!(records(&store.here).await, slice::from_ref(&record));
    let begun = store.there.begin_deletion(&record.name, &record.uid).await;
    begun.unwrap();
    for (wrong_name, wrong_uid) in &wrong {
        let refusal = store.there.finish_deletion(wrong_name, wrong_uid).await;
        assert_not_found(refusal, wrong_name, wrong_uid);
    }
    let deleting = CorpusRecord {
        state: CorpusState::Deleting,
        ..record.clone()
    };
    assert_eq!(records(&store.here).await, [deleting]);
    let finished = store.here.finish_deletion(&record.name, &record.uid).await;
    finished.unwrap();
    assert_eq!(records(&store.there).await, []);
}

fn assert_not_found(refusal: Result<(), MetadataError>, name: &CorpusName, uid: &CorpusUid) {
    match refusal {
        Err(MetadataError::NotFound {
            name: told,
            uid: told_uid,
        }) => assert_eq!((&told, &told_uid), (name, uid)),
        other => panic!("{other:?}"),
    }
}

/// MS7.
async fn only_a_deletion_that_has_begun_is_finished(store: Handles) {
    let record = corpus("default");
    create(&store.here, &record).await;
    let refusal = store.there.finish_deletion(&record.name, &record.uid).await;
    let Err(MetadataError::NotDeleting { name }) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(name, record.name);
    assert_eq!(records(&store.here).await, [record]);
}

/// A corpus of this name whose creation has begun.
async fn begin(store: &Arc<dyn MetadataStore>, name: &str) -> CorpusRecord {
    let record = CorpusRecord {
        state: CorpusState::Creating,
        ..corpus(name)
    };
    create(store, &record).await;
    record
}

/// MS6, MS7.
async fn a_name_is_taken_from_the_beginning_of_its_creation(store: Handles) {
    let record = begin(&store.here, "default").await;
    assert_eq!(records(&store.there).await, slice::from_ref(&record));
    let refusal = store
        .there
        .create_corpus(corpus("default"), MOST_CORPORA)
        .await;
    assert_taken(refusal, &record, CorpusState::Creating);
    let other = random_corpus_uid();
    let refusal = store.there.finish_creation(&record.name, &other).await;
    assert_not_found(refusal, &record.name, &other);
    assert_eq!(revision(&store.here).await, 1);
    let finished = store.there.finish_creation(&record.name, &record.uid).await;
    finished.unwrap();
    assert_eq!(revision(&store.here).await, 2);
    let live = CorpusRecord {
        state: CorpusState::Live,
        ..record
    };
    assert_eq!(records(&store.here).await, [live]);
}

/// MS7.
async fn of_concurrent_completions_of_a_creation_one_succeeds(store: Handles) {
    let record = begin(&store.here, "default").await;
    let (here, there) = tokio::join!(
        store.here.finish_creation(&record.name, &record.uid),
        store.there.finish_creation(&record.name, &record.uid),
    );
    assert_ne!(here.is_ok(), there.is_ok());
    assert_taken(here.and(there), &record, CorpusState::Live);
    assert_eq!(revision(&store.here).await, 2);
}

/// MS7.
async fn a_creation_can_be_deleted_before_it_is_finished(store: Handles) {
    let record = begin(&store.here, "default").await;
    let begun = store.there.begin_deletion(&record.name, &record.uid).await;
    begun.unwrap();
    let refusal = store.here.finish_creation(&record.name, &record.uid).await;
    assert_taken(refusal, &record, CorpusState::Deleting);
    let finished = store.here.finish_deletion(&record.name, &record.uid).await;
    finished.unwrap();
    let late = store.there.finish_creation(&record.name, &record.uid).await;
    assert_not_found(late, &record.name, &record.uid);
    assert_eq!(records(&store.here).await, []);
}

/// MS6, MS7.
async fn a_creation_goes_on_with_the_same_configuration_only(store: Handles) {
    let begun = begin(&store.here, "default").await;
    let again = |change: fn(&mut CorpusRecord)| {
        let mut record = CorpusRecord {
            state: CorpusState::Creating,
            ..corpus("default")
        };
        change(&mut record);
        store.there.create_corpus(record, 1)
    };
    let same = again(|_| {}).await.unwrap();
    assert_eq!(same, begun);
    let changes: [fn(&mut CorpusRecord); 4] = [
        |record| record.blocks += 1,
        |record| record.distance += 1,
        |record| record.recipe = "words-v2".to_owned(),
        |record| record.state = CorpusState::Live,
    ];
    for change in changes {
        assert_taken(again(change).await, &begun, CorpusState::Creating);
    }
    assert_eq!(revision(&store.here).await, 1);
    let finished = store.here.finish_creation(&begun.name, &begun.uid).await;
    finished.unwrap();
    assert_taken(again(|_| {}).await, &begun, CorpusState::Live);
}

fn assert_taken<T: std::fmt::Debug>(
    refusal: Result<T, MetadataError>,
    by: &CorpusRecord,
    expected: CorpusState,
) {
    let Err(MetadataError::AlreadyExists { name, uid, state }) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!((&name, &uid, state), (&by.name, &by.uid, expected));
}

/// MS7.
async fn a_name_is_taken_until_its_deletion_is_finished(store: Handles) {
    let record = corpus("default");
    create(&store.here, &record).await;
    for handle in [&store.here, &store.there, &store.here] {
        let begun = handle.begin_deletion(&record.name, &record.uid).await;
        begun.unwrap();
        let refusal = store
            .there
            .create_corpus(corpus("default"), MOST_CORPORA)
            .await;
        assert_taken(refusal, &record, CorpusState::Deleting);
    }
    let finished = store.there.finish_deletion(&record.name, &record.uid).await;
    finished.unwrap();
    create(&store.here, &corpus("default")).await;
}

/// MS3: the first creation's uid has no power over the second.
async fn a_deleted_name_is_free_again(store: Handles) {
    let (first, second) = (corpus("default"), corpus("default"));
    create(&store.here, &first).await;
    let begun = store.here.begin_deletion(&first.name, &first.uid).await;
    begun.unwrap();
    let finished = store.here.finish_deletion(&first.name, &first.uid).await;
    finished.unwrap();
    create(&store.there, &second).await;
    let late = store.here.begin_deletion(&first.name, &first.uid).await;
    assert_not_found(late, &first.name, &first.uid);
    let late = store.here.finish_deletion(&first.name, &first.uid).await;
    assert_not_found(late, &first.name, &first.uid);
    assert_eq!(records(&store.here).await, [second]);
}

/// MS3, MS7.
async fn of_concurrent_deletions_all_begin_and_one_finishes(store: Handles) {
    let record = corpus("default");
    create(&store.here, &record).await;
    let (here, there) = tokio::join!(
        store.here.begin_deletion(&record.name, &record.uid),
        store.there.begin_deletion(&record.name, &record.uid),
    );
    assert!(here.is_ok() && there.is_ok(), "{here:?} {there:?}");
    let (here, there) = tokio::join!(
        store.here.finish_deletion(&record.name, &record.uid),
        store.there.finish_deletion(&record.name, &record.uid),
    );
    assert_ne!(here.is_ok(), there.is_ok());
    assert_eq!(records(&store.here).await, []);
}

/// MS6.
async fn the_revision_counts_changes_and_nothing_else(store: Handles) {
    let record = corpus("default");
    create(&store.here, &record).await;
    assert_eq!(revision(&store.there).await, 1);
    let refusal = store
        .there
        .create_corpus(corpus("default"), MOST_CORPORA)
        .await;
    refusal.unwrap_err();
    let refusal = store.there.finish_deletion(&record.name, &record.uid).await;
    refusal.unwrap_err();
    assert_eq!(revision(&store.here).await, 1);
    for _again in 0..2 {
        let begun = store.there.begin_deletion(&record.name, &record.uid).await;
        begun.unwrap();
        assert_eq!(revision(&store.here).await, 2);
    }
    let finished = store.here.finish_deletion(&record.name, &record.uid).await;
    finished.unwrap();
    let corpora = store.there.corpora().await.unwrap();
    assert!(corpora.is_empty());
    assert_eq!(corpora.revision(), 3);
}
