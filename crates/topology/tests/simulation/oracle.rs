//! What was promised to clients, and whether it is kept. It sees everything, and tells no process of it.

use std::collections::BTreeMap;

use simshard_topology::replication::{Epoch, ShardRecord, State, StoreId, seal_quorum};
use simshard_topology::{ShardId, Version};

use crate::faults::Fault;
use crate::scene::{ELEMENTS, node_of};

/// The ids of the promises, as the heads of the core and of the simulation state them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Promise {
    RI1,
    RI2,
    RI3,
    RI4,
    RI5,
    RI6,
    RI8,
    RI10,
    RI11,
    RI12,
    QW2,
    SI1,
    SI2,
    SI3,
    SI4,
    SI5,
}

/// A promise that was broken, and how.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    pub(crate) promise: Promise,
    pub(crate) how: String,
}

/// A change of a document, by one call of a client. Times are moments.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) element: usize,
    pub(crate) live: bool,
    begun: u64,
    /// When its caller was told that it failed.
    told: Option<u64>,
    acknowledged: Option<(u64, State)>,
    /// When its router forgot it.
    given_up: Option<u64>,
    /// When nothing of it could happen any more.
    ended: Option<u64>,
    stamps: Vec<(Version, u64)>,
    /// Messages on the network.
    pub(crate) in_flight: usize,
}

impl Operation {
    /// Whether the version of a state was made after the caller had been told of a failure, before another one began.
    fn is_late(&self, shown: State, known: &Self) -> bool {
        let mut stamps = self.stamps.iter();
        let stamp = stamps.find(|(version, _)| *version == shown.version);
        let stamped = stamp.map(|(_, at)| *at);
        self.told.is_some() && self.told < stamped && self.told < Some(known.begun)
    }
}

pub(crate) struct Oracle {
    fault: Option<Fault>,
    pub(crate) operations: Vec<Operation>,
    by_element: [Vec<usize>; ELEMENTS],
    pub(crate) breach: Option<Breach>,
    /// Complete answers.
    pub(crate) answered: usize,
    /// The highest epoch that a store has reported, by the store's own log.
    reported: BTreeMap<(StoreId, ShardId), Epoch>,
    /// The stores in sync by the record before the one before the last.
    before: BTreeMap<ShardId, ShardRecord>,
    /// The newest tombstones that were dropped as they were settled, by shard and document.
    dropped: BTreeMap<(ShardId, usize), State>,
    /// How many stores have dropped.
    pub(crate) drops: usize,
}

impl Oracle {
    pub(crate) const fn new(fault: Option<Fault>) -> Self {
        Self {
            fault,
            operations: Vec::new(),
            by_element: [const { Vec::new() }; ELEMENTS],
            breach: None,
            answered: 0,
            reported: BTreeMap::new(),
            before: BTreeMap::new(),
            dropped: BTreeMap::new(),
            drops: 0,
        }
    }

    pub(crate) fn acknowledged(&self) -> usize {
        let operations = self.operations.iter();
        operations.filter(|one| one.acknowledged.is_some()).count()
    }

    /// Notes a breach. Of a world with a planted fault, only what a user may see or lose counts.
    pub(crate) fn note(&mut self, promise: Promise, how: impl FnOnce() -> String) {
        let is_seen = match promise {
            Promise::RI1
            | Promise::RI2
            | Promise::RI5
            | Promise::RI10
            | Promise::QW2
            | Promise::SI1
            | Promise::SI3
            | Promise::SI4
            | Promise::SI5 => true,
            Promise::SI2
            | Promise::RI3
            | Promise::RI4
            | Promise::RI6
            | Promise::RI8
            | Promise::RI11
            | Promise::RI12 => self.fault.is_none(),
        };
        if is_seen && self.breach.is_none() {
            let how = how();
            self.breach = Some(Breach { promise, how });
        }
    }

    pub(crate) fn begun(&mut self, element: usize, live: bool, moment: u64) -> usize {
        self.operations.push(Operation {
            element,
            live,
            begun: moment,
            told: None,
            acknowledged: None,
            given_up: None,
            ended: None,
            stamps: Vec::new(),
            in_flight: 0,
        });
        let operation = self.operations.len() - 1;
        self.by_element[element].push(operation);
        operation
    }

    pub(crate) fn stamped(&mut self, operation: usize, version: Version, moment: u64) {
        self.operations[operation].stamps.push((version, moment));
    }

    pub(crate) fn told(&mut self, operation: usize, moment: u64) {
        self.operations[operation].told.get_or_insert(moment);
    }

    pub(crate) fn given_up(&mut self, operation: usize, moment: u64) {
        self.operations[operation].given_up = Some(moment);
        self.settle(operation, moment);
    }

    pub(crate) fn left_network(&mut self, operation: usize, moment: u64) {
        self.operations[operation].in_flight -= 1;
        self.settle(operation, moment);
    }

    fn settle(&mut self, operation: usize, moment: u64) {
        let operation = &mut self.operations[operation];
        let is_over = operation.acknowledged.is_some() || operation.given_up.is_some();
        if is_over && operation.in_flight == 0 {
            operation.ended.get_or_insert(moment);
        }
    }

    /// RI6.
    pub(crate) fn acknowledge(&mut self, operation: usize, state: State, moment: u64) {
        let this = &mut self.operations[operation];
        this.acknowledged = Some((moment, state));
        let (element, begun) = (this.element, this.begun);
        self.settle(operation, moment);
        let is_late = |other: &&Operation| {
            let before = other.acknowledged.filter(|(at, _)| *at < begun);
            other.element == element
                && before.is_some_and(|(_, known)| known.live != state.live && known >= state)
        };
        if let Some(other) = self.operations.iter().find(is_late) {
            let how = format!("{state:?} was acknowledged after {other:?}");
            self.note(Promise::RI6, || how);
        }
    }

