//! Which shards a store has left lately, as far as this process saw. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use simshard_topology::replication::{ShardRecord, ShardRecords};
use simshard_topology::{ShardId, ShardSet};
use tokio::time::Instant;

/// How long a shard counts as one that a store has left lately.
const LATELY: Duration = Duration::from_secs(30);

/// The records that were seen last, and when a store left each shard.
#[derive(Debug, Default)]
pub(super) struct Leavings {
    records: ShardRecords,
    left: BTreeMap<ShardId, Instant>,
}

impl Leavings {
    /// Takes note of the records that there are now. Answers the shards that a store in sync has left lately.
    pub(super) fn look(&mut self, now: Instant, records: &ShardRecords) -> ShardSet {
        for (&shard, record) in records {
            let before = self.records.get(&shard);
            if before.is_some_and(|before| has_left(before, record)) {
                self.left.insert(shard, now);
            }
        }
        self.records.clone_from(records);
        self.left.retain(|_, left| now < *left + LATELY);
        self.left.keys().copied().collect()
    }
}

/// Whether a store in sync is not so any more.
fn has_left(before: &Arc<ShardRecord>, record: &Arc<ShardRecord>) -> bool {
    let mut in_sync = before.in_sync.iter();
    !Arc::ptr_eq(before, record) && in_sync.any(|entry| record.in_sync(entry.store).is_none())
}

#[cfg(test)]
mod tests {
    use simshard_topology::replication::StoreId;

    use super::*;

    const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

    #[test]
    fn a_shard_that_a_store_has_left_is_known_for_a_while() {
        let (one, other) = (ShardId(7), ShardId(8));
        let records = |stores: &[StoreId]| {
            let record = Arc::new(ShardRecord::first(0, stores, 7));
            let rest = Arc::new(ShardRecord::first(0, &STORES, 7));
            ShardRecords::from([(one, record), (other, rest)])
        };
        let mut now = Instant::now();
        let mut leavings = Leavings::default();
        assert!(leavings.look(now, &records(&STORES[..2])).is_empty());
        // One comes.
        assert!(leavings.look(now, &records(&STORES)).is_empty());
        let left = leavings.look(now, &records(&STORES[1..]));
        assert_eq!(left, ShardSet::from_iter([one]));
        now += LATELY - Duration::from_secs(1);
        assert_eq!(leavings.look(now, &records(&STORES)), left);
        now += Duration::from_secs(1);
        assert!(leavings.look(now, &records(&STORES)).is_empty());
    }
}
