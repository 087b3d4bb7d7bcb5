//! Where the replicas of a shard are to be, and which of them leaves where there are too many (PE16).

use super::{ShardRecord, StoreId, View};
use crate::ShardId;

impl View {
    /// Whether the shard has more replicas than are wished for, the own store is one that leaves for that, and another
    /// one answers searches.
    pub(super) fn is_replaced(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let are_enough = self.live_and_whole(shard, record) > usize::from(record.want);
        self.is_surplus(shard, record, self.own) && !self.is_last_hot(shard, record) && are_enough
    }

    /// Whether the shard has all its replicas without a learner, which replaces none of them either: its target was
    /// changed, or others came before it.
    pub(super) fn is_unneeded(&self, shard: ShardId, record: &ShardRecord) -> bool {
        self.live_and_whole(shard, record) >= usize::from(record.want)
            && !self.comes_beside(shard, record)
    }

    /// Whether a store in sync leaves, as the shard has more replicas than are wished for. The last ones do, and those
    /// that are no target before the others.
    pub(super) fn is_surplus(&self, shard: ShardId, record: &ShardRecord, store: StoreId) -> bool {
        let in_sync = record.in_sync.iter().map(|entry| entry.store);
        let (targets, others): (Vec<StoreId>, Vec<StoreId>) =
            in_sync.partition(|store| self.may_stay(shard, *store));
        let mut stay_first = targets.into_iter().chain(others);
        stay_first.position(|other| other == store) >= Some(usize::from(record.want))
    }

    /// Whether a store is a target of a shard, or the shard has none.
    pub(super) fn may_stay(&self, shard: ShardId, store: StoreId) -> bool {
        let target = self.targets.get(&shard);
        target.is_none_or(|target| target.contains(&store))
    }

    /// Whether the own store is a target that comes for one in sync that is none.
    pub(super) fn comes_beside(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let mut in_sync = record.in_sync.iter();
        self.is_target(shard)
            && record.in_sync.len() <= usize::from(record.want)
            && in_sync.any(|entry| !self.may_stay(shard, entry.store))
    }

    pub(super) fn is_target(&self, shard: ShardId) -> bool {
        let target = self.targets.get(&shard);
        target.is_some_and(|target| target.contains(&self.own))
    }
}
