//! Floors: the versions up to which a shard takes no more changes, so that what was removed by then may be forgotten.
//!
//! A removed document leaves a tombstone. It outdoes an earlier insert that arrives late. Once no such insert is taken
//! any more, the tombstone is of no use. So a record has two versions. Stores refuse changes up to its *floor*: a router
//! gives them a new version. While the record is *frozen*, they refuse repairs up to there, too. So what a shard has up to
//! the floor stays as it is. Once all stores agree on that, or on what is below a lower version, it is *settled*. Then a store
//! may drop tombstones up to there when it merges segments, and never takes repairs again. If they do not agree, the record
//! is *thawed*, so that a scrub can repair.
//!
//! ```text
//! freeze at a floor, and thaw             no change up to there comes any more
//! scrub                                   all replicas, and all shards, have the same up to there
//! freeze at the same floor, or at a higher one of another scrub
//! compare all stores in sync, at this epoch
//! settle, or thaw                         each store drops tombstones
//! ```
//!
//! To freeze once would do for each shard alone. But then one might be settled while others lack what it has of a document.
//!
//! Whether a store has dropped a tombstone or not makes no difference: a settled tombstone counts like nothing at all,
//! where replicas are compared or copied.
//!
//! # Invariants
//! - FL1: neither version ever decreases while a shard has any data, and the settled one is at most the floor.
//! - FL2: no change at or below the floor of a record is taken by that record or a later one. No repair is at or below what
//!   is settled, or at or below the floor of a frozen record.
//! - FL3: what is settled was compared on all stores in sync, by the very record that is replaced, which is frozen. Each of
//!   them had applied it, and no learner was there.
//! - FL4: all stores in sync whose state of an element is not later than what is settled have the same, or none of them
//!   a live one.
//! - FL5: a store drops a tombstone only by a record that it has applied.

use super::record::{Epoch, ShardRecord};
use super::step::StepError;
use super::write::State;
use crate::Version;

impl ShardRecord {
    pub(super) fn freeze(&mut self, floor: Version) -> Result<(), StepError> {
        if floor < self.floor || floor <= self.settled {
            return Err(StepError::TooLow(self.floor));
        }
        (self.floor, self.is_frozen) = (floor, true);
        Ok(())
    }

    pub(super) fn thaw(&mut self) -> Result<(), StepError> {
        if !self.is_frozen {
            return Err(StepError::NotFrozen);
        }
        self.is_frozen = false;
        Ok(())
    }

    /// `before` is the epoch of the record that is replaced.
    pub(super) fn settle(
        &mut self,
        until: Version,
        compared: Epoch,
        before: Epoch,
    ) -> Result<(), StepError> {
        if compared != before {
            return Err(StepError::NotCompared(before));
        }
        if let Some(learner) = self.learners.first() {
            return Err(StepError::HasLearner(learner.store));
        }
        if until > self.floor {
            return Err(StepError::AboveFloor(self.floor));
        }
        self.thaw()?;
        self.settled = self.settled.max(until);
        Ok(())
    }
}

/// Whether a state counts like none, as it is a tombstone that is settled by this version: stores may have dropped it (FL5).
#[must_use]
pub fn is_forgotten(state: State, settled: Version) -> bool {
    !state.live && state.version <= settled
}

