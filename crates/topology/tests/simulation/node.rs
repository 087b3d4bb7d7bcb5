//! A node: one log, one gate, and the shards that they make. What it may do is decided by the core.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::replication::{
    Entry, Epoch, Incarnation, InstallError, Outcome, Pin, PublishedStore, Replica, Role,
    ShardRecord, ShardRecords, StoreId,
};
use simshard_topology::{ShardId, Version};

use crate::copying::Copying;
use crate::disk::{self, Disk, Record, Shards};
use crate::faults::Fault;
use crate::floors::Settling;
use crate::message::{Message, Place, Purpose, Targets, WriteRequest};
use crate::oracle::Promise;
use crate::peers::Peer;
use crate::repairs::{Repair, Repairing};
use crate::scene::{MILLISECOND, SECOND, Time, store};
use crate::world::{Timer, World};

/// How often a node looks around.
const TICK: Time = 160 * MILLISECOND;

pub(crate) struct Node {
    pub(crate) disk: Disk,
    /// How many directories it has had.
    pub(crate) directories: u8,
    /// Which process it is: timers of those before it do nothing.
    pub(crate) life: u64,
    pub(crate) paused_until: Time,
    /// How far its clock is ahead.
    pub(crate) skew: i64,
    pub(crate) process: Process,
    /// Since when its disk has had little room for more, and until when.
    pub(crate) little_room_since: Time,
    pub(crate) little_room_until: Time,
    /// Until when it has none: inserts are refused.
    pub(crate) no_room_until: Time,
    /// Until then its process is about to stop.
    pub(crate) stops_until: Time,
    /// An earlier state of its directory.
    pub(crate) backup: Option<Disk>,
}

pub(crate) enum Process {
    Down,
    /// With the start that it made.
    Starting(Option<Incarnation>),
    Running(Box<Running>),
}

/// The memory of a process that serves.
pub(crate) struct Running {
    pub(crate) incarnation: Incarnation,
    pub(crate) shards: Shards,
    applied: u64,
    syncs: bool,
    /// Who waits for a record to be applied.
    waiting: BTreeMap<u64, (Place, WriteRequest)>,
    pub(crate) known: ShardRecords,
    pub(crate) targets: Targets,
    pub(crate) published: Option<PublishedStore>,
    pub(crate) peers: BTreeMap<StoreId, Peer>,
    pub(crate) short_since: BTreeMap<ShardId, Time>,
    pub(crate) copies: BTreeMap<ShardId, Copying>,
    pub(crate) repairs: BTreeMap<ShardId, Repairing>,
    pub(crate) settling: BTreeMap<ShardId, Settling>,
    /// Who waits for a repair to be applied.
    pub(crate) repaired: BTreeMap<u64, (Place, Repair)>,
    /// When it began to serve, and when it last looked around.
    pub(crate) begun: Time,
    pub(crate) looked: Time,
    pub(crate) ticks: u64,
}

impl Node {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            disk: Disk::new(store(number, 0)),
            directories: 1,
            life: 0,
            paused_until: 0,
            skew: 0,
            process: Process::Down,
            little_room_since: 0,
            little_room_until: 0,
            no_room_until: 0,
            stops_until: 0,
            backup: None,
        }
    }

    pub(crate) fn running(&mut self) -> Option<&mut Running> {
        match &mut self.process {
            Process::Running(running) => Some(running),
            Process::Down | Process::Starting(_) => None,
        }
    }
}

impl Running {
    pub(crate) fn role(&self, shard: ShardId) -> Option<Role> {
        let shard = self.shards.get(&shard)?;
        shard.replica.standing().map(|(_, role)| role)
    }

    /// The epoch of a shard that a store has reported.
    pub(crate) fn report(&self, own: StoreId, shard: ShardId, of: StoreId) -> Epoch {
        if of == own {
            let held = self.shards.get(&shard);
            return held.map_or(Epoch::NONE, |held| held.replica.reports());
        }
        let peer = self.peers.get(&of);
        let report = peer.and_then(|peer| peer.reports.get(&shard));
        report.copied().unwrap_or(Epoch::NONE)
    }
}

