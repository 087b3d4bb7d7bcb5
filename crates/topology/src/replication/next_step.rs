//! The next step of the record of a shard, as a store chooses it that holds the shard, or may come to hold it. It takes
//! dead stores out, and itself back in: as a learner first, and in sync once it has copied all. Pure.
//!
//! # Invariants
//! - PE3: a dead store leaves only if as many stores in sync as the record needs have answered lately, or all that it has.
//!   So a process that is cut off from all others takes none out where two must be in sync. The own store counts only if
//!   its disk is not late: else it may never write down that the other has left. An eviction that would be refused holds
//!   up no other step.
//! - PE4: the own store comes only to a shard that has too few replicas and a live store in sync that reaches it. To one
//!   that it never held, it comes only after a while. A dead learner whose place it takes leaves.
//! - PE6: a store that can take no inserts, as it has no room or its disk hangs, is no learner: it neither comes nor stays
//!   one.
//! - PE7: a store whose disk hangs leaves the shards that have another live store in sync.
//! - PE9: a store leaves a shard of which a file is damaged, if another live store in sync has told of no damage to it. It
//!   comes back with a copy.
//! - PE13: a store whose disk is slow leaves a shard if most others in sync are much faster. They must have answered lately,
//!   and be enough. It leaves only if no store has left the shard lately, and then stays away for a while.
//! - PE19: a store that is about to stop leaves a shard of which two other live stores are in sync, and one of them answers
//!   searches. So two stay in its record if all stop at once. The store comes to no shard, stays no learner, and
//!   takes none of the others out.
//! - PE10: where each hot store is dead or damaged and none may leave, a live store in sync gets hot.
//! - PE16: a store that is a target of a shard comes beside those that hold it, one at a time. One of them must be no
//!   target. If more hold it than are wished for, the last ones leave, those that are no target first. One that answers
//!   searches stays, and as many as are wished for live and are whole. A learner that nothing needs any more leaves too.
//!   One whose node is drained comes to no other shard.
//! - PE17: shards that lack nothing move to a store in a limited number at once. While an operator has paused moves, none
//!   begins. A shard that is short of replicas waits for no turn.
//! - PE18: a store takes all steps that only move shards together, and then none for a while, as each holds up requests.
//! - PE20: a cold store gets hot in the place of a hot one that searches a larger part of what it holds, by more than is
//!   tolerated. Nothing else is to be done with the shard then, and all its stores live. Once the new one has its tables,
//!   the one gets cold that searches the largest part by then. So parts come closer, and such steps end. None is taken while
//!   moves are paused.
//! - PE22: after a store came or left, each of two stores in sync can seal the record alone. One that cannot takes a step by
//!   which only the epoch changes, once no other step is due. It waits for that as for a move (PE18). Where more than two
//!   replicas are wished for, this holds only if a single store was in sync before.
//! - PE15: a store that lacks room leaves a shard as one with a slow disk does, if most others in sync have room. It stays
//!   away until it has ample room. It comes earlier where a dead store cannot leave without it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::heat::Searched;
use super::record::{Epoch, ShardRecord, StoreId};
use super::replica::Role;
use super::step::Step;
use crate::{ShardId, ShardSet};

mod leaving;
mod placing;
mod sharing;
#[cfg(test)]
mod tests;
mod turns;

pub use leaving::Cause;
pub use turns::MOST_AT_ONCE;

