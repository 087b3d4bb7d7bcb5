//! Nodes that register themselves install the records of their shards. So they notice metadata that is not their own, and
//! go on with metadata that was made anew.

use std::fs;
use std::path::Path;

use simshard_client::{
    Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use simshard_cluster::{FileKeyValues, KeyValueStore, Outcome, Transaction};
use simshard_testkit::{End, ProcessCluster, Shape, binary, run, until};
use tokio::task::block_in_place;

use crate::interruptions::until_reached;
use crate::moves::operate;
use crate::records::until_in_sync;

const NODES: usize = 2;

fn all() -> Queries {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Queries::Fingerprints((0..200).map(spread).collect())
}

async fn fill(client: &Client) {
    let create = v1::CreateCorpusRequest {
        name: "crawl".to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    let documents = Documents {
        keys: all(),
        ids: vec![],
    };
    client.insert("crawl", documents).await.unwrap();
}

async fn found(client: &Client) -> Result<usize, ClientError> {
    let found = client.find_all("crawl", all(), SearchSpec::default());
    let queries = found.await?.queries.into_iter();
    Ok(queries.filter(|query| !query.matches.is_empty()).count())
}

/// Replaces a text in the record of the first shard.
async fn edit(cluster: &ProcessCluster, edit: impl Fn(&str) -> String) {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let before = keys.read("shards/00").await.unwrap();
    let text = edit(&before.pairs[0].value);
    assert_ne!(text, before.pairs[0].value);
    let put = Transaction::new().put("shards/00", text);
    let made = keys.commit(&put).await.unwrap();
    assert!(matches!(made, Outcome::Committed(_)));
}

fn with_epoch(number: u64) -> impl Fn(&str) -> String {
    move |record| record.replacen("\"epoch\":\"0.1\"", &format!("\"epoch\":\"0.{number}\""), 1)
}

/// What a command prints that succeeds.
fn printed(args: &[&str]) -> String {
    let output = run(binary(), args, "");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is installed in the first node is told, offline and by the metadata.
fn assert_listed(cluster: &ProcessCluster, directory: &Path) {
    let store = directory.to_str().unwrap();
    let held = printed(&["storage", "inspect", store]);
    for line in [
        "installed   epoch 0.1  shards 01-7f\n",
        "installed   epoch 0.2  shards 00\n",
    ] {
        assert!(held.contains(line), "{held}");
    }
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let list = ["cluster", "shards", "--metadata", &metadata];
    let expected = "shards\tepoch\tin_sync\thot\tlearners\ttarget\n\
                    00-7f\t0.1-0.2\tn1\tn1\t\t\n\
                    80-ff\t0.1\tn2\tn2\t\t\n";
    assert_eq!(printed(&list), expected);
    let objects = printed(&[&list[..], &["--json"]].concat());
    let of_first =
        |line: &str| line.contains(r#""shards":"00""#) && line.contains(r#""epoch":"0.2""#);
    assert!(objects.lines().any(of_first), "{objects}");
    assert_eq!(objects.lines().count(), 3);
}

/// Why the first node does not start.
fn refusal(cluster: &ProcessCluster) -> String {
    let refused = run(binary(), cluster.node_args(0), "");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_does_not_start_with_metadata_of_another_history() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES));
    let client = cluster.client();
    fill(&client).await;
    let older = fs::read(cluster.metadata_file()).unwrap();
    // It hears of this one while it runs.
    let directory = cluster.folder().join("n1");
    edit(&cluster, with_epoch(2)).await;
    until("it has installed a record", async || {
        has_installed_from_log(&directory)
    })
    .await;
    cluster.end_node(0, End::Killed);

    assert_listed(&cluster, &directory);

    let newest = fs::read(cluster.metadata_file()).unwrap();
    fs::write(cluster.metadata_file(), &older).unwrap();
    let told = refusal(&cluster);
    assert!(told.contains("record of shard 00"), "{told}");
    assert!(told.contains("an older copy"), "{told}");

    fs::write(cluster.metadata_file(), &newest).unwrap();
    edit(&cluster, |record| {
        let nonce = record.find("nonce\":\"").unwrap() + "nonce\":\"".len();
        let digit = if &record[nonce..=nonce] == "0" {
            "1"
        } else {
            "0"
        };
        format!("{}{digit}{}", &record[..nonce], &record[nonce + 1..])
    })
    .await;
    let told = refusal(&cluster);
    assert!(told.contains("written twice"), "{told}");

    // By a layout file, which knows nothing of them, the shards are not served either.
    let layout = cluster.layout();
    let data = directory.to_str().unwrap();
    let args = ["serve", "node", "--name", "n1", "--data", data, "--cluster"];
    let refused = run(binary(), args.iter().chain(&[layout.to_str().unwrap()]), "");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("--metadata that it had"), "{told}");

    fs::write(cluster.metadata_file(), &newest).unwrap();
    block_in_place(|| cluster.start_node(0));
    assert_eq!(
        until_reached(async || found(&client).await).await.unwrap(),
        200
    );
}

/// Whether the last file of the log in a data directory is of version 2, and has a record.
fn has_installed_from_log(directory: &Path) -> bool {
    let files = fs::read_dir(directory.join("log")).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|extension| extension == "log"));
    names.sort();
    let last = fs::read(names.last().unwrap()).unwrap();
    last[8] == 2 && last.get(64..68) == Some(b"SLGF")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_begins_anew_after_its_metadata_was_lost() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES));
    let client = cluster.client();
    fill(&client).await;
    for generation in 1..=2 {
        let uid = client.list_stored_corpora().await.unwrap()[0].uid.clone();
        block_in_place(|| {
            for node in 0..NODES {
                cluster.end_node(node, End::Killed);
            }
            cluster.end_router(0, End::Stopped);
            fs::remove_file(cluster.metadata_file()).unwrap();
            cluster.begin();
            cluster.start_router(0);
        });
        let keys = FileKeyValues::at(cluster.metadata_file());
        let record = &keys.read("shards/00").await.unwrap().pairs[0].value;
        let epoch = format!("\"epoch\":\"{generation}.1\"");
        assert!(record.contains(&epoch), "{record}");

        // No record tells of the corpora: a node that is silent may hold one.
        cluster.end_node(1, End::Killed);
        let client = cluster.client();
        let silent = client.list_corpora().await.unwrap_err();
        assert_eq!(silent.reason(), Some(Reason::NodeUnreachable), "{silent}");
        block_in_place(|| cluster.start_node(1));
        let lost = until_reached(async || client.list_corpora().await).await;
        let lost = lost.unwrap_err();
        assert_eq!(lost.reason(), Some(Reason::MetadataFailed));
        let told = lost.to_string();
        assert!(
            told.contains("`simshard corpus recover`")
                && told.contains("never an older copy of etcd"),
            "{told}"
        );
        let status = operate(&cluster, &["status"]);
        let missing =
            "corpora\tno\t0 live, records missing of 1 that nodes hold: `simshard corpus recover`";
        assert!(status.contains(missing), "{status}");

        let url = cluster.url();
        let named = ["--name", "crawl", "--recipe", "words-v1"];
        let recover = ["corpus", "recover", "--router", &url, &uid];
        let recovered = run(binary(), [&recover[..], &named].concat(), "");
        assert!(recovered.status.success(), "{recovered:?}");
        assert_eq!(found(&client).await.unwrap(), 200);
        let status = operate(&cluster, &["status"]);
        assert!(status.contains("corpora\tyes\t1 live"), "{status}");
    }
}

