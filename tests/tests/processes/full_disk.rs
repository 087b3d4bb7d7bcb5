//! A node whose disk is full: a small tmpfs of its own, in a mount namespace (`unshare` of util-linux, as root or
//! with user namespaces).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use simshard_client::{Client, ClientError, Documents, Queries, Reason, SearchSpec, v1};
use simshard_simhash::Fingerprint;
use simshard_testkit::{Process, binary, free_addresses, until, write_layout_file};

/// The tmpfs, and what takes half of it until there is to be space again.
const SIZE: &str = "size=32m";
const BALLAST: &str = "16M";

/// Documents of a batch.
const BATCH: u64 = 2000;

/// More batches than fit.
const MOST_BATCHES: u64 = 200;

/// A node on a tmpfs of its own, and a router.
struct Scene {
    node: Process,
    router: Process,
    mounted: PathBuf,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = folder.path().join("cluster.toml");
        write_layout_file(&layout, &free_addresses(1));
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let (layout, data) = (text(&layout), disk.join("data"));
        let script = format!(
            "mount -t tmpfs -o {SIZE} tmpfs \"$0\" && head -c {BALLAST} /dev/zero > \"$0/ballast\" && exec \"$@\""
        );
        let serve = [
            binary(),
            "serve",
            "node",
            "--cluster",
            layout,
            "--name",
            "n1",
            "--data",
            text(&data),
            "--memtable-mib",
            "1",
        ];
        let shell = [namespace(), "sh", "-c", &script, text(&disk)];
        let node = Process::serve("unshare", shell.iter().chain(&serve));
        let router = ["serve", "router", "--cluster", layout];
        let listen = ["--listen", "127.0.0.1:0"];
        let router = Process::serve(binary(), router.iter().chain(&listen));
        // The namespace's own view of the file system, from outside.
        let inside = format!("/proc/{}/root{}", node.id(), disk.display());
        Self {
            node,
            router,
            mounted: inside.into(),
            _folder: folder,
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A mount namespace is root's to make; others get one with a user namespace.
pub(crate) fn namespace() -> &'static str {
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    if id.trim_ascii() == b"0" { "-m" } else { "-rm" }
}

fn batch(number: u64) -> Documents {
    let numbers = number * BATCH..(number + 1) * BATCH;
    let fingerprints = numbers.clone().map(fingerprint);
    let ids = numbers.map(|number| format!("https://example.org/{number:050}"));
    Documents {
        keys: Queries::Fingerprints(fingerprints.collect()),
        ids: ids.collect(),
    }
}

fn fingerprint(number: u64) -> Fingerprint {
    Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Inserts batches from `first` on until one is refused; how many were not.
async fn fill(client: &Client, first: u64) -> (u64, ClientError) {
    for number in first..first + MOST_BATCHES {
        if let Err(error) = client.insert("c", batch(number)).await {
            return (number - first, error);
        }
    }
    panic!("the disk holds more than it should");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_inserts_and_nothing_else_until_there_is_space() {
    let scene = Scene::start();
    let client = Client::new(scene.router.url()).unwrap();
    let create = v1::CreateCorpusRequest {
        name: "c".to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    let (fitted, error) = fill(&client, 0).await;
    assert_eq!(error.reason(), Some(Reason::DiskFull), "{error}");
    assert!(fitted > 0);

    let stored = |number| client.find_all("c", batch(number).keys, SearchSpec::default());
    for number in 0..fitted {
        let found = stored(number).await.unwrap();
        assert!(found.queries.iter().all(|query| !query.matches.is_empty()));
    }
    assert_eq!(client.remove("c", batch(0)).await.unwrap(), BATCH);
    let gone = stored(0).await.unwrap();
    let exact = |query: &Fingerprint| {
        gone.queries
            .iter()
            .any(|found| found.query == *query && found.matches.iter().any(|one| one.distance == 0))
    };
    assert!((0..BATCH).map(fingerprint).all(|query| !exact(&query)));

    fs::remove_file(scene.mounted.join("ballast")).unwrap();
    until("there is room again", async || {
        let inserted = client.insert("c", batch(fitted)).await;
        let is_full = |error: &ClientError| error.reason() == Some(Reason::DiskFull);
        inserted
            .inspect_err(|error| assert!(is_full(error), "{error}"))
            .is_ok()
    })
    .await;
    for number in 1..=fitted {
        let found = stored(number).await.unwrap();
        assert!(found.queries.iter().all(|query| !query.matches.is_empty()));
    }
    assert_eq!(scene.node.terminate(), Some(0));
}
