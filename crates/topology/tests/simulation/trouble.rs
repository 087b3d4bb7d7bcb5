//! What goes wrong, and what clients do meanwhile.

use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{ShardRecord, Step, StoreId, seal_quorum};

use crate::message::Place;
use crate::node::Process;
use crate::scene::{CALM, ELEMENTS, LAST_WRITES, MILLISECOND, SECOND, SHARDS};
use crate::world::{Event, World};

/// How long a node is down before its disk is lost: what others knew of it is old then.
const SINCE_CRASH: u64 = 3 * SECOND;

impl World {
    pub(crate) fn make_trouble(&mut self) {
        let next = self.now + self.rng.u64(self.scene.trouble / 3..self.scene.trouble * 2);
        if next < CALM {
            self.at(next, Event::Trouble);
        }
        let node = self.rng.usize(..self.nodes.len());
        let router = self.rng.usize(..self.routers.len());
        match self.rng.u64(..120) {
            0..22 => self.cut_power(node),
            22..37 => self.pause(Place::Node(node)),
            37..42 => self.pause(Place::Router(router)),
            42..62 => self.cut_some_links(node),
            62..65 => self.isolate(Place::Node(node)),
            65..68 => self.hide(node, router),
            68..74 => self.take_metadata_away(),
            74..79 => self.crash_router(router),
            79..84 => self.change_clock(node, router),
            84..90 => self.suspect(node),
            90..95 => self.back_up(node),
            95..100 => self.plan_loss(node),
            100..106 => self.fill_disk(node),
            106..108 => self.stop(node),
            _ => self.operate(),
        }
    }

    fn cut_power(&mut self, node: usize) {
        if matches!(self.nodes[node].process, Process::Running(_)) {
            let down = self.rng.u64(50 * MILLISECOND..3 * SECOND);
            let down = down / [1, 1, 10][self.rng.usize(..3)];
            self.crash(node, Some(down));
        }
    }

    /// The process is about to stop. Whether it comes to that is another matter.
    fn stop(&mut self, node: usize) {
        let until = self.now + self.rng.u64(100 * MILLISECOND..3 * SECOND);
        self.nodes[node].stops_until = until.min(CALM);
    }

    fn pause(&mut self, place: Place) {
        let until = self.now + self.rng.u64(20 * MILLISECOND..3 * SECOND);
        match place {
            Place::Node(node) => self.nodes[node].paused_until = until,
            Place::Router(router) => self.routers[router].paused_until = until,
            Place::Metadata => {}
        }
    }

    fn places(&self) -> Vec<Place> {
        let nodes = (0..self.nodes.len()).map(Place::Node);
        let routers = (0..self.routers.len()).map(Place::Router);
        nodes.chain(routers).chain([Place::Metadata]).collect()
    }

    /// One-way.
    fn cut_some_links(&mut self, node: usize) {
        let until = self.now + self.rng.u64(50 * MILLISECOND..4 * SECOND);
        let outwards = self.rng.bool();
        for other in self.places() {
            if other == Place::Node(node) || self.rng.u64(..3) == 0 {
                continue;
            }
            let link = (Place::Node(node), other);
            let link = if outwards { link } else { (link.1, link.0) };
            self.cut(link, until);
        }
    }

    fn isolate(&mut self, place: Place) {
        let until = self.now + self.rng.u64(100 * MILLISECOND..4 * SECOND);
        for other in self.places() {
            self.cut((place, other), until);
            self.cut((other, place), until);
        }
    }

    /// Cuts a node off from all but one router, and both from the metadata.
    fn hide(&mut self, node: usize, router: usize) {
        let until = self.now + self.rng.u64(2 * SECOND..5 * SECOND);
        let node = Place::Node(node);
        let router = Place::Router(router);
        for other in self.places() {
            if other != router {
                self.cut((node, other), until);
                self.cut((other, node), until);
            }
        }
        self.cut((Place::Metadata, router), until);
    }

    fn cut(&mut self, link: (Place, Place), until: u64) {
        self.cuts.insert(link);
        self.at(until.min(CALM), Event::CutEnds(link.0, link.1));
    }