impl World {
    pub(crate) fn node_rings(&mut self, node: usize, timer: Timer) {
        match timer {
            Timer::Start => self.start(node),
            Timer::Tick => self.tick(node),
            Timer::Synced(end) => self.synced(node, end),
            Timer::Apply => self.apply(node),
            Timer::Send(sent) => self.send(Place::Node(node), sent.0, sent.1),
            Timer::Prove(_) => unreachable!("a timer of routers"),
        }
    }

    pub(crate) fn node_takes(&mut self, node: usize, from: Place, message: Message) {
        match (message, &mut self.nodes[node].process) {
            (_, Process::Down) => {}
            (
                Message::Metadata {
                    purpose: Purpose::Start,
                    published,
                    ..
                },
                Process::Starting(_),
            ) => {
                let store = self.nodes[node].disk.store;
                self.go_on_starting(node, published.get(&store).copied());
            }
            (_, Process::Starting(_)) => {}
            (message, Process::Running(_)) => self.running_takes(node, from, message),
        }
    }

    fn running_takes(&mut self, node: usize, from: Place, message: Message) {
        match message {
            Message::Write(write) => self.take_write(node, from, write),
            Message::Query { read, shard, epoch } => {
                self.answer(node, from, read, (shard, epoch));
            }
            Message::Confirm { read, store, shard } => self.confirm(node, from, read, store, shard),
            Message::Ping => self.answer_ping(node, from),
            Message::Pong {
                store,
                incarnation,
                hears,
                lacks_room,
                reports,
            } => {
                self.note_peer(node, store, incarnation, reports);
                self.note_health(node, store, hears, lacks_room);
                self.tell_records(node, from, store);
            }
            Message::Tell { store, records } if self.nodes[node].disk.store == store => {
                self.learn(node, records, None);
            }
            Message::Tell { .. } => {}
            Message::Metadata {
                purpose,
                records,
                published,
                targets,
            } => {
                let (_, running) = self.parts(node);
                running.targets = targets;
                let own = self.nodes[node].disk.store;
                self.learn(node, records, published.get(&own).copied());
                if purpose == Purpose::Steps {
                    self.take_steps(node);
                }
            }
            Message::CopyShard { shard, added, copy } => {
                self.send_copy(node, from, shard, added, copy);
            }
            Message::Part {
                shard,
                copy,
                pin,
                from,
                states,
            } => self.take_part(node, shard, copy, pin, (from, &states)),
            Message::Compare(comparison) => self.answer_comparison(node, from, comparison),
            Message::Compared(compared) => self.take_comparison(node, &compared),
            Message::Repair(repair) => self.take_repair(node, from, repair),
            Message::Repaired(store, repair) => self.note_repaired(node, store, &repair),
            Message::Written { .. }
            | Message::WriteFailed { .. }
            | Message::Answer { .. }
            | Message::Confirmed { .. }
            | Message::ReadMetadata(_)
            | Message::Commit { .. }
            | Message::Publish { .. } => unreachable!("no message to a node"),
        }
    }

    /// The node and its memory; it must run.
    pub(crate) fn parts(&mut self, node: usize) -> (&mut Disk, &mut Running) {
        let Node { disk, process, .. } = &mut self.nodes[node];
        match process {
            Process::Running(running) => (disk, running),
            Process::Down | Process::Starting(_) => unreachable!("it does not run"),
        }
    }

    pub(crate) fn runs(&mut self, node: usize) -> bool {
        self.nodes[node].running().is_some()
    }

