//! A router: it sends writes to all that the records name, and acknowledges and believes what the core allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use simshard_topology::replication::{
    Epoch, Outcome, ShardRecord, ShardRecords, State, StoreId, Write,
};
use simshard_topology::{Clock, ShardId, Version};

use crate::faults::Fault;
use crate::message::{Message, Place, Purpose, WriteRequest};
use crate::reads::Reading;
use crate::scene::{MILLISECOND, SECOND, Time, node_of, shards_of};
use crate::world::{Timer, World};

/// How often a router sends again and learns.
const TICK: Time = 80 * MILLISECOND;

pub(crate) struct Router {
    pub(crate) life: u64,
    pub(crate) paused_until: Time,
    /// How far its clock is ahead.
    pub(crate) skew: i64,
    /// In how many of its ticks it learns once.
    pub(crate) laziness: u64,
    clock: Clock,
    pub(crate) known: ShardRecords,
    /// All records that it has known.
    history: BTreeMap<(ShardId, Epoch), Arc<ShardRecord>>,
    writing: BTreeMap<usize, Writing>,
    pub(crate) reading: BTreeMap<usize, Reading>,
}

/// A change of a document that is under way.
struct Writing {
    element: usize,
    state: State,
    writes: BTreeMap<ShardId, Write>,
    /// When its caller is told that it failed, and when the router gives it up.
    deadline: Time,
    end: Time,
    is_told: bool,
    /// The highest newer version that a store has told.
    newer: Version,
}

impl Router {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let skews = [0, 0, 50 * MILLISECOND, 5 * SECOND, 20 * SECOND];
        let most = skews[rng.usize(..skews.len())] as i64;
        Self {
            life: 0,
            paused_until: 0,
            skew: rng.i64(-most..=most),
            laziness: [3, 3, 30][rng.usize(..3)],
            clock: Clock::default(),
            known: ShardRecords::new(),
            history: BTreeMap::new(),
            writing: BTreeMap::new(),
            reading: BTreeMap::new(),
        }
    }
}

impl World {
    pub(crate) fn router_rings(&mut self, router: usize, timer: &Timer) {
        match timer {
            Timer::Tick => self.router_tick(router),
            Timer::Prove(read) => self.ask_for_proof(router, *read),
            Timer::Start | Timer::Synced(_) | Timer::Apply | Timer::Send(_) => {
                unreachable!("a timer of nodes")
            }
        }
    }

    pub(crate) fn router_takes(&mut self, router: usize, message: Message) {
        match message {
            Message::Metadata {
                purpose, records, ..
            } => self.router_learns(router, purpose, &records),
            Message::Written {
                operation,
                store,
                state,
                outcomes,
            } => self.take_outcomes(router, operation, store, state, &outcomes),
            Message::WriteFailed { operation } => self.tell_failure(router, operation),
            Message::Answer {
                read,
                store,
                epoch,
                contents,
            } => self.take_answer(router, read, store, epoch, contents),
            Message::Confirmed {
                read,
                store,
                installed,
            } => self.take_confirmation(router, read, store, installed),
            Message::Write(_)
            | Message::Query { .. }
            | Message::Confirm { .. }
            | Message::Ping
            | Message::Pong { .. }
            | Message::ReadMetadata(_)
            | Message::Commit { .. }
            | Message::Publish { .. }
            | Message::CopyShard { .. }
            | Message::Tell { .. }
            | Message::Compare(_)
            | Message::Compared(_)
            | Message::Repair(_)
            | Message::Repaired(..)
            | Message::Part { .. } => unreachable!("no message to a router"),
        }
    }

    fn router_learns(&mut self, router: usize, purpose: Purpose, records: &ShardRecords) {
        let this = &mut self.routers[router];
        for (shard, record) in records {
            let known = this.known.get(shard);
            if known.is_none_or(|known| known.epoch < record.epoch) {
                this.known.insert(*shard, Arc::clone(record));
                this.history
                    .insert((*shard, record.epoch), Arc::clone(record));
            }
        }
        if let Purpose::Proof(read) = purpose {
            self.take_proof(router, read, records);
        }
    }