/// Whether an element may be settled up to a version, by the states that all stores in sync have of it (FL4). One that has
/// none counts as [`State::NEVER`]. Later states say nothing: what the store had before is outdone there. But the others
/// must agree without them, as a later state may be lost with its store.
#[must_use]
pub fn may_settle(states: &[State], until: Version) -> bool {
    let earlier = states.iter().filter(|state| state.version <= until);
    let mut earlier = earlier.map(|state| state.live.then_some(state.version));
    let first = earlier.next();
    first.is_none_or(|first| earlier.all(|state| state == first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::{Step, StoreId};

    const STORES: [StoreId; 2] = [StoreId([1; 16]), StoreId([2; 16])];

    const fn state(version: u64, live: bool) -> State {
        State {
            version: Version(version),
            live,
        }
    }

    fn after(record: &ShardRecord, step: Step) -> Result<ShardRecord, StepError> {
        record.after(step, 1, |_| record.epoch, |_| false)
    }

    const fn settle(until: u64, compared: Epoch) -> Step {
        let until = Version(until);
        Step::Settle { until, compared }
    }

    /// FL1, FL3.
    #[test]
    fn only_what_was_compared_by_this_record_is_settled_and_no_version_falls() {
        let first = ShardRecord::first(0, &STORES, 0);
        let none = Version::NONE;
        assert_eq!((first.floor, first.settled), (none, none));
        let early = after(&first, settle(0, first.epoch));
        assert_eq!(early.unwrap_err(), StepError::NotFrozen);
        let frozen = after(&first, Step::Freeze(Version(9))).unwrap();
        assert_eq!((frozen.floor, frozen.settled), (Version(9), none));
        let thawed = after(&frozen, Step::Thaw).unwrap();
        assert_eq!((thawed.floor, thawed.is_frozen), (Version(9), false));
        let early = after(&thawed, settle(9, thawed.epoch));
        assert_eq!(early.unwrap_err(), StepError::NotFrozen);
        let lower = after(&thawed, Step::Freeze(Version(8)));
        assert_eq!(lower.unwrap_err(), StepError::TooLow(Version(9)));
        let frozen = after(&thawed, Step::Freeze(Version(9))).unwrap();
        assert!(frozen.is_frozen);
        let stale = after(&frozen, settle(9, first.epoch));
        assert_eq!(stale.unwrap_err(), StepError::NotCompared(frozen.epoch));
        let above = after(&frozen, settle(10, frozen.epoch));
        assert_eq!(above.unwrap_err(), StepError::AboveFloor(Version(9)));
        let below = after(&frozen, settle(7, frozen.epoch)).unwrap();
        assert_eq!((below.floor, below.settled), (Version(9), Version(7)));
        let frozen = after(&below, Step::Freeze(Version(9))).unwrap();
        let lower = after(&frozen, settle(5, frozen.epoch)).unwrap();
        assert_eq!(lower.settled, Version(7));
        let settled = after(&frozen, settle(9, frozen.epoch)).unwrap();
        assert_eq!((settled.floor, settled.settled), (Version(9), Version(9)));
        let again = after(&settled, settle(9, settled.epoch));
        assert_eq!(again.unwrap_err(), StepError::NotFrozen);
        let same = after(&settled, Step::Freeze(Version(9)));
        assert_eq!(same.unwrap_err(), StepError::TooLow(Version(9)));
        let raised = after(&settled, Step::Freeze(Version(12))).unwrap();
        let learner = StoreId([3; 16]);
        let learning = after(&raised, Step::AddLearner(learner)).unwrap();
        let both = (learning.floor, learning.settled);
        assert_eq!(both, (Version(12), Version(9)));
        let with_learner = after(&learning, settle(12, learning.epoch));
        assert_eq!(with_learner.unwrap_err(), StepError::HasLearner(learner));
    }

    /// FL1: one that begins anew has nothing that was settled, and takes no late changes all the same.
    #[test]
    fn forced_records_keep_both_versions_and_a_shard_that_begins_anew_its_floor() {
        let mut record = ShardRecord::first(0, &STORES, 0);
        (record.floor, record.settled) = (Version(9), Version(7));
        let forced = record.forced(STORES[0], 1, |_| true).unwrap();
        assert_eq!((forced.floor, forced.settled), (Version(9), Version(7)));
        let other = StoreId([3; 16]);
        let rebuilt = record.rebuilt(other, 1, |store| store == other).unwrap();
        let expected = (Version(9), Version::NONE);
        assert_eq!((rebuilt.floor, rebuilt.settled), expected);
    }

    /// FL4, for all states of three stores.
    #[test]
    fn what_is_settled_is_live_alike_wherever_it_is_not_outdone() {
        let mut states = vec![State::NEVER];
        states.extend((1..4).flat_map(|version| [state(version, true), state(version, false)]));
        for &a in &states {
            for &b in &states {
                for &c in &states {
                    let until = Version(2);
                    let all = [a, b, c];
                    let mut agree = true;
                    for one in all {
                        for other in all {
                            let both = one.version <= until && other.version <= until;
                            let same = one == other || !one.live && !other.live;
                            agree &= !both || same;
                        }
                    }
                    assert_eq!(may_settle(&all, until), agree, "{all:?}");
                }
            }
        }
    }
}
