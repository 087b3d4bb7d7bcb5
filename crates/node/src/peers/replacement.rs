//! How long a store takes shards at once, as its node lost the one before it. The metadata keeps that for its next start.
//!
//! # Invariants
//! - PE21: a store that took the place of a lost one takes at once all shards that lack a replica. That ends once each has
//!   all of them in sync, however often the node starts before.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, KeyValueStore, end_replacement};
use simshard_topology::replication::ShardRecords;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use super::Peers;
use crate::patience::in_time;

/// Before the metadata is told once more, where that failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Follows the records until no shard lacks a replica, and tells the metadata.
pub(super) async fn run(
    peers: &Peers,
    keys: &dyn KeyValueStore,
    mut followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let is_whole = |layout: &Arc<ClusterLayout>| layout.records().is_some_and(are_whole);
    // Without a sender, the process ends.
    if !peers.takes_at_once() || followed.wait_for(is_whole).await.is_err() {
        return;
    }
    peers.takes_at_once.send_replace(false);
    let mut is_told = false;
    while let Err(error) = in_time(end_replacement(keys, peers.own)).await {
        if !is_told {
            warn!(%error, "the metadata cannot be told that no shard lacks a replica, trying again");
        }
        is_told = true;
        sleep(PAUSE).await;
    }
}

/// Whether each shard has as many stores in sync as are wished for. One that copies a shard may lose it again.
fn are_whole(records: &ShardRecords) -> bool {
    let mut records = records.values();
    records.all(|record| record.in_sync.len() >= record.want.into())
}

#[cfg(test)]
mod tests {
    use simshard_topology::ShardId;
    use simshard_topology::replication::{Learner, ShardRecord, StoreId};

    use super::*;

    /// PE21.
    #[test]
    fn a_shard_that_is_being_copied_is_not_whole() {
        let stores = [1, 2].map(|number| StoreId([number; 16]));
        let whole = ShardRecord::first(0, &stores, 7);
        let mut copied = whole.clone();
        let left = copied.in_sync.pop().unwrap();
        copied.learners.push(Learner {
            store: left.store,
            added: copied.epoch,
        });
        let of = |last: ShardRecord| {
            let records = [
                (ShardId(1), Arc::new(whole.clone())),
                (ShardId(2), Arc::new(last)),
            ];
            ShardRecords::from(records)
        };
        assert!(are_whole(&of(whole.clone())));
        assert!(!are_whole(&of(copied)));
    }
}
