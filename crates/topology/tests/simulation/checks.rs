//! Checks of all stores at once, and of the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, ShardRecord, State, StoreId, is_forgotten};

use crate::disk::Shards;
use crate::faults::Fault;
use crate::oracle::Promise;
use crate::scene::{ELEMENTS, MILLISECOND, node_of, shards_of};
use crate::world::{Event, World};

impl World {
    pub(crate) fn check(&mut self) {
        let after = self.rng.u64(100 * MILLISECOND..500 * MILLISECOND);
        self.at(self.now + after, Event::Check);
        self.check_elements(|_| true);
    }

    /// RI1 and RI5, for one element.
    pub(crate) fn check_stores(&mut self, element: usize) {
        self.check_elements(|other| other == element);
    }

    /// RI1, RI5, RI10: by the current record, the stores in sync have on disk what was acknowledged.
    fn check_elements(&mut self, is_meant: impl Fn(usize) -> bool) {
        let moment = self.moment + 1;
        let durable: Vec<(StoreId, Shards)> = self
            .nodes
            .iter()
            .map(|node| (node.disk.store, node.disk.durable(self.fault)))
            .collect();
        let records = self.metadata.records.clone();
        for (shard, record) in records {
            for entry in &record.in_sync {
                let (store, shards) = &durable[node_of(entry.store)];
                if *store != entry.store || self.is_lost(*store) {
                    continue;
                }
                let held = shards.get(&shard);
                let promise = if entry.since == Epoch::FIRST {
                    Promise::RI1
                } else {
                    Promise::RI5
                };
                for element in (0..ELEMENTS).filter(|element| is_meant(*element)) {
                    if shards_of(element).contains(&shard)
                        && let Some(held) = held
                    {
                        let place = || format!("{shard} in {store} by {}", record.epoch);
                        let shown = self.oracle.shown(shard, element, held.contents[element]);
                        self.oracle.check(element, shown, moment, promise, place);
                    }
                }
            }
        }
    }

    fn is_lost(&self, store: StoreId) -> bool {
        let serves_anyway = self.fault == Some(Fault::OlderDirectoryServes);
        self.lost.contains(&store) && !serves_anyway
    }

    /// SI2 and SI3: all shards are at full strength, all changes succeed, and all copies agree.
    pub(crate) fn check_end(&mut self) {
        let count = self.oracle.operations.len();
        if self.oracle.acknowledged_of(count - ELEMENTS..count) < ELEMENTS {
            let records = format!("{:#?}", self.metadata.records);
            self.oracle
                .note(Promise::SI2, || format!("the last writes fail: {records}"));
        }
        // A node that does not reach the metadata takes no step.
        if self.cuts.is_empty()
            && let Some((shard, record)) = self.unfinished().pop()
        {
            self.oracle
                .note(Promise::SI2, || format!("{shard}: {record:#?}"));
        }
        for (shard, record) in self.metadata.records.clone() {
            let copies = record.in_sync.iter().map(|entry| entry.store);
            let copies: Vec<_> = copies.map(|store| self.copy(shard, store)).collect();
            if copies.iter().any(|copy| *copy != copies[0]) {
                self.oracle
                    .note(Promise::SI3, || format!("{shard}: {copies:#?}"));
            }
        }
        self.check_elements(|_| true);
    }

    /// The records that have not as many replicas as wished, or as many hot ones, or have them elsewhere, or are frozen, or
    /// of which one of two could not go on alone.
    pub(crate) fn unfinished(&self) -> Vec<(ShardId, Arc<ShardRecord>)> {
        let is_finished = |shard: &ShardId, record: &ShardRecord| {
            let nodes = record.in_sync.iter().map(|entry| node_of(entry.store));
            let nodes: BTreeSet<usize> = nodes.collect();
            let target = self.metadata.targets.get(shard);
            // Of more targets than replicas, some hold the shard. Of fewer, all do, and others beside them.
            let is_placed =
                target.is_none_or(|target| nodes.is_subset(target) || nodes.is_superset(target));
            let hot = record.in_sync.iter().filter(|entry| entry.hot).count();
            let is_whole = record.in_sync.len() == usize::from(record.want);
            let has_hot = hot == usize::from(record.hot);
            let in_sync = record.in_sync.iter();
            let needs_other = in_sync.clone().any(|entry| record.needs_other(entry.store));
            let is_settled = record.learners.is_empty() && !record.is_frozen && !needs_other;
            is_placed && is_whole && has_hot && is_settled
        };
        let records = self.metadata.records.clone().into_iter();
        records
            .filter(|(shard, record)| !is_finished(shard, record))
            .collect()
    }

    /// What a store has of a shard. A settled tombstone counts like none.
    pub(crate) fn copy(&mut self, shard: ShardId, store: StoreId) -> Option<Vec<State>> {
        let settled = self.metadata.records[&shard].settled;
        let node = &mut self.nodes[node_of(store)];
        if node.disk.store != store {
            return None;
        }
        let held = node.running()?.shards.get(&shard)?;
        let states = held.contents.iter().map(|&state| {
            if is_forgotten(state, settled) {
                State::NEVER
            } else {
                state
            }
        });
        Some(states.collect())
    }
}
