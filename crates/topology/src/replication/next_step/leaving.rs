//! Why a store leaves a shard by itself, and when it may.

use super::{Epoch, Role, Searched, ShardRecord, Step, StoreId, View};
use crate::ShardId;

/// Live stores in sync that a store which stops leaves to a shard, at least.
const LEFT_BY_A_STOP: usize = 2;

/// Why a store leaves a shard by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The disk does not answer.
    DiskHangs,
    /// The disk is much slower than those of others.
    SlowDisk,
    /// There is little room for more, or none.
    NoRoom,
    /// The process is about to stop.
    Stops,
    /// A file of the shard is damaged.
    Damage,
    /// No store in sync answers, so that nothing can be copied.
    NoSource,
    /// The shard has more replicas than are wished for, and this one is not among those that are to stay.
    Surplus,
}

impl View {
    /// The step by which this store leaves, and why.
    pub(super) fn own_leaving(
        &self,
        shard: ShardId,
        record: &ShardRecord,
    ) -> Option<(Step, Cause)> {
        let first = |causes: &[(bool, Cause)]| {
            let mut causes = causes.iter().filter(|(holds, _)| *holds);
            causes.next().map(|(_, cause)| *cause)
        };
        if let Some(learner) = record.learner(self.own) {
            let cause = first(&self.against_learning(shard, record, learner.added))?;
            return Some((Step::DropLearner(self.own), cause));
        }
        let cause = first(&self.against_staying(shard, record)).filter(|_| record.may_evict())?;
        let waits = cause == Cause::Surplus && !self.moves_go_on;
        (!waits).then_some((Step::Evict(self.own), cause))
    }

    /// What may speak against this store as a learner, and whether it does. One that takes no inserts would fail them
    /// (PE6). With a slow disk it would hold up each one (PE13). A copy that is damaged is of no use (PE9).
    fn against_learning(
        &self,
        shard: ShardId,
        record: &ShardRecord,
        added: Epoch,
    ) -> [(bool, Cause); 7] {
        // Until the shard begins anew, the damage may be in its old files.
        let anew = [Role::Copying { added }, Role::Copied { added }];
        let role = self.roles.get(&shard);
        let has_begun = role.is_some_and(|role| anew.contains(role));
        // Without a report of a store in sync it cannot begin, and refuses each change meanwhile.
        let mut in_sync = record.in_sync.iter();
        let is_stuck = !has_begun && in_sync.all(|entry| self.silent.contains(&entry.store));
        let is_damaged = has_begun && self.is_damaged(self.own, shard);
        let is_urgent = self.is_urgent(record);
        [
            (self.stops, Cause::Stops),
            (self.disk_hangs, Cause::DiskHangs),
            (
                !self.has_room || self.is_fuller(record) && !is_urgent,
                Cause::NoRoom,
            ),
            (self.is_slow(record), Cause::SlowDisk),
            (is_damaged, Cause::Damage),
            (is_stuck, Cause::NoSource),
            (self.is_unneeded(shard, record), Cause::Surplus),
        ]
    }

    /// What may speak against this store as one in sync, and whether it does. With a disk that hangs or is slow it would
    /// hold up each change (PE7, PE13), and with a full one refuse each insert (PE15). If a file of the shard is damaged, it
    /// fails those that read it (PE9).
    fn against_staying(&self, shard: ShardId, record: &ShardRecord) -> [(bool, Cause); 6] {
        let live = record.in_sync.iter().map(|entry| entry.store);
        let mut live = live.filter(|store| self.live.contains(store)).peekable();
        let has_live = live.peek().is_some();
        let has_whole = live.any(|store| !self.is_damaged(store, shard));
        let is_damaged =
            self.is_damaged(self.own, shard) && self.roles.get(&shard) == Some(&Role::InSync);
        let is_needed = self.is_needed(shard, record);
        [
            (self.disk_hangs && has_live, Cause::DiskHangs),
            (self.stops && self.may_stop(shard, record), Cause::Stops),
            (self.is_slow(record) && !is_needed, Cause::SlowDisk),
            (self.is_fuller(record) && !is_needed, Cause::NoRoom),
            (is_damaged && has_whole, Cause::Damage),
            (self.is_replaced(shard, record), Cause::Surplus),
        ]
    }

    /// Whether a shard goes on well without the own store, which is about to stop (PE19).
    fn may_stop(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let others = record.in_sync.iter().map(|entry| entry.store);
        let others = others.filter(|store| *store != self.own && self.live.contains(store));
        let others = others.filter(|store| !self.is_damaged(*store, shard));
        others.count() >= LEFT_BY_A_STOP && !self.is_last_hot(shard, record)
    }

    /// Whether the disk of the own store is slow beside those of most others in sync.
    fn is_slow(&self, record: &ShardRecord) -> bool {
        self.most_others(record, |store| self.much_faster.contains(&store))
    }

    /// Whether the own store lacks room, and most others in sync do not.
    pub(super) fn is_fuller(&self, record: &ShardRecord) -> bool {
        let lacks = |store: StoreId| self.lacking_room.contains(&store);
        lacks(self.own) && self.most_others(record, |store| !lacks(store))
    }

    /// Whether something holds of most other stores in sync. Those must live, and be as many as an eviction leaves at
    /// least, or all.
    fn most_others(&self, record: &ShardRecord, holds: impl Fn(StoreId) -> bool) -> bool {
        let others = record.in_sync.iter().map(|entry| entry.store);
        let others: Vec<StoreId> = others.filter(|store| *store != self.own).collect();
        let holds = |store: &&StoreId| self.live.contains(store) && holds(**store);
        let holding = others.iter().filter(holds).count();
        holding > others.len() / 2 && holding >= record.least_in_sync().min(others.len())
    }

    /// Whether a shard is better off with a store that is slow or lacks room than without it. Then only one would be left,
    /// another one has left lately, or no other answers searches.
    fn is_needed(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let is_last_hot = self.is_last_hot(shard, record);
        record.in_sync.len() <= 2 || self.lately_left.contains(shard) || is_last_hot
    }

    /// Whether the own store is hot, and no other one answers searches.
    pub(super) fn is_last_hot(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let mut others = record.in_sync.iter().map(|entry| entry.store);
        let searches = |store| {
            let is_hot = store != self.own && record.is_hot(store);
            is_hot && self.searched(shard, record, store) == Searched::Well
        };
        record.is_hot(self.own) && !others.any(searches)
    }
}
