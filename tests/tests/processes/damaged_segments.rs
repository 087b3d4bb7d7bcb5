//! A file of a shard is damaged at one of three nodes: the shard goes on without that node, which copies it anew.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec};
use simshard_cluster::{FileKeyValues, registered_stores};
use simshard_testkit::{End, PATIENCE, ProcessCluster, Shape, until};
use simshard_topology::ShardId;
use simshard_topology::replication::Epoch;
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::force::assert_says;
use crate::load::{CORPUS, Load, create};
use crate::moves;
use crate::readiness::until_ready;
use crate::records::records;
use crate::scrubs::tell;

const NODE: usize = 1;

const SHARD: ShardId = ShardId(7);

/// More than a node keeps in memory.
const DOCUMENTS: u64 = 20_000;

/// Other documents than those of the load.
fn documents() -> Vec<Fingerprint> {
    let documents = (0..DOCUMENTS).map(|number| number.wrapping_mul(0xd6e8_feb8_6659_fd93));
    documents.map(Fingerprint).collect()
}

/// Inserts all documents, or once more: then each is looked up in what is stored.
async fn insert(client: &Client) -> Result<(), ClientError> {
    for some in documents().chunks(2000) {
        let documents = Documents {
            keys: Queries::Fingerprints(some.to_vec()),
            ids: vec![],
        };
        client.insert(CORPUS, documents).await?;
    }
    Ok(())
}

/// Each document is found.
async fn check(client: &Client) {
    for some in documents().chunks(500) {
        let queries = Queries::Fingerprints(some.to_vec());
        let found = client.find_all(CORPUS, queries, SearchSpec::default());
        let found = found.await.unwrap().queries;
        assert_eq!(found.len(), some.len());
        assert!(found.iter().all(|query| !query.matches.is_empty()));
    }
}

/// The files of the shard in a data directory.
fn files(data: &Path) -> Vec<PathBuf> {
    let prefix = format!("{SHARD}-");
    let paths = fs::read_dir(data.join("segments")).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    let is_of_shard = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(&prefix) && name.ends_with(".seg")
    };
    paths.filter(is_of_shard).collect()
}

/// Damages the first block of each file of the shard.
fn damage(data: &Path) {
    let files = files(data);
    assert!(!files.is_empty());
    for file in files {
        // A merge may have replaced it since.
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&file) else {
            continue;
        };
        let mut byte = [0];
        file.read_exact_at(&mut byte, 70).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 70).unwrap();
    }
}

/// A cluster with documents, of which the node has files of the shard.
async fn begun() -> ProcessCluster {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    let client = cluster.client().with_timeout(PATIENCE);
    create(&client).await;
    insert(&client).await.unwrap();
    until("the shard has files", async || {
        !files(&cluster.data(NODE)).is_empty()
    })
    .await;
    cluster
}

/// Waits until each shard has three stores in sync, one of which has come back to the shard.
async fn until_healed(cluster: &ProcessCluster) {
    until("the shard is healed", async || {
        let records = records(cluster).await;
        let mut back = records[&SHARD].in_sync.iter();
        back.any(|entry| entry.since > Epoch::FIRST)
            && records.values().all(|record| record.in_sync.len() == 3)
    })
    .await;
}

/// What the node has copied counts: it goes on alone.
async fn check_alone(mut cluster: ProcessCluster) {
    until_ready(&cluster, NODE).await;
    block_in_place(|| {
        cluster.end_node(0, End::Killed);
        cluster.end_node(2, End::Killed);
    });
    check(&cluster.client().with_timeout(PATIENCE)).await;
}