    fn router_tick(&mut self, router: usize) {
        let place = Place::Router(router);
        let after = TICK + self.rng.u64(..TICK);
        self.timer(place, after, Timer::Tick);
        // Some routers hear late of changes, but each asks for the records as it begins.
        let is_due = self.rng.u64(..self.routers[router].laziness) == 0;
        if is_due || self.routers[router].known.is_empty() {
            let read = Message::ReadMetadata(Purpose::Follow);
            self.send(place, Place::Metadata, read);
        }
        let operations: Vec<_> = self.routers[router].writing.keys().copied().collect();
        for operation in operations {
            let writing = &self.routers[router].writing[&operation];
            if self.now >= writing.end {
                self.give_up(router, operation);
                continue;
            }
            if self.now >= writing.deadline {
                self.tell_failure(router, operation);
            }
            self.send_round(router, operation);
        }
        let now = self.now;
        let reading = &mut self.routers[router].reading;
        reading.retain(|_, reading| reading.deadline > now);
    }

    /// A client calls.
    pub(crate) fn begin_write(
        &mut self,
        router: usize,
        element: usize,
        live: bool,
        patience: Time,
    ) {
        let operation = self.oracle.begun(element, live, self.moment);
        let wall = self.wall(self.routers[router].skew);
        let this = &mut self.routers[router];
        let state = State {
            version: this.clock.tick(wall),
            live,
        };
        self.oracle.stamped(operation, state.version, self.moment);
        let writes = shards_of(element).map(|shard| (shard, Write::new(state)));
        let lingers = [0, 300 * MILLISECOND, 3 * SECOND][self.rng.usize(..3)];
        let writing = Writing {
            element,
            state,
            writes: BTreeMap::from(writes),
            deadline: self.now + patience,
            end: self.now + patience + lingers,
            is_told: false,
            newer: Version::NONE,
        };
        self.routers[router].writing.insert(operation, writing);
        self.send_round(router, operation);
    }

    /// Sends a change to all stores of the newest records, once a node, for the shards that lack it.
    fn send_round(&mut self, router: usize, operation: usize) {
        let this = &self.routers[router];
        let Some(writing) = this.writing.get(&operation) else {
            return;
        };
        let mut parts: BTreeMap<StoreId, Vec<(ShardId, Epoch)>> = BTreeMap::new();
        for (&shard, write) in &writing.writes {
            if let Some(record) = this.known.get(&shard)
                && !write.may_acknowledge(record)
            {
                for store in record.write_set() {
                    parts.entry(store).or_default().push((shard, record.epoch));
                }
            }
        }
        let (element, state) = (writing.element, writing.state);
        for (store, shards) in parts {
            let request = WriteRequest {
                operation,
                element,
                state,
                shards,
            };
            let to = Place::Node(node_of(store));
            self.send(Place::Router(router), to, Message::Write(request));
        }
    }

    fn take_outcomes(
        &mut self,
        router: usize,
        operation: usize,
        store: StoreId,
        state: State,
        outcomes: &[(ShardId, Epoch, Outcome)],
    ) {
        let Some(writing) = self.routers[router].writing.get_mut(&operation) else {
            return;
        };
        for &(shard, epoch, outcome) in outcomes {
            if let Some(write) = writing.writes.get_mut(&shard) {
                write.answered(store, epoch, state, outcome);
            }
            if let Outcome::Newer(version) = outcome
                && state == writing.state
            {
                writing.newer = writing.newer.max(version);
            }
        }
        if self.may_acknowledge(router, operation) {
            self.acknowledge(router, operation);
        } else {
            self.restamp(router, operation);
        }
    }

