//! What nodes hear of each other, and what they tell each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, ShardRecords, StoreId};

use crate::membership::LIVE;
use crate::message::{Message, Place};
use crate::scene::{MILLISECOND, Time, node_of};
use crate::world::World;

/// A store that has had an earlier record for so long is told the later one.
const BEHIND: Time = 500 * MILLISECOND;

/// Another store, as a node hears of it.
#[derive(Default)]
pub(crate) struct Peer {
    /// When it last answered.
    pub(crate) answered: Time,
    /// When its silence was last excused, as this node was away.
    pub(crate) excused: Time,
    pub(crate) incarnation: u64,
    /// The stores that it has heard lately.
    pub(crate) hears: BTreeSet<StoreId>,
    pub(crate) lacks_room: bool,
    pub(crate) reports: BTreeMap<ShardId, Epoch>,
    /// Since when it has had which earlier record than this node knows.
    behind: BTreeMap<ShardId, (Epoch, Time)>,
}

impl Peer {
    /// Whether it has answered lately.
    pub(crate) const fn lives(&self, now: Time) -> bool {
        now - self.answered < LIVE
    }
}

impl World {
    pub(crate) fn answer_ping(&mut self, node: usize, to: Place) {
        let now = self.now;
        let lacks_room = self.nodes[node].little_room_until > now;
        let (disk, running) = self.parts(node);
        let reports = running.shards.iter();
        let heard = running.peers.iter();
        let heard = heard.filter(|(_, peer)| peer.lives(now));
        let answer = Message::Pong {
            store: disk.store,
            incarnation: running.incarnation.number,
            hears: heard.map(|(store, _)| *store).collect(),
            lacks_room,
            reports: reports
                .map(|(&id, shard)| (id, shard.replica.reports()))
                .collect(),
        };
        self.send(Place::Node(node), to, answer);
    }

    pub(crate) fn note_peer(
        &mut self,
        node: usize,
        store: StoreId,
        incarnation: u64,
        reports: Vec<(ShardId, Epoch)>,
    ) {
        let now = self.now;
        let (_, running) = self.parts(node);
        running.peers.retain(|other, peer| {
            *other == store || node_of(*other) != node_of(store) || peer.answered > 0
        });
        let peer = running.peers.entry(store).or_default();
        if incarnation < peer.incarnation {
            return;
        }
        peer.incarnation = incarnation;
        peer.answered = now;
        for (shard, epoch) in reports {
            let report = peer.reports.entry(shard).or_insert(Epoch::NONE);
            *report = epoch.max(*report);
        }
    }

    pub(crate) fn note_health(
        &mut self,
        node: usize,
        store: StoreId,
        hears: BTreeSet<StoreId>,
        lacks_room: bool,
    ) {
        let (_, running) = self.parts(node);
        if let Some(peer) = running.peers.get_mut(&store) {
            (peer.hears, peer.lacks_room) = (hears, lacks_room);
        }
    }

    /// Tells a store of the records of which it has had earlier ones for a while.
    pub(crate) fn tell_records(&mut self, node: usize, to: Place, store: StoreId) {
        let now = self.now;
        let (_, running) = self.parts(node);
        let Some(peer) = running.peers.get_mut(&store) else {
            return;
        };
        let mut records = ShardRecords::new();
        let mut behind = BTreeMap::new();
        for (&shard, record) in &running.known {
            let epoch = peer.reports.get(&shard).copied().unwrap_or(Epoch::NONE);
            let is_named = record.write_set().any(|named| named == store);
            let concerns = epoch != Epoch::NONE || is_named || record.previous.contains(&store);
            if epoch >= record.epoch || !concerns {
                continue;
            }
            let known = peer.behind.get(&shard).filter(|(of, _)| *of == epoch);
            let since = known.map_or(now, |(_, since)| *since);
            if now - since >= BEHIND {
                records.insert(shard, Arc::clone(record));
            }
            behind.insert(shard, (epoch, since));
        }
        peer.behind = behind;
        if !records.is_empty() {
            self.send(Place::Node(node), to, Message::Tell { store, records });
        }
    }
}
