//! What only the file backend promises: whose files are whose, and what happens
//! when they are not as they should be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use simshard_cluster::{
    CorpusName, CorpusRecord, FileStore, MetadataError, MetadataStore, random_corpus_uid,
};

const LAYOUT: &str = r#"
[[nodes]]
name = "n1"
address = "http://127.0.0.1:7470"

[[nodes]]
name = "n2"
address = "http://127.0.0.1:7472"
"#;

/// A folder with a layout file in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(layout: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.layout(), layout).unwrap();
        folder
    }

    fn layout(&self) -> PathBuf {
        self.0.path().join("cluster.toml")
    }

    fn corpora(&self) -> PathBuf {
        self.0.path().join("cluster.corpora.toml")
    }

    fn file_names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    async fn open(&self) -> FileStore {
        FileStore::open(self.layout()).await.unwrap()
    }

    async fn refusal(&self) -> MetadataError {
        FileStore::open(self.layout()).await.unwrap_err()
    }
}

fn corpus(name: &str) -> CorpusRecord {
    CorpusRecord {
        name: CorpusName::new(name).unwrap(),
        uid: random_corpus_uid(),
        blocks: 5,
        distance: 3,
        recipe: "words-v1".to_owned(),
        create_time: SystemTime::UNIX_EPOCH,
    }
}

#[tokio::test]
async fn the_example_in_deploy_loads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/cluster.toml");
    let layout = FileStore::open(path).await.unwrap().layout().await.unwrap();
    let nodes: Vec<(&str, &str)> = layout
        .nodes()
        .iter()
        .map(|node| (node.id.as_str(), node.address.as_str()))
        .collect();
    let expected = [
        ("n1", "http://127.0.0.1:7470"),
        ("n2", "http://127.0.0.1:7472"),
        ("n3", "http://127.0.0.1:7474"),
    ];
    assert_eq!(nodes, expected);
}

/// FS2.
#[tokio::test]
async fn two_stores_on_one_file_plan_the_same_map() {
    let folder = Folder::with(LAYOUT);
    let one = folder.open().await.layout().await.unwrap();
    let other = folder.open().await.layout().await.unwrap();
    assert_eq!(one.map(), other.map());
}

/// FS1.
#[tokio::test]
async fn the_layout_file_is_never_written() {
    let folder = Folder::with(LAYOUT);
    let written = fs::metadata(folder.layout()).unwrap().modified().unwrap();
    let store = folder.open().await;
    let record = corpus("default");
    store.create_corpus(record.clone()).await.unwrap();
    store
        .delete_corpus(&record.name, &record.uid)
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(folder.layout()).unwrap(), LAYOUT);
    let still_written = fs::metadata(folder.layout()).unwrap().modified().unwrap();
    assert_eq!(still_written, written);
}

/// FS3.
#[tokio::test]
async fn an_edited_layout_file_counts_from_the_next_start() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    fs::write(folder.layout(), LAYOUT.replace("7472", "7480")).unwrap();
    let before = store.layout().await.unwrap();
    assert_eq!(before.nodes()[1].address, "http://127.0.0.1:7472");
    let after = folder.open().await.layout().await.unwrap();
    assert_eq!(after.nodes()[1].address, "http://127.0.0.1:7480");
}

#[tokio::test]
async fn the_corpora_file_appears_with_the_first_corpus() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    assert_eq!(store.corpora().await.unwrap(), []);
    assert_eq!(folder.file_names(), ["cluster.toml"]);
    store.create_corpus(corpus("default")).await.unwrap();
    assert_eq!(
        folder.file_names(),
        [
            "cluster.corpora.lock",
            "cluster.corpora.toml",
            "cluster.toml"
        ]
    );
}

#[tokio::test]
async fn corpora_outlive_the_store() {
    let folder = Folder::with(LAYOUT);
    let record = corpus("default");
    let store = folder.open().await;
    store.create_corpus(record.clone()).await.unwrap();
    drop(store);
    assert_eq!(folder.open().await.corpora().await.unwrap(), [record]);
}

/// FS5.
#[tokio::test]
async fn what_a_crash_left_half_written_is_ignored() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let (first, second) = (corpus("first"), corpus("second"));
    store.create_corpus(first.clone()).await.unwrap();
    let next = folder.0.path().join("cluster.corpora.toml.next");
    fs::write(&next, "version = 1\n[[corp").unwrap();
    let reopened = folder.open().await;
    let found = reopened.corpora().await.unwrap();
    assert_eq!(found, std::slice::from_ref(&first));
    reopened.create_corpus(second.clone()).await.unwrap();
    assert_eq!(store.corpora().await.unwrap(), [first, second]);
    assert!(!next.exists());
}

/// FS4.
#[tokio::test]
async fn a_corrupt_corpora_file_is_refused_and_left_alone() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let record = corpus("default");
    store.create_corpus(record.clone()).await.unwrap();
    let whole = fs::read_to_string(folder.corpora()).unwrap();
    let blank = String::new();
    let broken = whole.replace("blocks = 5", "blocks = ?");
    for damaged in [blank, broken] {
        fs::write(folder.corpora(), &damaged).unwrap();
        let refusals = [
            store.corpora().await.unwrap_err(),
            store.corpus(&record.name).await.unwrap_err(),
            store.create_corpus(corpus("other")).await.unwrap_err(),
            store
                .delete_corpus(&record.name, &record.uid)
                .await
                .unwrap_err(),
        ];
        for error in refusals {
            assert!(
                matches!(error, MetadataError::CorruptCorpora { .. }),
                "{error}"
            );
            let message = error.to_string();
            assert!(message.contains("cluster.corpora.toml line "), "{message}");
        }
        assert_eq!(fs::read_to_string(folder.corpora()).unwrap(), damaged);
    }
}

