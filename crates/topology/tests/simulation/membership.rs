//! Steps of the records: what nodes do about stores that do not answer, and about themselves.

use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{InSync, Role, Searched, ShardRecord, Step, StoreId};

use crate::faults::Fault;
use crate::message::{Message, Place};
use crate::node::Running;
use crate::scene::{MILLISECOND, SECOND, Time};
use crate::world::World;

/// A store that has not answered for so long is dead.
const DEAD: Time = 1200 * MILLISECOND;

/// A store that has answered within this time lives.
pub(crate) const LIVE: Time = SECOND;

/// How long a shard lacks a replica before any node takes it.
const REPLACE: Time = 2 * SECOND;

/// What a node decides by.
struct Members<'a> {
    own: StoreId,
    now: Time,
    running: &'a Running,
    fault: Option<Fault>,
}

impl Members<'_> {
    fn step(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        if record.write_set().any(|store| store == self.own) {
            let leaving = self.leaving(record);
            leaving
                .or_else(|| self.promotion(shard, record))
                .or_else(|| record.heating(self.own, |store| self.searched(store)))
        } else {
            self.coming(shard, record)
        }
    }

    fn leaving(&self, record: &ShardRecord) -> Option<Step> {
        let mut learners = record.learners.iter().map(|learner| learner.store);
        if let Some(store) = learners.find(|store| self.is_dead(*store)) {
            return Some(Step::DropLearner(store));
        }
        // An eviction that would be refused must not stand in the way of a promotion.
        if !record.may_evict() || !self.has_live(record) {
            return None;
        }
        let mut in_sync = record.in_sync.iter().map(|entry| entry.store);
        in_sync.find(|store| self.is_dead(*store)).map(Step::Evict)
    }

    fn promotion(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        let added = record.learner(self.own)?.added;
        let early = self.fault == Some(Fault::PromotedWithoutCopy);
        let role = self.running.role(shard);
        let is_ready = match role {
            Some(Role::Copied { added: by }) => by == added,
            Some(Role::Copying { .. }) => early,
            Some(Role::None | Role::InSync) | None => false,
        };
        is_ready.then_some(Step::Promote {
            store: self.own,
            copied: added,
        })
    }

    fn searched(&self, store: StoreId) -> Searched {
        if store == self.own || self.is_live(store) {
            Searched::Well
        } else if self.is_dead(store) {
            Searched::Lost
        } else {
            Searched::Unsure
        }
    }

    fn coming(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        let is_former = self.running.role(shard) == Some(Role::None);
        let since = self.running.short_since.get(&shard);
        let is_long = since.is_some_and(|since| self.now - since > REPLACE);
        let may_come = (is_former || is_long) && is_short(record) && self.has_live(record);
        may_come.then_some(Step::AddLearner(self.own))
    }

    fn has_live(&self, record: &ShardRecord) -> bool {
        let mut in_sync = record.in_sync.iter();
        in_sync.any(|entry| entry.store == self.own || self.is_live(entry.store))
    }

    fn is_live(&self, store: StoreId) -> bool {
        let peer = self.running.peers.get(&store);
        peer.is_some_and(|peer| self.now - peer.answered < LIVE)
    }

    fn is_dead(&self, store: StoreId) -> bool {
        store != self.own && self.silence(store) > DEAD
    }

    fn silence(&self, store: StoreId) -> Time {
        let peer = self.running.peers.get(&store);
        self.now - peer.map_or(self.running.begun, |peer| peer.answered)
    }

    /// The record after its next step, if there is one.
    fn next(&self, shard: ShardId, record: &ShardRecord, nonce: u64) -> Option<ShardRecord> {
        let step = self.step(shard, record)?;
        let synced = |store| match self.fault {
            Some(Fault::NoSeal) => record.epoch,
            _ => self.running.report(self.own, shard, store),
        };
        let is_lost = |store| self.searched(store) == Searched::Lost;
        let mut next = record.after(step, nonce, synced, is_lost).ok()?;
        if self.fault == Some(Fault::TwoEvictedAtOnce) && matches!(step, Step::Evict(_)) {
            let last = next.in_sync[next.in_sync.len() - 1].store;
            let stays = |entry: &InSync| entry.store == last || !self.is_dead(entry.store);
            next.in_sync.retain(stays);
        }
        Some(next)
    }
}

/// Whether a shard has fewer replicas than are wished for.
fn is_short(record: &ShardRecord) -> bool {
    record.write_set().count() < usize::from(record.want)
}

impl World {
    pub(crate) fn has_steps(&mut self, node: usize) -> bool {
        let now = self.now;
        let (_, running) = self.parts(node);
        for (&shard, record) in &running.known {
            if is_short(record) {
                running.short_since.entry(shard).or_insert(now);
            } else {
                running.short_since.remove(&shard);
            }
        }
        let mut steps = self.next_records(node, 0);
        steps.next_if(|_| true).is_some()
    }

    /// Takes the next step of each record, right after the records were read.
    pub(crate) fn take_steps(&mut self, node: usize) {
        if !self.runs(node) {
            return;
        }
        let nonce = self.rng.u64(..);
        let steps: Vec<_> = self.next_records(node, nonce).collect();
        for (shard, replaces, record) in steps {
            let commit = Message::Commit {
                shard,
                replaces,
                record: Arc::new(record),
            };
            self.send(Place::Node(node), Place::Metadata, commit);
        }
    }

    fn next_records(
        &mut self,
        node: usize,
        nonce: u64,
    ) -> std::iter::Peekable<std::vec::IntoIter<(ShardId, Arc<ShardRecord>, ShardRecord)>> {
        let (now, fault) = (self.now, self.fault);
        let (disk, running) = self.parts(node);
        let members = Members {
            own: disk.store,
            now,
            running,
            fault,
        };
        let next = |(&shard, record): (&ShardId, &Arc<ShardRecord>)| {
            let next = members.next(shard, record, nonce)?;
            Some((shard, Arc::clone(record), next))
        };
        let next: Vec<_> = running.known.iter().filter_map(next).collect();
        next.into_iter().peekable()
    }
}
