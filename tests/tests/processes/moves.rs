//! An operator moves shards and changes how many replicas they have, while inserts and searches go on.

use std::collections::BTreeSet;
use std::time::Duration;

use simshard_testkit::{End, ProcessCluster, Shape, binary, run};
use simshard_topology::replication::StoreId;
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::records::{records, until_all};

/// Runs a command about the cluster, which must succeed.
fn operate(cluster: &ProcessCluster, command: &[&str]) -> String {
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let args = [&["cluster"], command, &["--metadata", &metadata]].concat();
    let output = block_in_place(|| run(binary(), args, ""));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The stores that hold each shard in sync.
async fn holders(cluster: &ProcessCluster) -> Vec<BTreeSet<StoreId>> {
    let records = records(cluster).await.into_values();
    let stores = records.map(|record| record.in_sync.iter().map(|entry| entry.store).collect());
    stores.collect()
}

async fn loaded(replicas: usize) -> (ProcessCluster, Load) {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(replicas));
    create(&cluster.client()).await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    (cluster, load)
}

/// PE16: no request fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_of_one_replica_move_while_all_goes_on() {
    let (cluster, load) = loaded(1).await;
    operate(&cluster, &["move", "--shards", "00-7f", "--to", "n3"]);
    let after = holders(&cluster).await;
    assert!(
        after[..128]
            .iter()
            .all(|stores| *stores == after[0] && stores.len() == 1)
    );
    load.until_more(20).await;
    let plan = operate(&cluster, &["rebalance"]);
    assert!(
        plan.starts_with("node\tshards before\tshards after\tto copy\n"),
        "{plan}"
    );
    assert_eq!(holders(&cluster).await, after);
    operate(&cluster, &["rebalance", "--yes"]);
    let counts = |stores: Vec<BTreeSet<StoreId>>| {
        let all: BTreeSet<StoreId> = stores.iter().flatten().copied().collect();
        let count = |store| {
            stores
                .iter()
                .filter(|holders| holders.contains(&store))
                .count()
        };
        all.into_iter().map(count).collect::<Vec<_>>()
    };
    let counts = counts(holders(&cluster).await);
    assert!(
        counts.len() == 3 && counts.iter().all(|count| (70..=93).contains(count)),
        "{counts:?}"
    );
    load.end(&cluster.client()).await;
}

/// PE16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_emptied_and_stops_for_good() {
    let (mut cluster, load) = loaded(2).await;
    operate(&cluster, &["rebalance", "--without", "n1", "--yes"]);
    let holders = holders(&cluster).await;
    let all: BTreeSet<StoreId> = holders.iter().flatten().copied().collect();
    assert_eq!(all.len(), 2);
    block_in_place(|| cluster.end_node(0, End::Stopped));
    load.until_more(20).await;
    // The node is still registered, and in the way of nothing.
    operate(&cluster, &["rebalance", "--yes"]);
    operate(&cluster, &["set-replication", "--replicas", "1"]);
    load.end(&cluster.client()).await;
}

/// PE16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_get_more_replicas_and_fewer_again_while_all_goes_on() {
    let (cluster, load) = loaded(1).await;
    for (replicas, hot) in [("3", "2"), ("1", "1")] {
        let wish = ["set-replication", "--replicas", replicas, "--hot", hot];
        operate(&cluster, &wish);
        until_all(&cluster, "replicas are as wished", |record| {
            record.in_sync.len().to_string() == replicas && record.learners.is_empty()
        })
        .await;
        load.until_more(20).await;
    }
    load.end(&cluster.client()).await;
}