    fn may_acknowledge(&self, router: usize, operation: usize) -> bool {
        let this = &self.routers[router];
        let writing = &this.writing[&operation];
        !writing.is_told
            && writing.writes.iter().all(|(shard, write)| {
                let last = (
                    *shard,
                    Epoch {
                        generation: u32::MAX,
                        number: u64::MAX,
                    },
                );
                let mut records = this.history.range((*shard, Epoch::NONE)..=last);
                records.any(|(_, record)| may_acknowledge(write, record, self.fault))
            })
    }

    fn acknowledge(&mut self, router: usize, operation: usize) {
        let Some(writing) = self.routers[router].writing.remove(&operation) else {
            return;
        };
        self.tell(|| format!("operation {operation} is acknowledged: {:?}", writing.state));
        self.oracle
            .acknowledge(operation, writing.state, self.moment);
        self.check_stores(writing.element);
    }

    /// Sends the change above a newer version, if it may still get one.
    fn restamp(&mut self, router: usize, operation: usize) {
        let wall = self.wall(self.routers[router].skew);
        let Router { clock, writing, .. } = &mut self.routers[router];
        let Some(writing) = writing.get_mut(&operation) else {
            return;
        };
        let ignores = self.fault == Some(Fault::NewVersionAfterFailure) && writing.is_told;
        let above = writing.writes.values().filter_map(Write::outdone_by).max();
        let late = (ignores && writing.newer >= writing.state.version).then_some(writing.newer);
        let Some(above) = above.or(late) else {
            return;
        };
        let version = if clock.observe(above, wall) {
            clock.tick(wall)
        } else {
            above.next()
        };
        if version <= above || version.is_too_far_ahead(wall.milliseconds()) {
            self.tell_failure(router, operation);
            return;
        }
        writing.state.version = version;
        for write in writing.writes.values_mut() {
            if write.outdone_by().is_some() {
                write.restamp(version);
            } else {
                *write = Write::new(writing.state);
            }
        }
        self.oracle.stamped(operation, version, self.moment);
        self.send_round(router, operation);
    }

    /// The caller is told that its change failed. The router goes on for a while.
    fn tell_failure(&mut self, router: usize, operation: usize) {
        let Some(writing) = self.routers[router].writing.get_mut(&operation) else {
            return;
        };
        writing.is_told = true;
        for write in writing.writes.values_mut() {
            write.tell_failure();
        }
        self.oracle.told(operation, self.moment);
    }

    fn give_up(&mut self, router: usize, operation: usize) {
        self.routers[router].writing.remove(&operation);
        self.oracle.told(operation, self.moment);
        self.oracle.given_up(operation, self.moment);
    }

    /// The process ends, and another one begins without memory.
    pub(crate) fn crash_router(&mut self, router: usize) {
        let operations: Vec<_> = self.routers[router].writing.keys().copied().collect();
        for operation in operations {
            self.give_up(router, operation);
        }
        let skew = self.routers[router].skew;
        let life = self.routers[router].life + 1;
        self.routers[router] = Router {
            life,
            skew,
            ..Router::new(&mut self.rng)
        };
        let after = self.rng.u64(10 * MILLISECOND..SECOND);
        self.timer(Place::Router(router), after, Timer::Tick);
    }
}

fn may_acknowledge(write: &Write, record: &ShardRecord, fault: Option<Fault>) -> bool {
    match fault {
        Some(Fault::LearnersAreNotAwaited) => {
            let mut narrow = record.clone();
            narrow.learners.clear();
            write.may_acknowledge(&narrow)
        }
        Some(Fault::MajorityAcknowledges) => {
            let mut narrow = record.clone();
            let most = record.in_sync.len() / 2 + 1;
            narrow.learners.clear();
            (0..record.in_sync.len()).any(|first| {
                let some = record.in_sync.iter().cycle().skip(first).take(most);
                narrow.in_sync = some.copied().collect();
                write.may_acknowledge(&narrow)
            })
        }
        _ => write.may_acknowledge(record),
    }
}

impl Router {
    /// A record that it has known.
    pub(crate) fn record(&self, shard: ShardId, epoch: Epoch) -> Option<&ShardRecord> {
        self.history.get(&(shard, epoch)).map(|record| &**record)
    }
}