/// What a store knows of itself and of the others when it chooses the next step.
#[derive(Clone, Debug)]
pub struct View {
    /// The store itself.
    pub own: StoreId,
    /// The others that have answered lately.
    pub live: BTreeSet<StoreId>,
    /// Those that are dead.
    pub dead: BTreeSet<StoreId>,
    /// Those that do not answer; they may be dead.
    pub silent: BTreeSet<StoreId>,
    /// Those that have said lately that they reach the own store.
    pub reaching: BTreeSet<StoreId>,
    /// What the own store does for each shard.
    pub roles: BTreeMap<ShardId, Role>,
    /// Whether the own store can take inserts.
    pub has_room: bool,
    /// Whether it has room for shards that it never held.
    pub has_room_for_copies: bool,
    /// The stores that will soon refuse inserts, or do so, the own one too.
    pub lacking_room: BTreeSet<StoreId>,
    /// Whether the own store waits for a disk that does not answer.
    pub disk_hangs: bool,
    /// Whether it has waited for its disk for a while, so that the disk may hang.
    pub disk_is_late: bool,
    /// The stores whose disks have been much faster than the own one for some time.
    pub much_faster: BTreeSet<StoreId>,
    /// Whether the process of the own store is about to stop.
    pub stops: bool,
    /// Whether the own store stays away for a while, as it left because of its disk.
    pub rests: bool,
    /// The shards that a store has left lately.
    pub lately_left: ShardSet,
    /// The shards of which each store, the own one too, has found a file damaged.
    pub damaged: BTreeMap<StoreId, ShardSet>,
    /// The addition that each finished copy of the own store is for.
    pub copied: BTreeMap<ShardId, Epoch>,
    /// The shards of the own store whose tables are being made.
    pub unbuilt: ShardSet,
    /// The same of each other store.
    pub unbuilt_by_others: BTreeMap<StoreId, ShardSet>,
    /// The shards that have been short of replicas for long.
    pub long_short: ShardSet,
    /// The stores that are to hold a shard, where an operator has chosen some.
    pub targets: Arc<BTreeMap<ShardId, BTreeSet<StoreId>>>,
    /// Whether an operator lets the own store come to no shard that it is no target of.
    pub is_drained: bool,
    /// Whether an operator lets no shard begin to move.
    pub moves_are_paused: bool,
    /// The shards that the own store may begin to copy now, of those that it never held.
    pub on_turn: ShardSet,
    /// Whether steps are taken now that might wait (PE18).
    pub moves_go_on: bool,
    /// The shards for which the own store gets hot in the place of another one (PE20).
    pub to_warm: ShardSet,
    /// The store that gets cold of each shard of which more are hot than wished.
    pub to_cool: BTreeMap<ShardId, StoreId>,
}

impl View {
    /// A store with nothing wrong, which holds nothing and knows no other.
    pub fn alone(own: StoreId) -> Self {
        Self {
            own,
            live: BTreeSet::new(),
            dead: BTreeSet::new(),
            silent: BTreeSet::new(),
            reaching: BTreeSet::new(),
            roles: BTreeMap::new(),
            has_room: true,
            has_room_for_copies: true,
            lacking_room: BTreeSet::new(),
            disk_hangs: false,
            disk_is_late: false,
            much_faster: BTreeSet::new(),
            stops: false,
            rests: false,
            lately_left: ShardSet::EMPTY,
            damaged: BTreeMap::new(),
            copied: BTreeMap::new(),
            unbuilt: ShardSet::EMPTY,
            unbuilt_by_others: BTreeMap::new(),
            long_short: ShardSet::EMPTY,
            targets: Arc::default(),
            is_drained: false,
            moves_are_paused: false,
            on_turn: ShardSet::ALL,
            moves_go_on: true,
            to_warm: ShardSet::EMPTY,
            to_cool: BTreeMap::new(),
        }
    }

    /// The next step of a shard, if there is one.
    pub fn step(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        self.step_and_cause(shard, record).map(|(step, _)| step)
    }

    /// The next step of a shard, and why the own store leaves, if it does by that.
    pub fn step_and_cause(
        &self,
        shard: ShardId,
        record: &ShardRecord,
    ) -> Option<(Step, Option<Cause>)> {
        if !record.names(self.own) {
            return Some((self.coming(shard, record)?, None));
        }
        if let Some((step, cause)) = self.own_leaving(shard, record) {
            return Some((step, Some(cause)));
        }
        if self.stops {
            return None;
        }
        let due = || {
            let promotion = self.promotion(shard, record);
            let heating = || self.heating(shard, record);
            let confirming = record.needs_other(self.own).then_some(Step::Confirm);
            promotion.or_else(heating).or(confirming)
        };
        let due = || due().filter(|_| self.moves_go_on || !self.may_wait(shard, record));
        Some((self.dead_leaving(record).or_else(due)?, None))
    }

    /// The step by which the stores that search a shard change.
    fn heating(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        let searched = |store| self.searched(shard, record, store);
        let is_due = self.to_warm.contains(shard);
        let warm = || is_due.then_some(Step::Warm(self.own));
        let to_cool = self.to_cool.get(&shard).copied();
        record.heating(self.own, searched, to_cool).or_else(warm)
    }

    /// Whether another store has yet to make the tables of a shard.
    fn is_unbuilt(&self, store: StoreId, shard: ShardId) -> bool {
        let of_store = self.unbuilt_by_others.get(&store);
        of_store.is_some_and(|shards| shards.contains(shard))
    }

    /// Whether a store has found a file of a shard damaged.
    fn is_damaged(&self, store: StoreId, shard: ShardId) -> bool {
        let of_store = self.damaged.get(&store);
        of_store.is_some_and(|shards| shards.contains(shard))
    }