    fn take_write(&mut self, node: usize, from: Place, mut write: WriteRequest) {
        let wall = self.wall(self.nodes[node].skew);
        let is_full = self.nodes[node].no_room_until > self.now && write.state.live;
        if is_full || write.state.version.is_too_far_ahead(wall.milliseconds()) {
            let operation = write.operation;
            self.send(Place::Node(node), from, Message::WriteFailed { operation });
            return;
        }
        let fault = self.fault;
        let (_, running) = self.parts(node);
        write.shards.retain(|(shard, epoch)| {
            let held = running.shards.get(shard);
            held.is_some_and(|held| takes(&held.replica, *epoch, fault))
        });
        if write.shards.is_empty() {
            self.answer_write(node, from, &write, Vec::new());
            return;
        }
        if fault.is_none() {
            self.check_order(node, &write);
        }
        let late = self.take_out_late(node, &mut write);
        if !late.is_empty() {
            self.answer_write(node, from, &write, late);
        }
        if write.shards.is_empty() {
            return;
        }
        if fault == Some(Fault::AnswersBeforeSync) {
            let done = |&(shard, epoch)| (shard, epoch, Outcome::Done);
            let outcomes = write.shards.iter().map(done).collect();
            self.answer_write(node, from, &write, outcomes);
        }
        let record = Record::Write {
            element: write.element,
            state: write.state,
            shards: write.shards.clone(),
        };
        let number = self.append(node, record);
        let (_, running) = self.parts(node);
        running.waiting.insert(number, (from, write));
    }

    /// RI11: a write stands before the record of the next epoch.
    fn check_order(&mut self, node: usize, write: &WriteRequest) {
        for &(shard, epoch) in &write.shards {
            let (_, running) = self.parts(node);
            let last = running.shards[&shard].replica.confirms();
            if last != epoch {
                let how = || format!("node {node}, {shard}: a write at {epoch} after {last}");
                self.oracle.note(Promise::RI11, how);
            }
        }
    }

    fn answer_write(
        &mut self,
        node: usize,
        to: Place,
        write: &WriteRequest,
        outcomes: Vec<(ShardId, Epoch, Outcome)>,
    ) {
        let answer = Message::Written {
            operation: write.operation,
            store: self.nodes[node].disk.store,
            state: write.state,
            outcomes,
        };
        self.send(Place::Node(node), to, answer);
    }

    /// Appends a record. Answers its number.
    pub(crate) fn append(&mut self, node: usize, record: Record) -> u64 {
        let (disk, running) = self.parts(node);
        disk::append(&mut running.shards, disk.store, &record);
        let number = disk.end();
        disk.push(record);
        self.begin_sync(node);
        number
    }

    fn begin_sync(&mut self, node: usize) {
        let (disk, running) = self.parts(node);
        let end = disk.end();
        if running.syncs || disk.synced == end {
            return;
        }
        running.syncs = true;
        let after = match self.rng.u64(..20) {
            0 => self.rng.u64(..150),
            _ => self.rng.u64(1..6),
        };
        self.timer(Place::Node(node), after * MILLISECOND, Timer::Synced(end));
    }

    fn synced(&mut self, node: usize, end: u64) {
        let (disk, running) = self.parts(node);
        running.syncs = false;
        for number in disk.synced..end {
            disk::sync(&mut running.shards, disk.record(number));
        }
        disk.synced = end;
        let store = disk.store;
        let reports = running.shards.iter();
        let reports: Vec<_> = reports
            .map(|(&id, shard)| (id, shard.replica.reports()))
            .collect();
        for (shard, epoch) in reports {
            self.oracle.reports(store, shard, epoch);
        }
        let after = self.rng.u64(100..4 * MILLISECOND);
        self.timer(Place::Node(node), after, Timer::Apply);
        self.begin_sync(node);
    }

    fn apply(&mut self, node: usize) {
        let fault = self.fault;
        let (disk, running) = self.parts(node);
        let (mut answers, mut repaired) = (Vec::new(), Vec::new());
        for number in running.applied..disk.synced {
            let outcomes = disk::apply(&mut running.shards, disk.record(number), fault);
            if let Some((to, write)) = running.waiting.remove(&number) {
                answers.push((to, write, outcomes));
            }
            if let Some((to, repair)) = running.repaired.remove(&number) {
                repaired.push((to, Message::Repaired(disk.store, repair)));
            }
        }
        running.applied = disk.synced;
        for (to, message) in repaired {
            self.send(Place::Node(node), to, message);
        }
        for (to, write, outcomes) in answers {
            self.answer_write(node, to, &write, outcomes);
        }
    }