    /// Checks a state of an element that is shown: what was acknowledged before a moment is there, and nothing that
    /// ended before that began. RI10, QW2, SI1, and `missing`.
    pub(crate) fn check(
        &mut self,
        element: usize,
        shown: State,
        before: u64,
        missing: Promise,
        place: impl FnOnce() -> String,
    ) {
        if let Some((promise, how)) = self.wrong(element, shown, before, missing) {
            self.note(promise, || format!("{}: {shown:?}: {how}", place()));
        }
    }

    fn wrong(
        &self,
        element: usize,
        shown: State,
        before: u64,
        missing: Promise,
    ) -> Option<(Promise, String)> {
        let of_element = || {
            self.by_element[element]
                .iter()
                .map(|&one| &self.operations[one])
        };
        let shows = |one: &&Operation| {
            let mut stamps = one.stamps.iter();
            one.live == shown.live && stamps.any(|(version, _)| *version == shown.version)
        };
        let writers: Vec<_> = of_element().filter(shows).collect();
        if shown != State::NEVER && writers.is_empty() {
            return Some((Promise::SI1, "no client wrote it".into()));
        }
        for known in of_element() {
            let Some((at, state)) = known.acknowledged else {
                continue;
            };
            if at >= before || state.live == shown.live {
                continue;
            }
            if shown < state {
                return Some((missing, format!("{known:?} is missing")));
            }
            let is_over = |one: &&Operation| one.ended.is_some_and(|ended| ended < known.begun);
            if writers.iter().all(is_over) {
                let how = format!("it is over, and {known:?} is later");
                return Some((Promise::RI10, how));
            }
            if writers.iter().all(|one| one.is_late(shown, known)) {
                let how = format!("it had failed, and {known:?} is later");
                return Some((Promise::QW2, how));
            }
        }
        None
    }

    /// RI3.
    pub(crate) fn reports(&mut self, store: StoreId, shard: ShardId, epoch: Epoch) {
        let known = self.reported.entry((store, shard)).or_insert(Epoch::NONE);
        let before = *known;
        *known = epoch.max(before);
        if epoch < before {
            self.note(Promise::RI3, || {
                format!("{store} {shard}: {before}, {epoch}")
            });
        }
    }

    /// The highest epoch that a store has reported.
    pub(crate) fn report(&self, store: StoreId, shard: ShardId) -> Epoch {
        let known = self.reported.get(&(store, shard));
        known.copied().unwrap_or(Epoch::NONE)
    }

    /// RI4.
    pub(crate) fn record_changed(
        &mut self,
        shard: ShardId,
        before: &ShardRecord,
        record: &ShardRecord,
    ) {
        if let Some(first) = self.before.insert(shard, before.clone()) {
            let has_synced = |store| self.report(store, shard) >= before.epoch;
            let synced = first.in_sync.iter().filter(|entry| has_synced(entry.store));
            let is_sealed = synced.count() >= seal_quorum(first.in_sync.len());
            if !is_sealed {
                self.note(Promise::RI4, || format!("{shard}: {before:?}, {record:?}"));
            }
        }
    }

    /// SI4, for a record that a node has written. The drained node is a target of no shard.
    pub(crate) fn step_taken(
        &mut self,
        shard: ShardId,
        before: &ShardRecord,
        record: &ShardRecord,
        drained: Option<usize>,
    ) {
        let mut learners = record.learners.iter().map(|learner| learner.store);
        let Some(coming) = learners.find(|store| !before.names(*store)) else {
            return;
        };
        let is_one_too_many = !before.is_short() && !before.learners.is_empty()
            || before.in_sync.len() > usize::from(before.want);
        if is_one_too_many || drained == Some(node_of(coming)) {
            self.note(Promise::SI4, || format!("{shard}: {before:?}, {record:?}"));
        }
    }

    /// A store drops a tombstone, of what its record says is settled.
    pub(crate) fn dropped(
        &mut self,
        shard: ShardId,
        element: usize,
        tombstone: State,
        settled: Version,
    ) {
        self.drops += 1;
        if tombstone.version <= settled {
            let known = self.dropped.entry((shard, element)).or_insert(State::NEVER);
            *known = tombstone.max(*known);
        }
    }

    /// What a store shows of an element in a shard. Where it has nothing, that is the tombstone that was dropped.
    pub(crate) fn shown(&self, shard: ShardId, element: usize, state: State) -> State {
        let dropped = self.dropped.get(&(shard, element)).copied();
        dropped.filter(|_| state == State::NEVER).unwrap_or(state)
    }

    /// RI12: a learner takes writes.
    pub(crate) fn learner_joined(&mut self, shard: ShardId, record: &ShardRecord, added: Epoch) {
        let mut in_sync = record.in_sync.iter();
        if !in_sync.any(|entry| self.report(entry.store, shard) >= added) {
            self.note(Promise::RI12, || format!("{shard}: {record:?}"));
        }
    }
}

impl Oracle {
    /// How many of some operations were acknowledged.
    pub(crate) fn acknowledged_of(&self, range: std::ops::Range<usize>) -> usize {
        let operations = self.operations[range].iter();
        operations.filter(|one| one.acknowledged.is_some()).count()
    }
}