    /// The step by which a dead store leaves.
    fn dead_leaving(&self, record: &ShardRecord) -> Option<Step> {
        let least = record.least_in_sync().min(record.in_sync.len());
        if self.live_in_sync(record) < least {
            return None;
        }
        if let Some(learner) = self.dead_learner(record) {
            return Some(Step::DropLearner(learner));
        }
        let mut in_sync = record.in_sync.iter();
        let dead = in_sync.find(|entry| self.dead.contains(&entry.store));
        let dead = dead.filter(|_| record.may_evict());
        dead.map(|entry| Step::Evict(entry.store))
    }

    fn dead_learner(&self, record: &ShardRecord) -> Option<StoreId> {
        let mut learners = record.learners.iter().map(|learner| learner.store);
        learners.find(|store| self.dead.contains(store))
    }

    /// The step by which this node gets in sync.
    fn promotion(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        let added = record.learner(self.own)?.added;
        let has_copied = self.roles.get(&shard) == Some(&Role::Copied { added });
        let counts = self.copied.get(&shard) == Some(&added);
        let is_built = !self.unbuilt.contains(shard);
        (has_copied && counts && is_built).then_some(Step::Promote {
            store: self.own,
            copied: added,
        })
    }

    /// Whether a store answers searches of a shard, if it is hot. One that is to leave soon does not count.
    pub fn searched(&self, shard: ShardId, record: &ShardRecord, store: StoreId) -> Searched {
        let leaves = self.is_surplus(shard, record, store);
        if leaves || self.dead.contains(&store) || self.is_damaged(store, shard) {
            return Searched::Lost;
        }
        let is_well = if store == self.own {
            !self.disk_hangs && !self.unbuilt.contains(shard)
        } else {
            self.live.contains(&store) && !self.is_unbuilt(store, shard)
        };
        if is_well {
            Searched::Well
        } else {
            Searched::Unsure
        }
    }

    /// The step by which this node comes back to a shard that it held, or takes one that is short of replicas (PE4). A dead
    /// learner leaves before: one store in sync that is left alone cannot tell whether the learner is dead, or itself cut
    /// off.
    fn coming(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        let is_wanted = self.is_wanted(shard, record) && self.may_begin(shard, record);
        if !is_wanted || !self.is_reached(record) {
            return None;
        }
        if record.is_short() || record.learners.is_empty() {
            return Some(Step::AddLearner(self.own));
        }
        self.dead_learner(record).map(Step::DropLearner)
    }

    /// Whether the own store would come to a shard if stores in sync reached it. None comes to one that is yet to be
    /// filled: what fills it goes to one store.
    pub fn is_wanted(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let may_fill_in = self.is_target(shard) || !self.is_drained;
        let is_former = self.roles.get(&shard) == Some(&Role::None);
        let is_asked_for = self.is_target(shard) || self.long_short.contains(shard);
        let is_new = is_asked_for && self.has_room_for_copies;
        let is_short = record.is_short_without(&self.dead);
        let is_meant = self.comes_beside(shard, record) || is_short;
        let may_come = may_fill_in && (is_former || is_new);
        let stays_away = self.rests || self.is_fuller(record);
        let can_write = self.has_room && !self.disk_hangs;
        let can_come = can_write && !self.stops && (!stays_away || self.is_urgent(record));
        let may_be_joined = !record.names(self.own) && !record.is_rebuilt();
        may_be_joined && is_meant && may_come && can_come
    }

    /// Whether a dead store cannot leave before another one is in sync.
    fn is_urgent(&self, record: &ShardRecord) -> bool {
        self.live_in_sync(record) < record.least_in_sync()
    }

    /// Whether a store in sync that lives reaches the own one. Else it would be taken for dead, and changes that wait for
    /// it would fail until then.
    fn is_reached(&self, record: &ShardRecord) -> bool {
        let mut in_sync = record.in_sync.iter().map(|entry| entry.store);
        in_sync.any(|store| self.live.contains(&store) && self.reaching.contains(&store))
    }

    /// How many stores in sync have answered lately.
    fn live_in_sync(&self, record: &ShardRecord) -> usize {
        let in_sync = record.in_sync.iter().map(|entry| entry.store);
        in_sync.filter(|store| self.lives(*store)).count()
    }

    /// How many of them have found no damage to a shard.
    fn live_and_whole(&self, shard: ShardId, record: &ShardRecord) -> usize {
        let in_sync = record.in_sync.iter().map(|entry| entry.store);
        let is_fine = |store: &StoreId| self.lives(*store) && !self.is_damaged(*store, shard);
        in_sync.filter(is_fine).count()
    }

    /// Whether a store has answered lately. This one has if its disk has.
    fn lives(&self, store: StoreId) -> bool {
        let own_lives = !self.disk_is_late;
        store == self.own && own_lives || self.live.contains(&store)
    }
}
