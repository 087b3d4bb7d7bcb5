//! Which shards a store begins to copy now (PE17), and which steps may wait (PE18).

use super::{ShardRecord, StoreId, View};
use crate::{ShardId, ShardSet};

/// Shards that move to a store at once. Each change of them waits for it.
pub const MOST_AT_ONCE: usize = 64;

impl View {
    /// Decides which shards it comes to next for a move: as many as may be under way, once half of them have arrived. Where
    /// more would be, those from `first` on come first, and then those from the beginning. Another first one for each look
    /// keeps none from its turn.
    pub fn take_turns<'a>(
        &mut self,
        records: impl Iterator<Item = (ShardId, &'a ShardRecord)>,
        first: ShardId,
    ) {
        self.on_turn = ShardSet::ALL;
        let (mut under_way, mut waiting) = (0, Vec::new());
        for (shard, record) in records {
            if record.learner(self.own).is_some() {
                under_way += 1;
            } else if self.would_only_move(record) && self.step(shard, record).is_some() {
                waiting.push(shard);
            }
        }
        waiting.sort_by_key(|shard| shard.0.wrapping_sub(first.0));
        // Many come at once, as each change of records holds up changes of documents.
        let free = if under_way > MOST_AT_ONCE / 2 {
            0
        } else {
            MOST_AT_ONCE - under_way
        };
        self.on_turn = waiting.into_iter().take(free).collect();
    }

    /// Whether the own store may begin to copy a shard now. What a shard lacks waits for no turn.
    pub(super) fn may_begin(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let is_its_turn =
            !self.moves_are_paused && self.moves_go_on && self.on_turn.contains(shard);
        is_its_turn || !self.would_only_move(record)
    }

    /// Whether a shard has all its replicas in sync, and one that lives answers searches. If that one is to leave, it stays
    /// until then.
    pub(super) fn may_wait(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let hot = record.in_sync.iter().filter(|entry| entry.hot);
        let mut hot = hot.map(|entry| entry.store);
        let answers = |store: StoreId| {
            let is_built = if store == self.own {
                !self.disk_hangs && !self.unbuilt.contains(shard)
            } else {
                !self.is_unbuilt(store, shard)
            };
            self.lives(store) && is_built && !self.is_damaged(store, shard)
        };
        let in_sync = record.in_sync.iter();
        let in_sync = in_sync.filter(|entry| !self.dead.contains(&entry.store));
        let is_whole = in_sync.count() >= usize::from(record.want);
        is_whole && !self.is_urgent(record) && hot.any(answers)
    }

