//! The contract of `MetadataStore`, run against every backend.
//!
//! A backend joins by a function that makes a pair of handles on one fresh store:
//! the same object twice where handles share memory, two openings of the same files
//! or endpoints where they do not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::Future;
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use simshard_cluster::{
    ClusterLayout, CorpusName, CorpusRecord, FileStore, MemoryStore, MetadataError, MetadataStore,
    Node, random_corpus_uid,
};
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
    only_the_matching_uid_deletes(fresh().await).await;
    a_deleted_name_is_free_again(fresh().await).await;
    of_concurrent_deletions_exactly_one_wins(fresh().await).await;
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
    }
}

async fn a_fresh_store_has_no_corpora(store: Handles) {
    assert_eq!(store.here.corpora().await.unwrap(), []);
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
    store.here.create_corpus(record.clone()).await.unwrap();
    for handle in [&store.here, &store.there] {
        let found = handle.corpus(&record.name).await.unwrap();
        assert_eq!(found, Some(record.clone()));
        assert_eq!(handle.corpora().await.unwrap(), slice::from_ref(&record));
        assert_eq!(handle.corpus(&name("od")).await.unwrap(), None);
    }
}

/// MS1.
async fn corpora_are_sorted_by_name(store: Handles) {
    for text in ["b", "a.b", "a", "a-b", "10", "9"] {
        store.here.create_corpus(corpus(text)).await.unwrap();
    }
    let corpora = store.there.corpora().await.unwrap();
    let names: Vec<&str> = corpora.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["10", "9", "a", "a-b", "a.b", "b"]);
}

/// MS1.
async fn a_taken_name_is_refused_and_keeps_its_corpus(store: Handles) {
    let first = corpus("default");
    let second = corpus("default");
    store.here.create_corpus(first.clone()).await.unwrap();
    let error = store.there.create_corpus(second).await.unwrap_err();
    let MetadataError::AlreadyExists { name, uid } = error else {
        panic!("{error}");
    };
    assert_eq!((name, uid), (first.name.clone(), first.uid));
    assert_eq!(store.here.corpora().await.unwrap(), [first]);
}

/// MS2.
async fn of_concurrent_creations_exactly_one_wins(store: Handles) {
    let mut attempts = tokio::task::JoinSet::new();
    for round in 0..16 {
        let handle = if round % 2 == 0 {
            Arc::clone(&store.here)
        } else {
            Arc::clone(&store.there)
        };
        let record = corpus("contested");
        attempts.spawn(async move { (record.uid, handle.create_corpus(record).await) });
    }
    let mut winners = Vec::new();
    let mut told = Vec::new();
    for (uid, result) in attempts.join_all().await {
        match result {
            Ok(()) => winners.push(uid),
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
        let handle = if number % 2 == 0 {
            Arc::clone(&store.here)
        } else {
            Arc::clone(&store.there)
        };
        attempts.spawn(async move { handle.create_corpus(corpus(&format!("c{number}"))).await });
    }
    for result in attempts.join_all().await {
        result.unwrap();
    }
    assert_eq!(store.here.corpora().await.unwrap().len(), 16);
}

/// MS3.
async fn only_the_matching_uid_deletes(store: Handles) {
    let record = corpus("default");
    store.here.create_corpus(record.clone()).await.unwrap();
    let wrong = [
        (record.name.clone(), random_corpus_uid()),
        (name("absent"), record.uid),
    ];
    for (wrong_name, wrong_uid) in wrong {
        let error = store.there.delete_corpus(&wrong_name, &wrong_uid).await;
        match error {
            Err(MetadataError::NotFound { name, uid }) => {
                assert_eq!((name, uid), (wrong_name, wrong_uid));
            }
            other => panic!("{other:?}"),
        }
    }
    let corpora = store.here.corpora().await.unwrap();
    assert_eq!(corpora, slice::from_ref(&record));
    let deletion = store.there.delete_corpus(&record.name, &record.uid).await;
    deletion.unwrap();
    assert_eq!(store.here.corpora().await.unwrap(), []);
}

/// MS3: the first creation's uid has no power over the second.
async fn a_deleted_name_is_free_again(store: Handles) {
    let first = corpus("default");
    let second = corpus("default");
    store.here.create_corpus(first.clone()).await.unwrap();
    let deletion = store.here.delete_corpus(&first.name, &first.uid).await;
    deletion.unwrap();
    store.there.create_corpus(second.clone()).await.unwrap();
    let late = store.here.delete_corpus(&first.name, &first.uid).await;
    assert!(matches!(late, Err(MetadataError::NotFound { .. })));
    assert_eq!(store.here.corpora().await.unwrap(), [second]);
}

/// MS3.
async fn of_concurrent_deletions_exactly_one_wins(store: Handles) {
    let record = corpus("default");
    store.here.create_corpus(record.clone()).await.unwrap();
    let (here, there) = tokio::join!(
        store.here.delete_corpus(&record.name, &record.uid),
        store.there.delete_corpus(&record.name, &record.uid),
    );
    assert_ne!(here.is_ok(), there.is_ok());
    assert_eq!(store.here.corpora().await.unwrap(), []);
}
