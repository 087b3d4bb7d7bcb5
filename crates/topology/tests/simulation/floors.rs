//! Floors: nodes freeze records, compare the stores in sync below the floor, and settle what they have, or thaw the record.
//! Stores drop the tombstones that are settled.
//!
//! Any node in sync does that, at any time, and up to any version that it has: safety depends on none of these.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::replication::{
    Epoch, Outcome, Role, Sent, ShardRecord, State, Step, StoreId, is_forgotten, may_settle,
};
use simshard_topology::{ShardId, Version};

use crate::disk::Contents;
use crate::faults::Fault;
use crate::message::{Message, Place, WriteRequest};
use crate::repairs::{Compared, Comparison};
use crate::scene::{CALM, ELEMENTS, SECOND, Time, node_of, shards};
use crate::world::World;

/// In how many of its ticks a node freezes the record of a shard once.
const RARELY: u64 = 16;

/// A comparison that has not ended by then is begun anew, or the record is thawed.
const PATIENCE: Time = SECOND;

/// From then on no record is frozen, so that repairs come to an end.
const LAST_FROZEN: Time = CALM + 5 * SECOND;

/// A shard whose stores are compared, by a record that is frozen.
pub(crate) struct Settling {
    /// Of answers to those before it, none counts.
    number: u64,
    begun: Time,
    record: Arc<ShardRecord>,
    /// The version that is to be settled: the floor, or a lower one.
    until: Version,
    compared: BTreeMap<StoreId, Contents>,
}

impl World {
    /// Freezes records now and then, and goes on with those that are frozen.
    pub(crate) fn look_after_floors(&mut self, node: usize) {
        for shard in shards() {
            let (_, running) = self.parts(node);
            let held = running.shards.get(&shard);
            let Some((record, Role::InSync)) = held.and_then(|held| held.replica.standing()) else {
                continue;
            };
            let record = Arc::clone(record);
            if record.is_frozen {
                self.go_on_settling(node, shard, &record);
            } else if self.now < LAST_FROZEN && self.rng.u64(..RARELY) == 0 {
                self.freeze(node, shard, &record);
            }
        }
    }

    /// Freezes the record of a shard that has a tombstone which is not settled: at the floor that it has, or at a higher one.
    fn freeze(&mut self, node: usize, shard: ShardId, record: &Arc<ShardRecord>) {
        let until = self.compared_until(node);
        let (_, running) = self.parts(node);
        let contents = running.shards[&shard].contents;
        let states = contents.iter().filter(|state| state.version <= until);
        let floor = states.clone().map(|state| state.version).max();
        let floor = floor.map(|floor| floor.max(record.floor));
        let is_new = |state: &State| !state.live && state.version > record.settled;
        if let Some(floor) = floor
            && states.clone().any(is_new)
        {
            self.change_floor(node, shard, record, Step::Freeze(floor));
        }
    }

    fn go_on_settling(&mut self, node: usize, shard: ShardId, record: &Arc<ShardRecord>) {
        let now = self.now;
        let (_, running) = self.parts(node);
        let settling = running.settling.get(&shard);
        let settling = settling.filter(|settling| settling.record.epoch == record.epoch);
        match settling.map(|settling| now - settling.begun) {
            None => self.compare_to_settle(node, shard, record),
            Some(since) if since > PATIENCE => {
                running.settling.remove(&shard);
                if self.rng.bool() {
                    self.change_floor(node, shard, record, Step::Thaw);
                }
            }
            // It may be sealed by now.
            Some(_) => self.settle_once_compared(node, shard),
        }
    }

    fn compare_to_settle(&mut self, node: usize, shard: ShardId, record: &Arc<ShardRecord>) {
        let (number, now) = (self.rng.u64(..), self.now);
        let mut until = record.floor;
        if self.rng.bool() {
            until = Version(self.rng.u64(record.settled.0..=until.0));
        }
        let (disk, running) = self.parts(node);
        let own = disk.store;
        let settling = Settling {
            number,
            begun: now,
            record: Arc::clone(record),
            until,
            compared: BTreeMap::from([(own, running.shards[&shard].contents)]),
        };
        running.settling.insert(shard, settling);
        for entry in record.in_sync.iter().filter(|entry| entry.store != own) {
            let comparison = Comparison {
                shard,
                number,
                epoch: record.epoch,
            };
            let to = Place::Node(node_of(entry.store));
            self.send(Place::Node(node), to, Message::Compare(comparison));
        }
        self.settle_once_compared(node, shard);
    }

