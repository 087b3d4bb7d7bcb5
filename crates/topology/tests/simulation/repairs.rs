//! Repairs: a node compares the replicas of a shard, and carries what some of them lack to all of them, and then to the
//! other shards of the documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_topology::replication::{Epoch, Role, ShardRecord, State, StoreId, repaired};
use simshard_topology::{ShardId, Version};

use crate::disk::{Contents, Record};
use crate::faults::Fault;
use crate::message::{Message, Place};
use crate::node::takes;
use crate::oracle::Promise;
use crate::scene::{ELEMENTS, MILLISECOND, SECOND, SHARDS, Time, node_of, shards_of};
use crate::world::World;

/// In how many of its ticks a node begins to compare a shard.
const EVERY: u64 = 3;

/// A repair that has not ended by then is given up.
const PATIENCE: Time = 2 * SECOND;

/// A state that is younger may still be on its way.
const YOUNG: Time = 500 * MILLISECOND;

/// Within this time, each shard has been compared.
const ROUND: Time = 5 * SECOND;

/// A shard that is compared.
pub(crate) struct Repairing {
    /// Of answers to those before it, none counts.
    number: u64,
    begun: Time,
    record: Arc<ShardRecord>,
    /// What the stores in sync have, as far as they answered.
    compared: BTreeMap<StoreId, Contents>,
    /// The newest state of elements, and the stores that have yet to take it.
    carried: BTreeMap<usize, (State, BTreeSet<StoreId>)>,
}

/// A shard of which a node asks what others have by a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) shard: ShardId,
    pub(crate) number: u64,
    pub(crate) epoch: Epoch,
}

/// What a store has of a shard that is compared.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    pub(crate) shard: ShardId,
    pub(crate) number: u64,
    pub(crate) store: StoreId,
    pub(crate) contents: Contents,
}

/// A state that a store is to take.
#[derive(Clone, Debug)]
pub(crate) struct Repair {
    pub(crate) number: u64,
    /// The shard that was compared.
    pub(crate) of: ShardId,
    pub(crate) shard: ShardId,
    pub(crate) epoch: Epoch,
    pub(crate) element: usize,
    pub(crate) state: State,
}

impl World {
    /// Begins to compare a shard that the node holds in sync, now and then.
    pub(crate) fn begin_repairs(&mut self, node: usize) {
        let now = self.now;
        let (disk, running) = self.parts(node);
        running
            .repairs
            .retain(|_, repairing| now - repairing.begun < PATIENCE);
        if !running.ticks.is_multiple_of(EVERY) {
            return;
        }
        let shard = ShardId((running.ticks / EVERY % u64::from(SHARDS)) as u8);
        let Some(held) = running.shards.get(&shard) else {
            return;
        };
        let Some((record, Role::InSync)) = held.replica.standing() else {
            return;
        };
        let (own, record) = (disk.store, Arc::clone(record));
        let compared = BTreeMap::from([(own, held.contents)]);
        let number = self.rng.u64(..);
        let repairing = Repairing {
            number,
            begun: now,
            record: Arc::clone(&record),
            compared,
            carried: BTreeMap::new(),
        };
        let (_, running) = self.parts(node);
        running.repairs.insert(shard, repairing);
        for entry in record.in_sync.iter().filter(|entry| entry.store != own) {
            let compare = Message::Compare(Comparison {
                shard,
                number,
                epoch: record.epoch,
            });
            self.send(
                Place::Node(node),
                Place::Node(node_of(entry.store)),
                compare,
            );
        }
        self.carry_once_compared(node, shard);
    }

    /// Answers what the node has of a shard, if that is by the record that is meant.
    pub(crate) fn answer_comparison(&mut self, node: usize, to: Place, comparison: Comparison) {
        let Comparison {
            shard,
            number,
            epoch,
        } = comparison;
        let (disk, running) = self.parts(node);
        let held = running.shards.get(&shard);
        let held =
            held.filter(|held| held.replica.answers(epoch) && held.replica.confirms() == epoch);
        if let Some(held) = held {
            let answer = Message::Compared(Compared {
                shard,
                number,
                store: disk.store,
                contents: held.contents,
            });
            self.send(Place::Node(node), to, answer);
        }
    }

    pub(crate) fn take_comparison(&mut self, node: usize, of_store: &Compared) {
        let (_, running) = self.parts(node);
        let repairing = running.repairs.get_mut(&of_store.shard);
        let repairing = repairing.filter(|repairing| repairing.number == of_store.number);
        if let Some(repairing) = repairing {
            repairing.compared.insert(of_store.store, of_store.contents);
            self.carry_once_compared(node, of_store.shard);
        } else {
            self.take_comparison_to_settle(node, of_store);
        }
    }

    /// The version that a node compares up to. Safety depends on no clock.
    pub(crate) fn compared_until(&mut self, node: usize) -> Version {
        if self.rng.bool() {
            self.wall(self.nodes[node].skew - YOUNG as i64)
        } else {
            Version::MAX
        }
    }