/// PE9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_damaged_segment_leaves_the_shard_and_copies_it_anew() {
    let cluster = begun().await;
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    let load = Load::start(std::slice::from_ref(&client));
    get_acquainted(&load).await;
    damage(&cluster.data(NODE));
    let mut failures = 0;
    until("the documents are inserted", async || {
        let Err(error) = insert(&client).await else {
            return true;
        };
        assert_eq!(error.reason(), Some(Reason::StorageFailed), "{error}");
        failures += 1;
        false
    })
    .await;
    println!("{failures} changes failed");
    until_healed(&cluster).await;
    let others = records(&cluster).await;
    let mut others = others.values();
    assert!(others.any(|record| record.epoch == Epoch::FIRST));
    insert(&client).await.unwrap();
    load.end(&client).await;
    check(&client).await;
    check_alone(cluster).await;
}

/// The replicas that are left are compared, whichever is damaged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_goes_on_without_a_replica_that_is_damaged() {
    for place in [0, 1] {
        let cluster = begun().await;
        let damaged = records(&cluster).await[&SHARD].in_sync[place].store;
        let keys = FileKeyValues::at(cluster.metadata_file());
        let stores = registered_stores(&keys).await.unwrap();
        let store = stores.iter().find(|store| store.id == damaged).unwrap();
        let node = store.node.as_str()[1..].parse::<usize>().unwrap() - 1;
        until("the shard has files", async || {
            !files(&cluster.data(node)).is_empty()
        })
        .await;
        damage(&cluster.data(node));
        let shard = SHARD.to_string();
        let only = ["--only", "replicas", "--settled-seconds", "0", "--shards"];
        let output = tell(&cluster, &[&only[..], &[&shard]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        until_healed(&cluster).await;
    }
}

/// PE9, HC3: the node can make no tables from what is damaged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_with_a_damaged_segment_copies_the_shard_anew() {
    let mut cluster = begun().await;
    // No node is left that could take another one for dead.
    block_in_place(|| {
        for node in 0..3 {
            cluster.end_node(node, End::Killed);
        }
        damage(&cluster.data(NODE));
        for node in 0..3 {
            cluster.start_node(node);
        }
    });
    until_healed(&cluster).await;
    let client = cluster.client().with_timeout(PATIENCE);
    insert(&client).await.unwrap();
    check_alone(cluster).await;
}

/// FO4: no other node has the shard. Its documents come from the other shards, once the operator has done what the command
/// says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_is_damaged_on_its_only_node_is_filled_from_the_others() {
    let mut cluster = ProcessCluster::start(Shape::of(2));
    let client = cluster.client().with_timeout(PATIENCE);
    create(&client).await;
    insert(&client).await.unwrap();
    until("the shard has files", async || {
        !files(&cluster.data(0)).is_empty()
    })
    .await;
    // It reads all files. A merge may replace them before.
    until("a scrub comes upon the damage", async || {
        damage(&cluster.data(0));
        let scrubbed = tell(&cluster, &["--settled-seconds", "0"]);
        String::from_utf8_lossy(&scrubbed.stderr).contains("is damaged")
    })
    .await;
    let status = moves::operate(&cluster, &["status"]);
    assert!(
        status.contains("searches\tno\ta file is damaged, and no other hot replica answers: 07"),
        "{status}"
    );

    let rebuild = [
        "force",
        "--rebuild",
        "--from",
        "n2",
        "--old-writes-seconds",
        "1",
    ];
    let told = moves::tell(&cluster, &rebuild);
    assert_says(&told, 2, "files of shards 07 are damaged on n1");
    let others = "00-06,08-7f";
    assert_says(&told, 2, &format!("move --shards {others} --to NODE"));
    moves::operate(&cluster, &["move", "--shards", others, "--to", "n2"]);
    block_in_place(|| cluster.end_node(0, End::Killed));
    let stopped = [&rebuild[..], &["--stopped", "n1"]].concat();
    assert_says(&moves::tell(&cluster, &stopped), 0, "are filled by");
    check(&client).await;
    let scrubbed = tell(&cluster, &["--settled-seconds", "0"]);
    let said = String::from_utf8(scrubbed.stderr).unwrap();
    assert!(scrubbed.status.success(), "{said}");
}