    fn take_metadata_away(&mut self) {
        self.metadata.is_away = true;
        let until = self.now + self.rng.u64(100 * MILLISECOND..4 * SECOND);
        self.at(until.min(CALM), Event::MetadataReturns);
    }

    /// A node is away for a while. Before it comes back, another one is cut off from the metadata.
    pub(crate) fn make_last_faults(&mut self) {
        if !self.unfinished().is_empty() {
            return;
        }
        let down = 4 * SECOND;
        let node = self.rng.usize(..self.nodes.len());
        self.crash(node, Some(down));
        let other = (node + self.rng.usize(1..self.nodes.len())) % self.nodes.len();
        let at = self.now + self.rng.u64(..down);
        self.at(at, Event::MetadataIsCutOff(other));
    }

    /// For ever, if the node runs: a start needs the metadata.
    pub(crate) fn cut_off_metadata(&mut self, node: usize) {
        if self.nodes[node].running().is_some() {
            let node = Place::Node(node);
            self.cuts.insert((node, Place::Metadata));
            self.cuts.insert((Place::Metadata, node));
        }
    }

    fn change_clock(&mut self, node: usize, router: usize) {
        const MOST: i64 = 25 * SECOND as i64;
        self.nodes[node].skew = self.rng.i64(-MOST..=MOST);
        self.routers[router].skew = self.rng.i64(-MOST..=MOST);
    }

    /// A node takes all others for dead.
    fn suspect(&mut self, node: usize) {
        let Some(running) = self.nodes[node].running() else {
            return;
        };
        let others: Vec<StoreId> = running.peers.keys().copied().collect();
        if others.is_empty() {
            return;
        }
        let other = others[self.rng.usize(..others.len())];
        self.suspect_store(node, other);
    }

    /// All nodes take a store for dead.
    pub(crate) fn suspect_by_all(&mut self, store: StoreId) {
        for node in 0..self.nodes.len() {
            self.suspect_store(node, store);
        }
    }

    fn suspect_store(&mut self, node: usize, store: StoreId) {
        let running = self.nodes[node].running();
        let peer = running.and_then(|running| running.peers.get_mut(&store));
        if let Some(peer) = peer {
            peer.answered = 0;
        }
    }

    /// An operator chooses which nodes are to hold a shard, or how many.
    fn operate(&mut self) {
        let shard = ShardId(self.rng.u8(..SHARDS));
        let record = &self.metadata.records[&shard];
        let want = usize::from(record.want);
        match self.rng.u64(..3) {
            0 => drop(self.metadata.targets.remove(&shard)),
            1 => {
                let nodes = 0..self.nodes.len();
                let nodes = nodes.filter(|node| self.scene.drained != Some(*node));
                let mut nodes: Vec<usize> = nodes.collect();
                self.rng.shuffle(&mut nodes);
                // The number that was wished for may have been another one when the target was set.
                let was = self.rng.usize(1..=self.scene.replicas);
                nodes.truncate(if self.rng.bool() { want } else { was });
                let target = nodes.into_iter().collect();
                self.metadata.targets.insert(shard, target);
            }
            _ => self.wish(shard),
        }
    }

    /// An operator wishes for another number of replicas.
    fn wish(&mut self, shard: ShardId) {
        let want = self.rng.u8(1..=self.scene.replicas as u8);
        let nonce = self.rng.u64(..);
        let before = Arc::clone(&self.metadata.records[&shard]);
        let reported = |store| self.oracle.report(store, shard);
        let wished = ShardRecord::clone(&before).wishing(want, self.scene.hot.min(want));
        let Ok(next) = wished.after(Step::Adjust, nonce, reported, |_| false) else {
            return;
        };
        self.metadata.steps += 1;
        self.oracle.record_changed(shard, &before, &next);
        self.metadata.records.insert(shard, Arc::new(next));
    }

