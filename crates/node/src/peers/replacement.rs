//! Which shards a store takes at once, as its node lost the one before it. The metadata keeps that for its next start.
//!
//! # Invariants
//! - PE21: a store that took the place of a lost one takes each shard at once that lacks a live replica, if it may take
//!   any. Once it could copy none of these any more, it keeps only those that still lack one, and drops each of them when
//!   it is whole. If the node starts anew before the last one is dropped, it begins again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, KeyValueStore, end_replacement};
use simshard_topology::ShardSet;
use simshard_topology::replication::{ShardRecord, ShardRecords, StoreId};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::warn;

use super::Peers;
use super::health::INTERVAL;
use crate::patience::in_time;

/// Before the metadata is told once more, where that failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Looks until no shard is taken at once any more, and tells the metadata.
pub(super) async fn run(
    peers: &Peers,
    keys: &dyn KeyValueStore,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if peers.taken_at_once().is_empty() {
        return;
    }
    loop {
        ticks.tick().await;
        let layout = Arc::clone(&followed.borrow());
        let dead = peers.dead(&layout);
        let left = layout
            .records()
            .and_then(|records| left(records, peers.own, &dead));
        if left.is_some_and(|left| peers.end_at_once_but(&left)) {
            break;
        }
    }
    let mut is_told = false;
    while let Err(error) = in_time(end_replacement(keys, peers.own)).await {
        if !is_told {
            warn!(%error, "the metadata cannot be told that no shard lacks a replica, trying again");
        }
        is_told = true;
        sleep(PAUSE).await;
    }
}

/// The shards that lack a live replica and that a store does not hold in sync itself, once it can copy none of them.
fn left(records: &ShardRecords, own: StoreId, dead: &BTreeSet<StoreId>) -> Option<ShardSet> {
    let lacks = |record: &ShardRecord| record.in_sync(own).is_none() && lacks(record, dead);
    let lacking = || records.iter().filter(|(_, record)| lacks(record));
    if lacking().any(|(_, record)| may_be_copied(record, dead)) {
        return None;
    }
    Some(lacking().map(|(shard, _)| *shard).collect())
}

/// Whether fewer stores live that are in sync than are wished for. One that copies the shard may lose it again, and a dead
/// one is about to leave.
fn lacks(record: &ShardRecord, dead: &BTreeSet<StoreId>) -> bool {
    let live = record.in_sync.iter().map(|entry| entry.store);
    live.filter(|store| !dead.contains(store)).count() < usize::from(record.want)
}

/// Whether a shard has a store that others copy.
pub(super) fn may_be_copied(record: &ShardRecord, dead: &BTreeSet<StoreId>) -> bool {
    let mut in_sync = record.in_sync.iter();
    !record.is_rebuilt() && in_sync.any(|entry| !dead.contains(&entry.store))
}

#[cfg(test)]
mod tests {
    use simshard_cluster::MemoryKeyValues;
    use simshard_topology::ShardId;
    use simshard_topology::replication::{Learner, ShardRecord, StoreId};
    use tokio::time::timeout;

    use super::super::Takeover;
    use super::super::asked::tests::layout;
    use simshard_transport::Dialer;

    use super::*;

    /// PE21. What comes to lack a replica later is as urgent as in any other store.
    #[tokio::test(start_paused = true)]
    async fn a_shard_that_was_whole_is_not_taken_at_once_any_more() {
        let takeover = Takeover {
            at_once: true,
            ..Takeover::default()
        };
        let peers = Peers::new(StoreId([1; 16]), 1, takeover, Dialer::PLAIN);
        let some = ShardSet::from_iter([ShardId(2)]);
        assert!(!peers.end_at_once_but(&some));
        assert!(!peers.end_at_once_but(&ShardSet::ALL));
        assert_eq!(peers.taken_at_once(), some);
        let whole = watch::Sender::new(layout(2, &[1, 2]).await);
        let keys = MemoryKeyValues::new();
        let ends = run(&peers, &keys, whole.subscribe());
        // The metadata of this test knows of no store.
        timeout(PAUSE / 2, ends).await.ok();
        assert!(peers.taken_at_once().is_empty());
    }

    /// PE21.
    #[test]
    fn all_are_taken_at_once_until_none_that_lacks_a_replica_can_be_copied() {
        let stores = [1, 2].map(|number| StoreId([number; 16]));
        let whole = ShardRecord::first(0, &stores, 7);
        let mut alone = whole.clone();
        let gone = alone.in_sync.pop().unwrap();
        let mut copied = alone.clone();
        copied.learners.push(Learner {
            store: gone.store,
            added: copied.epoch,
        });
        let mut rebuilt = alone.clone();
        rebuilt.hot = 0;
        let left_by = |own: StoreId, last: &ShardRecord, dead: &[StoreId]| {
            let records = [(ShardId(1), &whole), (ShardId(2), last)];
            let records = records.map(|(shard, record)| (shard, Arc::new(record.clone())));
            let dead = dead.iter().copied().collect();
            left(&ShardRecords::from(records), own, &dead)
        };
        let left_of = |last: &ShardRecord, dead: &[StoreId]| left_by(StoreId([9; 16]), last, dead);
        let some = |shards: &[u8]| Some(shards.iter().copied().map(ShardId).collect());
        assert_eq!(left_of(&whole, &[]), some(&[]));
        // The other store is yet to leave it out.
        assert_eq!(left_of(&whole, &stores[1..]), None);
        for short in [&alone, &copied] {
            assert_eq!(left_of(short, &[]), None);
        }
        assert_eq!(left_of(&alone, &stores), some(&[1, 2]));
        assert_eq!(left_of(&rebuilt, &[]), some(&[2]));
        // It has the shard, and others lack it.
        assert_eq!(left_by(stores[0], &alone, &[]), some(&[]));
    }
}