/// FS7.
#[tokio::test]
async fn a_damaged_corpora_file_leaves_the_layout_readable() {
    let folder = Folder::with(LAYOUT);
    fs::write(folder.corpora(), "version = 1\n[[corp").unwrap();
    let store = folder.open().await;
    assert_eq!(store.layout().await.unwrap().nodes().len(), 2);
    let error = store.corpora().await.unwrap_err();
    assert!(
        matches!(error, MetadataError::CorruptCorpora { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_corpora_file_of_a_later_version_is_refused_and_left_alone() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    fs::write(folder.corpora(), "version = 2\n").unwrap();
    let error = store.create_corpus(corpus("default")).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("has version 2"), "{message}");
    assert!(message.ends_with("upgrade the program"), "{message}");
    let kept = fs::read_to_string(folder.corpora()).unwrap();
    assert_eq!(kept, "version = 2\n");
}

#[tokio::test]
async fn a_change_that_cannot_be_written_changes_nothing() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let first = corpus("first");
    store.create_corpus(first.clone()).await.unwrap();
    // A folder in the way fails the write for every user, root included.
    fs::create_dir(folder.0.path().join("cluster.corpora.toml.next")).unwrap();
    let error = store.create_corpus(corpus("second")).await.unwrap_err();
    assert!(matches!(error, MetadataError::Unwritable { .. }), "{error}");
    assert_eq!(store.corpora().await.unwrap(), [first]);
}

/// FS6: were the only async thread to wait for the lock, nobody could release it.
#[tokio::test(flavor = "current_thread")]
async fn waiting_for_the_lock_holds_up_no_async_thread() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let lock = fs::File::create(folder.0.path().join("cluster.corpora.lock")).unwrap();
    lock.lock().unwrap();
    let (created, ()) = tokio::join!(store.create_corpus(corpus("default")), async {
        assert_eq!(store.corpora().await.unwrap(), []);
        drop(lock);
    });
    created.unwrap();
    assert_eq!(store.corpora().await.unwrap().len(), 1);
}

/// FS8: with two threads for files, one waits and the other reads.
#[test]
fn changes_that_wait_for_the_lock_hold_up_no_reading() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let folder = Folder::with(LAYOUT);
        let store = Arc::new(folder.open().await);
        let lock = fs::File::create(folder.0.path().join("cluster.corpora.lock")).unwrap();
        lock.lock().unwrap();
        let create = |number: usize| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.create_corpus(corpus(&format!("c{number}"))).await })
        };
        let waiting: Vec<_> = (0..20).map(create).collect();
        let given_up: Vec<_> = (20..40).map(create).collect();
        tokio::task::yield_now().await;
        for change in &given_up {
            change.abort();
        }
        assert_eq!(store.corpora().await.unwrap(), []);
        drop(lock);
        for change in waiting {
            change.await.unwrap().unwrap();
        }
        let corpora = store.corpora().await.unwrap();
        assert!(corpora.len() >= 20, "{}", corpora.len());
    });
}

#[tokio::test]
async fn a_layout_file_that_is_missing_is_named() {
    let folder = Folder::with(LAYOUT);
    fs::remove_file(folder.layout()).unwrap();
    let error = folder.refusal().await;
    assert!(matches!(error, MetadataError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("cluster.toml"), "{error}");
}

#[tokio::test]
async fn mistakes_in_the_layout_file_are_explained() {
    let extra_node = |name: &str, address: &str| {
        format!("{LAYOUT}\n[[nodes]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    };
    let cases = [
        (String::new(), "no nodes are listed"),
        (extra_node("n1", "http://h:1"), "two nodes are named n1"),
        (
            extra_node("n3", "http://127.0.0.1:7470"),
            "nodes n1 and n3 both have address http://127.0.0.1:7470",
        ),
        (
            extra_node("n3", "127.0.0.1:7474"),
            "write it as http://host:port",
        ),
        (
            extra_node("N3", "http://h:1"),
            "node id \"N3\" contains 'N'",
        ),
        (
            LAYOUT.replace("[[nodes]]\nname = \"n2\"", "[[node]]\nname = \"n2\""),
            "line 6",
        ),
        (format!("{LAYOUT}zone = \"a\"\n"), "line 9 column 1"),
        (
            LAYOUT.replace("name = \"n1\"\n", ""),
            "missing field `name`",
        ),
        (LAYOUT.replace("\"n2\"", "2"), "line 7 column 8"),
    ];
    for (text, expected) in cases {
        let folder = Folder::with(&text);
        let message = folder.refusal().await.to_string();
        assert!(message.contains("cluster.toml"), "{message}");
        assert!(message.contains(expected), "{message}\nlacks: {expected}");
        assert!(!message.contains('\n'), "{message}");
    }
}