    fn answer(&mut self, node: usize, to: Place, read: usize, of: (ShardId, Epoch)) {
        let (shard, epoch) = of;
        let (disk, running) = self.parts(node);
        let held = running
            .shards
            .get(&shard)
            .filter(|held| held.replica.answers(epoch) && held.replica.confirms() == epoch)
            .filter(|held| held.is_hot(disk.store));
        let answer = Message::Answer {
            read,
            store: disk.store,
            epoch,
            contents: held.map(|held| held.contents),
        };
        self.send(Place::Node(node), to, answer);
    }

    fn confirm(&mut self, node: usize, to: Place, read: usize, store: StoreId, shard: ShardId) {
        let (disk, running) = self.parts(node);
        if disk.store != store {
            return;
        }
        let held = running.shards.get(&shard);
        let answer = Message::Confirmed {
            read,
            store,
            installed: held.map_or(Epoch::NONE, |held| held.replica.confirms()),
        };
        self.send(Place::Node(node), to, answer);
    }

    /// Takes note of the records of the metadata, and installs those that are news.
    fn learn(&mut self, node: usize, records: ShardRecords, published: Option<PublishedStore>) {
        let (_, running) = self.parts(node);
        running.published = published.or(running.published);
        for (shard, record) in records {
            let known = running.known.get(&shard);
            if known.is_none_or(|known| known.epoch < record.epoch) {
                running.known.insert(shard, record);
            }
        }
        let own = running.incarnation;
        if published.is_some_and(|published| published.incarnation != own) {
            // Another start of the directory took its place.
            self.crash(node, None);
            return;
        }
        self.install(node);
    }

