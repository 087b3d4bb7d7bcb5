//! A node that was away for a moment copies what changed meanwhile, and not whole shards.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_testkit::{End, EtcdServer, ProcessCluster, Shape};
use simshard_topology::replication::ShardRecord;
use tokio::task::block_in_place;

use crate::load::{CORPUS, create};
use crate::readiness::until_ready;
use crate::records::{records, until_in_sync};

/// Documents that are there before.
const STORED: u64 = 30_000;

/// Documents that are inserted while the node is away, and as many are removed.
const CHANGED: u64 = 200;

const NODE: usize = 2;

fn fingerprints(numbers: std::ops::Range<u64>) -> Vec<Fingerprint> {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    numbers.map(spread).collect()
}

fn documents(numbers: std::ops::Range<u64>) -> Documents {
    Documents {
        keys: Queries::Fingerprints(fingerprints(numbers)),
        ids: Vec::new(),
    }
}

/// Starts the node, waits until it is ready, and tells how many bytes it has copied.
async fn come_back(cluster: &mut ProcessCluster) -> u64 {
    block_in_place(|| cluster.start_node_with_log(NODE));
    until_ready(cluster, NODE).await;
    let log = cluster.folder().join(format!("n{}.log", NODE + 1));
    let log = fs::read_to_string(log).unwrap();
    let copied = log
        .lines()
        .filter(|line| line.contains("this node has copied shards"));
    let bytes = |line: &str| {
        let digits = line.split_once("bytes=").unwrap().1;
        let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    };
    copied.map(bytes).sum()
}

/// How many of these documents are found, however the replicas take turns.
async fn found(client: &Client, numbers: std::ops::Range<u64>) -> usize {
    let queries = Queries::Fingerprints(fingerprints(numbers));
    let spec = SearchSpec {
        max_distance: Some(0),
        ..SearchSpec::default()
    };
    let found = client.find_all(CORPUS, queries, spec).await.unwrap();
    let queries = found.queries.iter();
    queries.filter(|query| !query.matches.is_empty()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_away_for_a_moment_copies_what_changed() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    client.insert(CORPUS, documents(0..STORED)).await.unwrap();
    block_in_place(|| cluster.end_node(NODE, End::Killed));
    let more = STORED..STORED + CHANGED;
    client.insert(CORPUS, documents(more)).await.unwrap();
    client.remove(CORPUS, documents(0..CHANGED)).await.unwrap();
    let bytes = come_back(&mut cluster).await;
    // A whole copy has a fingerprint and a version for each shard of a document.
    let whole = STORED * 16;
    assert!(bytes > 0 && bytes * 4 < whole, "{bytes} of {whole} bytes");
    for _ in 0..6 {
        let all = CHANGED..CHANGED + 10_000;
        assert_eq!(found(&client, all).await, 10_000);
        assert_eq!(found(&client, 0..CHANGED).await, 0);
    }
}

/// PE19: no change waits until the others have noticed that it is away. Of two replicas, both stay in the record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_leaves_the_shards_that_go_on_without_it() {
    for (replicas, left) in [(3, 2), (2, 2)] {
        let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(replicas));
        create(&cluster.client()).await;
        until_in_sync(&cluster, replicas).await;
        block_in_place(|| cluster.end_node(NODE, End::Stopped));
        let records = records(&cluster).await;
        let in_sync = |record: &Arc<ShardRecord>| record.in_sync.len();
        assert!(records.values().all(|record| in_sync(record) == left));
    }
}

/// PE19: it cannot leave its shards then, and stops all the same. Nothing is lost by that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_stops_while_the_metadata_is_away() {
    let etcd = block_in_place(EtcdServer::start);
    let mut cluster = ProcessCluster::start_at(Shape::of(3).with_replicas(3), &etcd.url());
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    client.insert(CORPUS, documents(0..STORED)).await.unwrap();
    for node in 0..3 {
        until_ready(&cluster, node).await;
    }
    etcd.freeze();
    block_in_place(|| cluster.end_node(NODE, End::Stopped));
    etcd.thaw();
    block_in_place(|| cluster.start_node(NODE));
    until_ready(&cluster, NODE).await;
    let more = STORED..STORED + CHANGED;
    client.insert(CORPUS, documents(more)).await.unwrap();
    let all = STORED + CHANGED;
    assert_eq!(found(&client, 0..all).await as u64, all);
}