    /// There is little room on a disk for a while, and then perhaps none.
    fn fill_disk(&mut self, node: usize) {
        let until = self.now + self.rng.u64(SECOND..6 * SECOND);
        let has_none = self.rng.bool();
        let now = self.now;
        let this = &mut self.nodes[node];
        if this.little_room_until <= now {
            this.little_room_since = now;
        }
        this.little_room_until = until.min(CALM);
        if has_none {
            this.no_room_until = this.little_room_until;
        }
    }

    fn back_up(&mut self, node: usize) {
        let this = &mut self.nodes[node];
        let mut backup = this.disk.clone();
        backup.crash(0);
        this.backup = Some(backup);
    }

    /// A node ends, and does not come back before its directory is lost.
    fn plan_loss(&mut self, node: usize) {
        if self.now + 4 * SECOND < CALM && self.nodes[node].running().is_some() {
            let later = self.rng.u64(MILLISECOND..SECOND);
            self.crash(node, Some(SINCE_CRASH + later));
            self.at(self.now + SINCE_CRASH, Event::DiskIsLost(node));
        }
    }

    /// The directory of a node is emptied, or an older copy takes its place.
    pub(crate) fn lose_disk(&mut self, node: usize) {
        let store = self.nodes[node].disk.store;
        let is_down = matches!(self.nodes[node].process, Process::Down);
        if !is_down || !self.may_lose(store) {
            return;
        }
        let published = self.metadata.published.get(&store);
        let backup = self.nodes[node].backup.take();
        // What was synced since the last publication may be missing unnoticed.
        let older = backup.filter(|backup| {
            let newest = backup.held.map(|held| held.newest);
            let is_earlier = published.is_some_and(|published| {
                Some(published.incarnation) != newest || published.synced > backup.synced
            });
            backup.store == store && is_earlier
        });
        match older {
            Some(older) => {
                self.lost.insert(store);
                self.tell(|| format!("node {node} gets an older directory"));
                self.nodes[node].disk = older;
            }
            None => self.replace_directory(node),
        }
    }

    /// Whether each shard can go on without a store and those that are lost already.
    fn may_lose(&self, store: StoreId) -> bool {
        let stays = |other: StoreId| other != store && !self.lost.contains(&other);
        self.metadata.records.values().all(|record| {
            let previous = record.previous.iter().filter(|other| stays(**other));
            let in_sync = record.in_sync.iter().filter(|entry| stays(entry.store));
            let can_seal = previous.count() >= seal_quorum(record.previous.len());
            // Those that are in sync must seal what comes next.
            can_seal && in_sync.count() >= seal_quorum(record.in_sync.len()).max(1)
        })
    }

    pub(crate) fn client(&mut self) {
        if self.now < LAST_WRITES {
            let pace = if self.now < CALM { 1 } else { 10 };
            let after = pace * self.rng.u64(5 * MILLISECOND..40 * MILLISECOND);
            self.at(self.now + after, Event::Client);
        }
        let router = self.rng.usize(..self.routers.len());
        if self.routers[router].paused_until > self.now {
            return;
        }
        if self.rng.bool() {
            let shard = ShardId(self.rng.u8(..SHARDS));
            self.begin_read(router, shard);
        } else if self.now < CALM {
            let element = self.any_element();
            let live = self.rng.bool();
            let patience = self.rng.u64(10 * MILLISECOND..2 * SECOND);
            self.begin_write(router, element, live, patience);
        }
    }

    /// A document that a client changes. Where tombstones are dropped, each rests half of the time, so that its tombstone
    /// gets old.
    fn any_element(&mut self) -> usize {
        if self.scene.floors {
            let first = (self.now / SECOND) as usize;
            (first + self.rng.usize(..ELEMENTS / 2)) % ELEMENTS
        } else {
            self.rng.usize(..ELEMENTS)
        }
    }

    pub(crate) fn last_writes(&mut self) {
        if self.scene.repairs && !self.scene.cuts_off {
            self.check_repaired();
        }
        // The last faults may have changed records since it last asked for them.
        self.routers[0].laziness = 1;
        for element in 0..ELEMENTS {
            let live = self.rng.bool();
            self.begin_write(0, element, live, 3 * SECOND);
        }
    }
}
