//! What only the file backend promises: whose files are whose, and what happens
//! when they are not as they should be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use simshard_cluster::{
    CorpusName, CorpusRecord, CorpusState, FileStore, MetadataError, MetadataStore,
    random_corpus_uid,
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
        state: CorpusState::Live,
    }
}

/// More corpora than any test makes.
const MOST_CORPORA: usize = 10_000;

async fn create(store: &FileStore, record: &CorpusRecord) -> Result<(), MetadataError> {
    store
        .create_corpus(record.clone(), MOST_CORPORA)
        .await
        .map(drop)
}

async fn records(store: &FileStore) -> Vec<CorpusRecord> {
    store.corpora().await.unwrap().records().cloned().collect()
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
    create(&store, &record).await.unwrap();
    let begun = store.begin_deletion(&record.name, &record.uid).await;
    begun.unwrap();
    let finished = store.finish_deletion(&record.name, &record.uid).await;
    finished.unwrap();
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
    assert_eq!(records(&store).await, []);
    assert_eq!(folder.file_names(), ["cluster.toml"]);
    create(&store, &corpus("default")).await.unwrap();
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
    create(&store, &record).await.unwrap();
    drop(store);
    assert_eq!(records(&folder.open().await).await, [record]);
}

/// FS5.
#[tokio::test]
async fn what_a_crash_left_half_written_is_ignored() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let (first, second) = (corpus("first"), corpus("second"));
    create(&store, &first).await.unwrap();
    let next = folder.0.path().join("cluster.corpora.toml.next-1");
    fs::write(&next, "version = 1\n[[corp").unwrap();
    let reopened = folder.open().await;
    let found = records(&reopened).await;
    assert_eq!(found, std::slice::from_ref(&first));
    create(&reopened, &second).await.unwrap();
    assert_eq!(records(&store).await, [first, second]);
}

/// FS4.
#[tokio::test]
async fn a_corrupt_corpora_file_is_refused_and_left_alone() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let record = corpus("default");
    create(&store, &record).await.unwrap();
    let whole = fs::read_to_string(folder.corpora()).unwrap();
    let blank = String::new();
    let broken = whole.replace("blocks = 5", "blocks = ?");
    // The edited file is well formed, but its checksum does not match.
    let edited = whole.replace("blocks = 5", "blocks = 4");
    for damaged in [blank, broken, edited] {
        assert_ne!(damaged, whole);
        fs::write(folder.corpora(), &damaged).unwrap();
        let refusals = [
            store.corpora().await.unwrap_err(),
            store.corpus(&record.name).await.unwrap_err(),
            create(&store, &corpus("other")).await.unwrap_err(),
            store
                .begin_deletion(&record.name, &record.uid)
                .await
                .unwrap_err(),
            store
                .finish_deletion(&record.name, &record.uid)
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
            assert!(message.contains("restore it from a backup"), "{message}");
            assert!(message.contains("`simshard corpus recover`"), "{message}");
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
    fs::write(folder.corpora(), "version = 3\n").unwrap();
    let error = create(&store, &corpus("default")).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("has version 3"), "{message}");
    assert!(message.contains("upgrade the program"), "{message}");
    let kept = fs::read_to_string(folder.corpora()).unwrap();
    assert_eq!(kept, "version = 3\n");
}

#[tokio::test]
async fn a_change_that_cannot_be_written_changes_nothing() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let first = corpus("first");
    create(&store, &first).await.unwrap();
    // A folder in the way fails the write for every user, root included.
    let lock = folder.0.path().join("cluster.corpora.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let error = create(&store, &corpus("second")).await.unwrap_err();
    assert!(matches!(error, MetadataError::Unwritable { .. }), "{error}");
    assert_eq!(records(&store).await, [first]);
}

/// What version 1 wrote is read, and the next change writes it as version 2.
#[tokio::test]
async fn a_file_of_version_1_becomes_one_of_version_2_with_the_next_change() {
    let folder = Folder::with(LAYOUT);
    let (old, new) = (corpus("old"), corpus("new"));
    let text = format!(
        "version = 1\ncorpus_count = 1\n\n[[corpora]]\nname = \"old\"\nuid = \"{}\"\nblocks = 5\n\
         distance = 3\nrecipe = \"words-v1\"\ncreate_time_seconds = 0\ncreate_time_nanos = 0\n",
        old.uid
    );
    fs::write(folder.corpora(), &text).unwrap();
    let store = folder.open().await;
    let corpora = store.corpora().await.unwrap();
    assert_eq!(corpora.revision(), 1);
    assert_eq!(records(&store).await, std::slice::from_ref(&old));
    assert_eq!(fs::read_to_string(folder.corpora()).unwrap(), text);
    create(&store, &new).await.unwrap();
    let text = fs::read_to_string(folder.corpora()).unwrap();
    assert!(text.contains("\nversion = 2\n"), "{text}");
    let reopened = folder.open().await;
    assert_eq!(reopened.corpora().await.unwrap().revision(), 2);
    assert_eq!(records(&reopened).await, [new, old]);
}

/// FS10: even an edit that no file system can tell by size or time.
#[tokio::test]
async fn a_file_of_the_same_size_and_time_is_read_anew() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    create(&store, &corpus("a")).await.unwrap();
    store.corpora().await.unwrap();
    let text = fs::read_to_string(folder.corpora()).unwrap();
    let written = fs::metadata(folder.corpora()).unwrap().modified().unwrap();
    fs::write(folder.corpora(), text.replace("blocks = 5", "blocks = 6")).unwrap();
    let file = fs::File::options().write(true).open(folder.corpora());
    file.unwrap().set_modified(written).unwrap();
    let error = store.corpora().await.unwrap_err();
    assert!(
        matches!(error, MetadataError::CorruptCorpora { .. }),
        "{error}"
    );
    // Nor is what it said before the answer to a file that is gone.
    fs::remove_file(folder.corpora()).unwrap();
    let corpora = store.corpora().await.unwrap();
    assert_eq!((corpora.len(), corpora.revision()), (0, 0));
    fs::write(folder.corpora(), text).unwrap();
    assert_eq!(store.corpora().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_corpora_file_of_other_bytes_than_text_is_refused_with_their_place() {
    let folder = Folder::with(LAYOUT);
    fs::write(folder.corpora(), b"version = 2\n\xff").unwrap();
    let error = folder.open().await.corpora().await.unwrap_err();
    assert!(error.to_string().contains("line 2 column 1"), "{error}");
}

/// FS6: a lock wait on the only async thread would block the task that releases the lock.
#[tokio::test(flavor = "current_thread")]
async fn waiting_for_the_lock_holds_up_no_async_thread() {
    let folder = Folder::with(LAYOUT);
    let store = folder.open().await;
    let lock = fs::File::create(folder.0.path().join("cluster.corpora.lock")).unwrap();
    lock.lock().unwrap();
    let record = corpus("default");
    let (created, ()) = tokio::join!(create(&store, &record), async {
        assert_eq!(records(&store).await, []);
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
            tokio::spawn(async move { create(&store, &corpus(&format!("c{number}"))).await })
        };
        let waiting: Vec<_> = (0..20).map(create).collect();
        let given_up: Vec<_> = (20..40).map(create).collect();
        tokio::task::yield_now().await;
        for change in &given_up {
            change.abort();
        }
        assert_eq!(records(&store).await, []);
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
