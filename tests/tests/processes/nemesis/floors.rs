//! Tombstones go while a cluster is disturbed. A test says how many went, and fails if none did. They go in long runs only:
//! a short one has all that it can do.

use std::path::{Path, PathBuf};

use simshard_client::Fingerprint;
use simshard_cluster::{key_values_at, shard_records};
use simshard_topology::replication::{Epoch, ShardRecords};
use simshard_topology::{ShardId, Version};

use crate::scrubs::shards;
use crate::scrubs::stores::open;

/// How long ago a document must have been removed, and how often nodes look for such.
pub(super) const SECONDS: u32 = 1;

/// Says how many shards are settled, of which one must be.
pub(super) async fn check_settled(metadata: &str) -> ShardRecords {
    let keys = key_values_at(metadata).unwrap();
    let records = shard_records(&*keys).await.unwrap();
    let settled = records
        .values()
        .filter(|record| record.settled > Version::NONE);
    let settled = settled.count();
    println!("{settled} of {} shards are settled", records.len());
    assert!(settled > 0, "no shard is settled");
    records
}

/// Says how many tombstones went from the directories of all nodes, which do not run: more than none. These documents were
/// removed last, so each has left one in each replica of its shards.
pub(super) async fn check_dropped(
    metadata: &str,
    directories: impl Iterator<Item = PathBuf>,
    removed: &[Fingerprint],
) {
    let records = check_settled(metadata).await;
    let replicas = |shard: ShardId| records[&shard].in_sync.len() as u64;
    let of_document =
        |fingerprint: &Fingerprint| shards(*fingerprint).into_iter().map(replicas).sum::<u64>();
    let left: u64 = removed.iter().map(of_document).sum();
    // Some of these are of other documents.
    let there: u64 = directories
        .map(|directory| tombstones(&directory, &records))
        .sum();
    println!("{there} tombstones are there, of {left} or more that were");
    assert!(there < left, "no tombstone was dropped");
}

/// How many tombstones a store has, of shards that it holds in sync.
fn tombstones(directory: &Path, records: &ShardRecords) -> u64 {
    let store = open(directory, records);
    let in_shard = |shard| {
        let pinned = store.pin(shard, Epoch::NONE).unwrap();
        pinned.map_or(0, |pinned| pinned.tombstones(Version::MAX).unwrap().1)
    };
    ShardId::all().map(in_shard).sum()
}