    /// Whether a shard that the own store does not hold lacks nothing without it.
    fn would_only_move(&self, record: &ShardRecord) -> bool {
        let lacks = record.is_short_without(&self.dead) || self.is_urgent(record);
        !record.names(self.own) && !lacks
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::replication::{Learner, Role, Step, StoreId};

    const OWN: StoreId = StoreId([1; 16]);
    const OTHER: StoreId = StoreId([2; 16]);

    /// A store that is to take all shards from another one.
    fn target_of_all() -> View {
        let target = BTreeSet::from([OWN]);
        View {
            live: BTreeSet::from([OTHER]),
            reaching: BTreeSet::from([OTHER]),
            targets: Arc::new(
                ShardId::all()
                    .map(|shard| (shard, target.clone()))
                    .collect(),
            ),
            ..View::alone(OWN)
        }
    }

    fn come(view: &View, shard: ShardId, record: &ShardRecord) -> bool {
        view.step(shard, record) == Some(Step::AddLearner(OWN))
    }

    /// PE17: the shards that come by looks one after the other, until none is left.
    #[test]
    fn no_more_copies_than_may_be_are_begun_and_none_is_forgotten() {
        let held = ShardRecord::first(0, &[OTHER], 7);
        let mut records = ShardId::all()
            .map(|shard| (shard, held.clone()))
            .collect::<Vec<_>>();
        let mut view = target_of_all();
        for look in 0..u8::MAX {
            let read = records.iter().map(|(shard, record)| (*shard, record));
            view.take_turns(read, ShardId(look.wrapping_mul(77)));
            for (shard, record) in &mut records {
                if come(&view, *shard, record) {
                    let added = record.epoch;
                    record.learners.push(Learner { store: OWN, added });
                }
            }
            let is_learner = |(_, record): &&(_, ShardRecord)| !record.learners.is_empty();
            let under_way = records.iter().filter(is_learner).count();
            assert!(under_way <= MOST_AT_ONCE, "{under_way}");
            // Some of them arrive.
            for (_, record) in records
                .iter_mut()
                .filter(|(shard, _)| shard.0 % 3 == look % 3)
            {
                if record.learners.pop().is_some() {
                    *record = ShardRecord::first(0, &[OWN], 7);
                }
            }
        }
        assert!(records.iter().all(|(_, record)| record.names(OWN)));
    }

    /// PE17: they begin together.
    #[test]
    fn the_next_ones_begin_once_half_have_arrived() {
        let held = ShardRecord::first(0, &[OTHER], 7);
        let mut copying = held.clone();
        let added = copying.epoch;
        copying.learners.push(Learner { store: OWN, added });
        let mut view = target_of_all();
        for (under_way, next) in [
            (MOST_AT_ONCE / 2 + 1, 0),
            (MOST_AT_ONCE / 2, MOST_AT_ONCE / 2),
            (0, MOST_AT_ONCE),
        ] {
            let record = |shard: ShardId| {
                if shard.index() < under_way {
                    &copying
                } else {
                    &held
                }
            };
            view.take_turns(
                ShardId::all().map(|shard| (shard, record(shard))),
                ShardId(9),
            );
            assert_eq!(view.on_turn.len(), next, "{under_way}");
        }
    }

    /// PE17: what cannot be begun keeps others from their turn for one look at most.
    #[test]
    fn another_shard_is_first_at_each_look() {
        let held = ShardRecord::first(0, &[OTHER], 7);
        let mut view = target_of_all();
        let mut turns = ShardSet::EMPTY;
        for look in 0..=u8::MAX {
            view.take_turns(ShardId::all().map(|shard| (shard, &held)), ShardId(look));
            assert_eq!(view.on_turn.len(), MOST_AT_ONCE);
            assert!(view.on_turn.contains(ShardId(look)));
            turns = turns.union(&view.on_turn);
        }
        assert_eq!(turns, ShardSet::ALL);
    }

    /// PE18: of one store that moves a shard to another one, each step in turn.
    #[test]
    fn a_move_waits_at_each_of_its_steps() {
        let shard = ShardId(7);
        let held = ShardRecord::first(0, &[OTHER], 7);
        let mut view = target_of_all();
        assert!(come(&view, shard, &held));
        view.moves_go_on = false;
        assert!(!come(&view, shard, &held));

        let added = held.epoch;
        let mut copied = held;
        copied.learners.push(Learner { store: OWN, added });
        view.roles.insert(shard, Role::Copied { added });
        view.copied.insert(shard, added);
        assert_eq!(view.step(shard, &copied), None);
        view.moves_go_on = true;
        let promote = Step::Promote {
            store: OWN,
            copied: added,
        };
        assert_eq!(view.step(shard, &copied), Some(promote));
        // What is short does not wait, and nor does one of which the only hot store does not answer.
        view.moves_go_on = false;
        let short = copied.clone().wishing(2, 1);
        assert_eq!(view.step(shard, &short), Some(promote));
        view.live.remove(&OTHER);
        assert_eq!(view.step(shard, &copied), Some(promote));

        let both = ShardRecord::first(0, &[OTHER, OWN], 7).wishing(1, 1);
        let targets = BTreeSet::from([OWN]);
        let leaving = |moves_go_on| View {
            live: BTreeSet::from([OWN]),
            targets: Arc::new([(shard, targets.clone())].into()),
            moves_go_on,
            ..View::alone(OTHER)
        };
        assert_eq!(leaving(true).step(shard, &both), Some(Step::Evict(OTHER)));
        assert_eq!(leaving(false).step(shard, &both), None);
        let came = ShardRecord {
            epoch: both.epoch.next(),
            previous: vec![OTHER],
            ..both.clone().wishing(2, 1)
        };
        let mut arrived = View {
            live: BTreeSet::from([OTHER]),
            ..View::alone(OWN)
        };
        assert_eq!(arrived.step(shard, &came), Some(Step::Confirm));
        arrived.moves_go_on = false;
        assert_eq!(arrived.step(shard, &came), None);
        // A dead one leaves at once.
        let mut survivor = leaving(false);
        survivor.live.clear();
        survivor.dead.insert(OWN);
        assert_eq!(survivor.step(shard, &both), Some(Step::Evict(OWN)));
    }

    /// PE17.
    #[test]
    fn while_moves_are_paused_only_what_is_short_is_copied() {
        let shard = ShardId(7);
        let held = ShardRecord::first(0, &[OTHER], 7);
        let mut view = target_of_all();
        assert!(come(&view, shard, &held));
        view.moves_are_paused = true;
        assert!(!come(&view, shard, &held));
        assert!(come(&view, shard, &held.clone().with_want(2)));
        // What is under way goes on.
        let mut copying = held;
        let added = copying.epoch;
        copying.learners.push(Learner { store: OWN, added });
        view.roles.insert(shard, Role::Copied { added });
        view.copied.insert(shard, added);
        let promoted = view.step(shard, &copying);
        assert!(
            matches!(promoted, Some(Step::Promote { .. })),
            "{promoted:?}"
        );
        // Another target is needed before a dead store may leave.
        let mut stuck = ShardRecord::first(0, &[OTHER, StoreId([3; 16])], 7);
        stuck.min_in_sync = 2;
        view.dead.insert(StoreId([3; 16]));
        assert!(come(&view, ShardId(8), &stuck));
    }
}