    /// Once all stores in sync have answered: gives all stores of the record the newest states.
    fn carry_once_compared(&mut self, node: usize, shard: ShardId) {
        let until = self.compared_until(node);
        let (_, running) = self.parts(node);
        let repairing = running.repairs.get_mut(&shard).expect("it was begun");
        let record = Arc::clone(&repairing.record);
        let number = repairing.number;
        if repairing.compared.len() < record.in_sync.len() || !repairing.carried.is_empty() {
            return;
        }
        let of_shard = (0..ELEMENTS).filter(|element| shards_of(*element).contains(&shard));
        for element in of_shard {
            // A learner has none of it, as far as is known.
            let in_sync = repairing
                .compared
                .values()
                .map(|contents| contents[element]);
            let states: Vec<State> = in_sync.chain([State::NEVER]).collect();
            let Some(newest) = repaired(&states, until, record.settled) else {
                continue;
            };
            let has_it = |store| {
                let contents = repairing.compared.get(&store);
                contents.is_some_and(|contents| contents[element] == newest)
            };
            let lacking = record.write_set().filter(|store| !has_it(*store)).collect();
            repairing.carried.insert(element, (newest, lacking));
        }
        for (element, (state, lacking)) in repairing.carried.clone() {
            let repair = Repair {
                number,
                of: shard,
                shard,
                epoch: record.epoch,
                element,
                state,
            };
            if lacking.is_empty() || self.fault == Some(Fault::CarriedBetweenAtOnce) {
                self.carry_between(node, &repair);
            }
            self.carry(node, lacking, &repair);
        }
    }

    fn carry(&mut self, node: usize, to: impl IntoIterator<Item = StoreId>, repair: &Repair) {
        for store in to {
            let message = Message::Repair(repair.clone());
            self.send(Place::Node(node), Place::Node(node_of(store)), message);
        }
    }

    /// Gives all stores of the other shard of the document what all stores of this one have (SB3).
    fn carry_between(&mut self, node: usize, repair: &Repair) {
        if self.fault == Some(Fault::RepairsStayInTheirShard) {
            return;
        }
        let others = shards_of(repair.element).into_iter();
        for shard in others.filter(|shard| *shard != repair.of) {
            let (_, running) = self.parts(node);
            let Some(record) = running.known.get(&shard).cloned() else {
                continue;
            };
            let repair = Repair {
                shard,
                epoch: record.epoch,
                ..repair.clone()
            };
            self.carry(node, record.write_set(), &repair);
        }
    }

    /// SB2.
    pub(crate) fn take_repair(&mut self, node: usize, from: Place, repair: Repair) {
        let is_full = self.nodes[node].no_room_until > self.now && repair.state.live;
        let is_taken = self.takes_repair(node, repair.shard, repair.state.version);
        let fault = self.fault;
        let (_, running) = self.parts(node);
        let Some(held) = running.shards.get(&repair.shard) else {
            return;
        };
        let epoch = match fault {
            Some(Fault::RepairsAtAnyEpoch) => held.replica.confirms(),
            _ => repair.epoch,
        };
        if is_full || !is_taken || !takes(&held.replica, epoch, fault) {
            return;
        }
        let record = Record::Write {
            element: repair.element,
            state: repair.state,
            shards: vec![(repair.shard, epoch)],
        };
        let number = self.append(node, record);
        let (_, running) = self.parts(node);
        running.repaired.insert(number, (from, repair));
    }

    /// A store has taken a repair: a newer state counts as well.
    pub(crate) fn note_repaired(&mut self, node: usize, store: StoreId, repair: &Repair) {
        if repair.shard != repair.of || self.fault == Some(Fault::CarriedBetweenAtOnce) {
            return;
        }
        let (_, running) = self.parts(node);
        let repairing = running.repairs.get_mut(&repair.of);
        let repairing = repairing.filter(|repairing| repairing.number == repair.number);
        let carried = repairing.and_then(|repairing| repairing.carried.get_mut(&repair.element));
        if let Some((_, lacking)) = carried
            && lacking.remove(&store)
            && lacking.is_empty()
        {
            self.carry_between(node, repair);
        }
    }

    /// SI5: long after the last change, all copies of a document are equal, in all its shards. By the clock of a node that
    /// is late, a change may still be on its way. A shard takes no repair of what it has settled, so there each shard agrees
    /// with itself.
    pub(crate) fn check_repaired(&mut self) {
        let latest = self.nodes.iter().map(|node| node.skew).min();
        let until = self.wall(latest.unwrap_or_default() - ROUND as i64);
        for element in 0..ELEMENTS {
            let (mut states, mut settled) = (BTreeMap::new(), Version::NONE);
            for shard in shards_of(element) {
                let record = Arc::clone(&self.metadata.records[&shard]);
                settled = settled.max(record.settled);
                for entry in &record.in_sync {
                    let copy = self.copy(shard, entry.store);
                    states.insert((shard, entry.store), copy.map(|copy| copy[element]));
                }
            }
            let is_settled = states
                .values()
                .flatten()
                .all(|state| state.version <= settled);
            let place = |shard: ShardId| is_settled.then_some(shard);
            let found = states
                .iter()
                .map(|((shard, _), state)| (place(*shard), *state));
            let found: BTreeSet<(Option<ShardId>, Option<State>)> = found.collect();
            let places: BTreeSet<_> = found.iter().map(|(place, _)| *place).collect();
            let is_old = |state: &Option<State>| state.is_none_or(|state| state.version <= until);
            if found.len() > places.len() && states.values().all(is_old) {
                let how = || format!("the document {element} differs: {states:#?}");
                self.oracle.note(Promise::SI5, how);
            }
        }
    }
}