    pub(crate) fn take_comparison_to_settle(&mut self, node: usize, of_store: &Compared) {
        let (_, running) = self.parts(node);
        let settling = running.settling.get_mut(&of_store.shard);
        let settling = settling.filter(|settling| settling.number == of_store.number);
        if let Some(settling) = settling {
            settling.compared.insert(of_store.store, of_store.contents);
            self.settle_once_compared(node, of_store.shard);
        }
    }

    /// Once all stores in sync have answered: settles what they agree on, or thaws the record (FL3, FL4).
    fn settle_once_compared(&mut self, node: usize, shard: ShardId) {
        let is_blind = self.fault == Some(Fault::SettledWithoutComparison);
        let (_, running) = self.parts(node);
        let settling = &running.settling[&shard];
        let (record, until) = (Arc::clone(&settling.record), settling.until);
        if settling.compared.len() < record.in_sync.len() && !is_blind {
            return;
        }
        let stores: Vec<&Contents> = settling.compared.values().collect();
        let agree = (0..ELEMENTS).all(|element| {
            let states: Vec<State> = stores.iter().map(|contents| contents[element]).collect();
            may_settle(&states, until)
        });
        let step = if (agree || is_blind) && record.learners.is_empty() {
            Step::Settle {
                until,
                compared: record.epoch,
            }
        } else {
            Step::Thaw
        };
        self.change_floor(node, shard, &record, step);
    }

    /// Takes a step that concerns a floor, if the record is sealed and still the last one.
    fn change_floor(&mut self, node: usize, shard: ShardId, of: &Arc<ShardRecord>, step: Step) {
        let nonce = self.rng.u64(..);
        let (disk, running) = self.parts(node);
        let own = disk.store;
        let reported = |store| running.report(own, shard, store);
        if let Ok(record) = of.after(step, nonce, reported, |_| false) {
            let commit = Message::Commit {
                shard,
                replaces: Arc::clone(of),
                record: Arc::new(record),
            };
            self.send(Place::Node(node), Place::Metadata, commit);
        }
    }

    /// Drops tombstones that are settled, in some shards (FL5). It comes just before all is flushed.
    pub(crate) fn drop_tombstones(&mut self, node: usize) {
        for shard in shards() {
            if self.rng.bool() {
                continue;
            }
            let drops_all = self.fault == Some(Fault::DroppedUpToTheFloor);
            let (_, running) = self.parts(node);
            let Some(held) = running.shards.get_mut(&shard) else {
                continue;
            };
            let Some((record, Role::InSync)) = held.replica.standing() else {
                continue;
            };
            let settled = record.settled;
            let droppable = if drops_all { record.floor } else { settled };
            let mut dropped = Vec::new();
            for (element, state) in held.contents.iter_mut().enumerate() {
                if *state != State::NEVER && is_forgotten(*state, droppable) {
                    dropped.push((element, *state));
                    *state = State::NEVER;
                }
            }
            for (element, tombstone) in dropped {
                self.tell(|| format!("node {node} drops {tombstone:?} of {element} in {shard}"));
                self.oracle.dropped(shard, element, tombstone, settled);
            }
        }
    }

    /// Takes those shards out of a write that take no change of its version any more. Answers what the store says of them
    /// (FL2).
    pub(crate) fn take_out_late(
        &mut self,
        node: usize,
        write: &mut WriteRequest,
    ) -> Vec<(ShardId, Epoch, Outcome)> {
        let mut late = Vec::new();
        let takes_late = self.fault == Some(Fault::LateChangesTaken);
        let (_, running) = self.parts(node);
        let version = write.state.version;
        write.shards.retain(|&(shard, epoch)| {
            let bar = running.shards[&shard].replica.bar(Sent::ByRouter);
            let is_late = version <= bar && !takes_late;
            if is_late {
                late.push((shard, epoch, Outcome::Newer(bar)));
            }
            !is_late
        });
        late
    }

    /// Whether a store takes a repair of this version of a shard (FL2).
    pub(crate) fn takes_repair(&mut self, node: usize, shard: ShardId, version: Version) -> bool {
        let takes_late = self.fault == Some(Fault::LateRepairsTaken);
        let (_, running) = self.parts(node);
        let held = running.shards.get(&shard);
        held.is_some_and(|held| version > held.replica.bar(Sent::ToRepair) || takes_late)
    }
}
