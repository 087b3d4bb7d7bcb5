//! Steps of the records: what nodes do about stores that do not answer, and about themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{InSync, Role, Searched, ShardRecord, Step, StoreId, View};

use crate::faults::Fault;
use crate::message::{Message, Place};
use crate::node::{Node, Process, Running};
use crate::scene::{MILLISECOND, SECOND, Time, node_of};
use crate::world::World;

/// A store that has not answered for so long is dead.
const DEAD: Time = 1200 * MILLISECOND;

/// A store that has answered within this time lives.
pub(crate) const LIVE: Time = SECOND;

/// How long a store has little room before it takes itself for one that lacks room. By then it knows whether others do.
const LACKING: Time = 1500 * MILLISECOND;

/// How long a shard lacks a replica before any node takes it.
const REPLACE: Time = 2 * SECOND;

/// A node that takes a step: what it knows, and what it forgets.
struct Stepping<'a> {
    view: View,
    running: &'a Running,
    fault: Option<Fault>,
}

impl<'a> Stepping<'a> {
    /// What a node that runs does about the records that it knows.
    fn of(node: &'a Node, now: Time, drained: Option<usize>, fault: Option<Fault>) -> Self {
        let Process::Running(running) = &node.process else {
            unreachable!("it does not run");
        };
        let own = node.disk.store;
        let mut view = alone(node, now);
        for (&store, peer) in &running.peers {
            if peer.hears.contains(&own) {
                view.reaching.insert(store);
            }
            if peer.lacks_room {
                view.lacking_room.insert(store);
            }
        }
        for record in running.known.values() {
            let named = record.write_set().chain(record.previous.iter().copied());
            for store in named.filter(|store| *store != own) {
                let silence = running.silence(store, now);
                if silence > DEAD {
                    view.dead.insert(store);
                    view.silent.insert(store);
                }
                let peer = running.peers.get(&store);
                if peer.is_some_and(|peer| peer.lives(now)) {
                    view.live.insert(store);
                }
            }
        }
        for &shard in running.shards.keys() {
            let Some(role) = running.role(shard) else {
                continue;
            };
            view.roles.insert(shard, role);
            let early = fault == Some(Fault::PromotedWithoutCopy);
            match role {
                Role::Copying { added } if early => {
                    view.roles.insert(shard, Role::Copied { added });
                    view.copied.insert(shard, added);
                }
                Role::Copied { added } => {
                    view.copied.insert(shard, added);
                }
                Role::None | Role::Copying { .. } | Role::InSync => {}
            }
        }
        view.targets = Arc::new(running.targets_of(own));
        view.is_drained = drained == Some(node_of(own)) && fault != Some(Fault::DrainedNodesCome);
        let long = running.short_since.iter();
        let long = long.filter(|(_, since)| now - **since > REPLACE);
        view.long_short = long.map(|(shard, _)| *shard).collect();
        let known = running.known.iter();
        view.share_searches(known.map(|(shard, record)| (*shard, &**record)));
        Self {
            view,
            running,
            fault,
        }
    }

    /// The record after its next step, if there is one.
    fn next(&self, shard: ShardId, record: &ShardRecord, nonce: u64) -> Option<ShardRecord> {
        let Self {
            view,
            running,
            fault,
        } = self;
        let step = view.step(shard, record)?;
        let synced = |store| match fault {
            Some(Fault::NoSeal) => record.epoch,
            _ => running.report(view.own, shard, store),
        };
        let is_lost = |store| view.searched(shard, record, store) == Searched::Lost;
        let mut next = record.after(step, nonce, synced, is_lost).ok()?;
        if *fault == Some(Fault::TwoEvictedAtOnce) && matches!(step, Step::Evict(_)) {
            let last = next.in_sync[next.in_sync.len() - 1].store;
            let stays = |entry: &InSync| entry.store == last || !view.dead.contains(&entry.store);
            next.in_sync.retain(stays);
        }
        Some(next)
    }
}

/// What a node knows of itself.
fn alone(node: &Node, now: Time) -> View {
    let own = node.disk.store;
    let mut view = View::alone(own);
    view.has_room = node.no_room_until <= now;
    view.stops = now < node.stops_until;
    if (node.little_room_since + LACKING..node.little_room_until).contains(&now) {
        view.lacking_room.insert(own);
    }
    view
}

impl Running {
    /// The stores that are to hold each shard: of those that are known to.
    fn targets_of(&self, own: StoreId) -> BTreeMap<ShardId, BTreeSet<StoreId>> {
        let stores = |shard: &ShardId, nodes: &BTreeSet<usize>| {
            let others = self.known.get(shard).into_iter();
            let stores = others.flat_map(|record| record.write_set()).chain([own]);
            stores
                .filter(|store| nodes.contains(&node_of(*store)))
                .collect()
        };
        let targets = self.targets.iter();
        targets
            .map(|(shard, nodes)| (*shard, stores(shard, nodes)))
            .collect()
    }

    /// How long a store has said nothing, while this node was there to hear it.
    fn silence(&self, store: StoreId, now: Time) -> Time {
        let peer = self.peers.get(&store);
        now - peer.map_or(self.begun, |peer| peer.answered.max(peer.excused))
    }
}

impl World {
    pub(crate) fn has_steps(&mut self, node: usize) -> bool {
        let now = self.now;
        let View { dead, .. } = Stepping::of(&self.nodes[node], now, None, None).view;
        let (_, running) = self.parts(node);
        for (&shard, record) in &running.known {
            if record.is_short_without(&dead) {
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
        &self,
        node: usize,
        nonce: u64,
    ) -> std::iter::Peekable<std::vec::IntoIter<(ShardId, Arc<ShardRecord>, ShardRecord)>> {
        let drained = self.scene.drained;
        let stepping = Stepping::of(&self.nodes[node], self.now, drained, self.fault);
        let next = |(&shard, record): (&ShardId, &Arc<ShardRecord>)| {
            let next = stepping.next(shard, record, nonce)?;
            Some((shard, Arc::clone(record), next))
        };
        let next: Vec<_> = stepping.running.known.iter().filter_map(next).collect();
        next.into_iter().peekable()
    }
}