    fn install(&mut self, node: usize) {
        let (disk, running) = self.parts(node);
        let own = disk.store;
        let (mut news, mut joined) = (Vec::new(), Vec::new());
        let mut refused = None;
        for (&shard, record) in &running.known {
            let held = running.shards.get(&shard);
            // One that came too late to its first record still counts for the seal of the next.
            let is_named = record.write_set().any(|store| store == own);
            if held.is_none() && !is_named && !record.previous.contains(&own) {
                continue;
            }
            let new = || Replica::new(own);
            let replica = held.map_or_else(new, |held| held.replica.clone());
            match replica.check_install(record, |store| running.report(own, shard, store)) {
                Ok(()) => {
                    // One that has its addition already goes on, also if who reported it has left meanwhile.
                    let unheard = replica.check_install(record, |_| Epoch::NONE);
                    if matches!(unheard, Err(InstallError::NotReported(_))) {
                        joined.push((shard, Arc::clone(record)));
                    }
                    news.push((shard, Arc::clone(record)));
                }
                Err(InstallError::NotReported(_) | InstallError::NotNewer(_)) => {}
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused {
            let how = || format!("node {node} cannot install: {error}");
            self.oracle.note(Promise::RI5, how);
        }
        if !news.is_empty() {
            self.check_learners(own, &joined);
            self.append(node, Record::Install(news));
        }
    }

    /// Checks the records that add the store as a learner.
    fn check_learners(&mut self, own: StoreId, joined: &[(ShardId, Arc<ShardRecord>)]) {
        for (shard, record) in joined {
            if let Some(learner) = record.learner(own) {
                self.oracle.learner_joined(*shard, record, learner.added);
            }
        }
    }

    /// Looks around.
    fn tick(&mut self, node: usize) {
        let after = TICK + self.rng.u64(..TICK / 2);
        self.timer(Place::Node(node), after, Timer::Tick);
        let now = self.now;
        let place = Place::Node(node);
        if !self.runs(node) {
            self.send(
                place,
                Place::Metadata,
                Message::ReadMetadata(Purpose::Start),
            );
            return;
        }
        let (_, running) = self.parts(node);
        running.ticks += 1;
        let ticks = running.ticks;
        if now - running.looked > 500 * MILLISECOND {
            for peer in running.peers.values_mut() {
                peer.excused = now;
            }
        }
        running.looked = now;
        for other in 0..self.nodes.len() {
            if other != node {
                self.send(place, Place::Node(other), Message::Ping);
            }
        }
        let purpose = if self.has_steps(node) {
            Purpose::Steps
        } else {
            Purpose::Follow
        };
        self.send(place, Place::Metadata, Message::ReadMetadata(purpose));
        self.install(node);
        self.begin_copies(node);
        if self.scene.repairs {
            self.begin_repairs(node);
        }
        if self.scene.floors {
            self.look_after_floors(node);
        }
        if ticks.is_multiple_of(5) {
            self.publish(node);
        }
        self.flush_at_times(node);
    }

    /// Where tombstones are dropped, that comes more often.
    fn flush_at_times(&mut self, node: usize) {
        let rarely = if self.scene.floors { 2 } else { 5 };
        if self.rng.u64(..rarely) != 0 {
            return;
        }
        if self.scene.floors {
            self.drop_tombstones(node);
        }
        let fault = self.fault;
        let (disk, running) = self.parts(node);
        disk.flush(&running.shards, running.applied, fault);
    }

    fn publish(&mut self, node: usize) {
        let (disk, running) = self.parts(node);
        let synced = disk.synced;
        let Some(known) = running.published else {
            return;
        };
        if known.incarnation == running.incarnation && known.synced < synced {
            let publish = Message::Publish {
                store: disk.store,
                replaces: Some(known),
                published: PublishedStore { synced, ..known },
            };
            self.send(Place::Node(node), Place::Metadata, publish);
        }
    }

    /// Ends the process, if it runs, and starts it later: `None` means soon.
    pub(crate) fn crash(&mut self, node: usize, down: Option<Time>) {
        let kept = self.rng.u64(..4);
        let soon = self.rng.u64(20 * MILLISECOND..SECOND);
        let this = &mut self.nodes[node];
        this.life += 1;
        this.process = Process::Down;
        this.disk.crash(kept);
        self.timer(Place::Node(node), down.unwrap_or(soon), Timer::Start);
    }

    /// Serves from now on.
    pub(crate) fn run_node(
        &mut self,
        node: usize,
        incarnation: Incarnation,
        published: PublishedStore,
    ) {
        let (fault, now) = (self.fault, self.now);
        let this = &mut self.nodes[node];
        let shards = this.disk.durable(fault);
        let store = this.disk.store;
        for (&id, shard) in &shards {
            self.oracle.reports(store, id, shard.replica.reports());
        }
        this.process = Process::Running(Box::new(Running {
            incarnation,
            shards,
            applied: this.disk.synced,
            syncs: false,
            waiting: BTreeMap::new(),
            known: ShardRecords::new(),
            targets: Targets::new(),
            published: Some(published),
            peers: BTreeMap::new(),
            short_since: BTreeMap::new(),
            copies: BTreeMap::new(),
            repairs: BTreeMap::new(),
            settling: BTreeMap::new(),
            repaired: BTreeMap::new(),
            begun: now,
            looked: now,
            ticks: 0,
        }));
    }

    /// The wall time by a clock that is so far ahead.
    pub(crate) fn wall(&self, skew: i64) -> Version {
        const EPOCH: u64 = 1_000_000 * SECOND;
        let micros = (EPOCH + self.now).saturating_add_signed(skew);
        Version::of_wall_time(micros * 1000)
    }
}

/// Whether the gate takes a write.
pub(crate) fn takes(replica: &Replica, epoch: Epoch, fault: Option<Fault>) -> bool {
    if fault == Some(Fault::GateFromApplied)
        && let Some((record, role)) = replica.standing()
    {
        return record.epoch == epoch && role != Role::None;
    }
    replica.takes(epoch)
}

/// The end of a copy, if it may end.
pub(crate) fn end_of_copy(replica: &Replica, pin: Pin, fault: Option<Fault>) -> Option<Epoch> {
    if fault == Some(Fault::SourceMayLeave) {
        return replica.is_copying();
    }
    match replica.end_of_copy(pin)? {
        Entry::Copied { added } => Some(added),
        Entry::Install(_) => None,
    }
}
