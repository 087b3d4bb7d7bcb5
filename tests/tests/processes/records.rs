//! Waiting until the records of shards are as a test means them to become.

use simshard_cluster::{FileKeyValues, shard_records};
use simshard_testkit::{ProcessCluster, until};
use simshard_topology::replication::{ShardRecord, ShardRecords};

/// The records of all shards, of a cluster whose metadata are in a file.
pub(crate) async fn records(cluster: &ProcessCluster) -> ShardRecords {
    let keys = FileKeyValues::at(cluster.metadata_file());
    shard_records(&keys).await.unwrap()
}

/// Waits until the records of all shards are so.
pub(crate) async fn until_all(
    cluster: &ProcessCluster,
    what: &str,
    is_so: impl Fn(&ShardRecord) -> bool,
) {
    until(what, async || {
        let records = records(cluster).await;
        !records.is_empty() && records.values().all(|record| is_so(record))
    })
    .await;
}

/// Waits until each shard has this many stores in sync.
pub(crate) async fn until_in_sync(cluster: &ProcessCluster, stores: usize) {
    let what = format!("each shard has {stores} stores in sync");
    until_all(cluster, &what, |record| record.in_sync.len() == stores).await;
}

/// Waits until a shard has fewer stores in sync.
pub(crate) async fn until_short(cluster: &ProcessCluster, stores: usize) {
    let what = format!("a shard has fewer than {stores} stores in sync");
    until(&what, async || {
        let records = records(cluster).await;
        records.values().any(|record| record.in_sync.len() < stores)
    })
    .await;
}