/// A directory was lost together with the metadata. Its node would answer as if nothing had been stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_does_not_begin_anew_with_a_directory_that_lost_its_documents() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES));
    fill(&cluster.client()).await;
    cluster.end_router(0, End::Killed);
    for node in 0..NODES {
        cluster.end_node(node, End::Killed);
    }
    fs::remove_file(cluster.metadata_file()).unwrap();
    let lost = cluster.folder().join("n2");
    let aside = cluster.folder().join("aside");
    fs::rename(&lost, &aside).unwrap();
    let told = block_in_place(|| cluster.try_begin(&[])).unwrap_err();
    assert!(told.contains("node n2 lacks corpora or records"), "{told}");

    fs::remove_dir_all(&lost).unwrap();
    fs::rename(&aside, &lost).unwrap();
    // The empty directory has registered, and would count until its node comes back.
    fs::remove_file(cluster.metadata_file()).unwrap();
    block_in_place(|| cluster.begin());
}

/// The others hold all, and the node whose directory was lost copies it at once: then another one may die.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_directory_is_copied_once_the_cluster_has_begun_anew() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    let client = cluster.client();
    fill(&client).await;
    let uid = client.list_stored_corpora().await.unwrap()[0].uid.clone();
    block_in_place(|| {
        for node in 0..3 {
            cluster.end_node(node, End::Killed);
        }
        cluster.end_router(0, End::Stopped);
        fs::remove_file(cluster.metadata_file()).unwrap();
        cluster.lose_data(1);
        cluster.try_begin(&["--lost", "n2"]).unwrap();
        cluster.start_router(0);
    });
    let client = cluster.client();
    let url = cluster.url();
    let named = ["--name", "crawl", "--recipe", "words-v1"];
    let recover = ["corpus", "recover", "--router", &url, &uid];
    let recovered = run(binary(), [&recover[..], &named].concat(), "");
    assert!(recovered.status.success(), "{recovered:?}");
    until_in_sync(&cluster, 3).await;
    cluster.end_node(2, End::Killed);
    let documents = Documents {
        keys: Queries::Fingerprints(vec![Fingerprint(7)]),
        ids: Vec::new(),
    };
    let inserted = until_reached(async || client.insert("crawl", documents.clone()).await);
    assert_eq!(inserted.await.unwrap(), 1);
    assert_eq!(found(&client).await.unwrap(), 200);
}
