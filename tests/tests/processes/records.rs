//! Waiting until the records of shards are as a test means them to become, and losing those of corpora.

use simshard_cluster::{
    FileKeyValues, KeyValue, KeyValueStore, Outcome, Transaction, shard_records,
};
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

async fn commit(cluster: &ProcessCluster, change: Transaction) {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let outcome = keys.commit(&change).await.unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)));
}

/// Loses all that the metadata says of corpora. Answers what that was.
pub(crate) async fn forget_corpora(cluster: &ProcessCluster) -> Vec<KeyValue> {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let lost = keys.read("corpora/").await.unwrap().pairs;
    assert!(lost.len() > 1, "{lost:?}");
    let forget = |change: Transaction, pair: &KeyValue| change.delete(&*pair.key);
    commit(cluster, lost.iter().fold(Transaction::new(), forget)).await;
    lost
}

/// Writes what was lost.
pub(crate) async fn put_corpora_back(cluster: &ProcessCluster, lost: Vec<KeyValue>) {
    let put = |change: Transaction, pair: KeyValue| change.put(pair.key, pair.value);
    commit(cluster, lost.into_iter().fold(Transaction::new(), put)).await;
}
