//! A shard with one element, and all that may happen to it: stores with logs, the metadata, routers and readers.
//!
//! Messages are not modelled. A router knows any record of the history, a write that is not ended may arrive at any
//! time, and what a store said stays true; so a message that is late is a step taken late.

use std::sync::Arc;

use super::actions::Action;
use super::rules::Rule;
use crate::replication::record::{Epoch, InSync, ShardRecord, StoreId};
use crate::replication::{Entry, Outcome, Pin, Read, Replica, Role, State, Write, decide};
use crate::version::Version;

/// Versions of the operation at a place of the plans are this far apart, so that a version tells its operation.
pub(super) const OPERATIONS: u64 = 4;

/// What a search explores.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) name: &'static str,
    /// How many stores there are, and how many of them are in sync at first.
    pub(super) stores: u8,
    pub(super) in_sync: u8,
    /// How often the record changes, stores crash, and disks are lost, at most.
    pub(super) changes: usize,
    pub(super) crashes: u8,
    pub(super) wipes: u8,
    /// How often an operator forces a record, at most.
    pub(super) forces: u8,
    /// How often a scrub reads what a store has, to carry it to others, at most.
    pub(super) scrubs: u8,
    /// Whether a change may concern wishes only.
    pub(super) keeps: bool,
    /// Whether stores delete what they have of the shard once they hold it no more.
    pub(super) deletes: bool,
    /// Whether copies take only what differs from what a learner had.
    pub(super) in_parts: bool,
    /// Whether floors are raised, and tombstones dropped.
    pub(super) floors: bool,
    /// Whether messages of operations that were acknowledged may come once more.
    pub(super) late: bool,
    /// Whether a scrub reads other shards, too.
    pub(super) elsewhere: bool,
    /// How many stores are wished hot. With none, tables are not modelled, and every store in sync answers.
    pub(super) hot: u8,
    /// Whether an append, its sync and its effect are one step.
    pub(super) at_once: bool,
    pub(super) reads: bool,
    pub(super) operations: &'static [Operation],
    /// What has happened already.
    pub(super) before: &'static [Action],
    /// The rule that is left out.
    pub(super) without: Option<Rule>,
}

/// An operation that a router may begin.
pub(super) struct Operation {
    pub(super) version: u64,
    pub(super) live: bool,
    /// Whether it may be given up.
    pub(super) may_fail: bool,
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) stores: Vec<Store>,
    pub(super) history: Arc<Vec<Arc<ShardRecord>>>,
    pub(super) writers: Vec<Writer>,
    pub(super) reader: Option<Reader>,
    pub(super) crashes: u8,
    pub(super) wipes: u8,
    pub(super) forces: u8,
    pub(super) scrubs: u8,
    /// What a scrub read last, and the number of the epoch. It may arrive at any store, at any time.
    pub(super) repair: Option<(u8, State)>,
    /// The newest tombstone that a store has dropped. The code under test knows nothing of it.
    pub(super) dropped: State,
}

#[derive(Clone)]
pub(super) struct Store {
    pub(super) replica: Replica,
    /// The disk is gone for good. What it reported stays true.
    pub(super) is_lost: bool,
    /// An operator said that it does not run. When it starts it has the newest record before it does anything.
    pub(super) is_stopped: bool,
    /// What is applied.
    pub(super) data: State,
    /// What a former role left.
    pub(super) aside: State,
    /// What is appended and not applied, of which the first `synced` are synced.
    pub(super) log: Vec<Logged>,
    pub(super) synced: usize,
    pub(super) copy: Option<(Pin, State)>,
    /// What tables show, if there are any.
    pub(super) table: Option<State>,
    /// What the store had when it was compared with others last, and the number of the epoch.
    pub(super) compared: Option<(u8, State)>,
}

#[derive(Clone)]
pub(super) enum Logged {
    Install(Entry),
    Copied(Entry, State),
    Write {
        writer: u8,
        epoch: Epoch,
        state: State,
    },
    Repair {
        epoch: Epoch,
        state: State,
    },
}

#[derive(Clone)]
pub(super) struct Writer {
    pub(super) phase: Phase,
    pub(super) write: Write,
    pub(super) restamps: u8,
    /// The operations that were acknowledged, and those that were ended in any way, when this one began.
    pub(super) acknowledged_before: u8,
    pub(super) ended_before: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Active,
    /// The caller knows that it failed; the router goes on.
    Told,
    Acknowledged,
    GivenUp,
}

#[derive(Clone)]
pub(super) struct Reader {
    pub(super) read: Read,
    /// The operations that were acknowledged when it began.
    pub(super) acknowledged: u8,
    pub(super) answer: State,
}

impl World {
    pub(super) fn new(config: &Config) -> Self {
        let in_sync = (0..config.in_sync).map(|store| InSync {
            store: id(store),
            since: Epoch::FIRST,
            hot: store < config.hot,
        });
        let first = Arc::new(ShardRecord {
            epoch: Epoch::FIRST,
            nonce: 0,
            in_sync: in_sync.collect(),
            learners: Vec::new(),
            previous: Vec::new(),
            want: config.in_sync,
            hot: config.hot,
            min_in_sync: 1,
            floor: Version::NONE,
            is_frozen: false,
            settled: Version::NONE,
        });
        let stores = (0..config.stores).map(|store| Store::new(store, &first));
        let writers = config.operations.iter().map(|operation| Writer {
            phase: Phase::New,
            write: Write::new(State {
                version: Version(operation.version),
                live: operation.live,
            }),
            restamps: 0,
            acknowledged_before: 0,
            ended_before: 0,
        });
        Self {
            stores: stores.collect(),
            writers: writers.collect(),
            history: Arc::new(vec![first]),
            reader: None,
            crashes: config.crashes,
            wipes: config.wipes,
            forces: config.forces,
            scrubs: config.scrubs,
            repair: None,
            dropped: State::NEVER,
        }
    }

    pub(super) fn current(&self) -> &Arc<ShardRecord> {
        &self.history[self.history.len() - 1]
    }

    /// The record of an epoch.
    pub(super) fn record(&self, number: u8) -> &Arc<ShardRecord> {
        &self.history[usize::from(number) - 1]
    }

    pub(super) fn store(&self, store: StoreId) -> &Store {
        &self.stores[usize::from(store.0[0])]
    }

    /// The operations in some phases, as bits.
    pub(super) fn operations(&self, phases: &[Phase]) -> u8 {
        let writers = self.writers.iter().enumerate();
        let those = writers.filter(|(_, writer)| phases.contains(&writer.phase));
        those.map(|(place, _)| 1 << place).sum()
    }

    pub(super) fn acknowledged(&self) -> u8 {
        self.operations(&[Phase::Acknowledged])
    }
}

impl Store {
    fn new(store: u8, first: &Arc<ShardRecord>) -> Self {
        let mut replica = Replica::new(id(store));
        if first.in_sync(id(store)).is_some() {
            let entry = Entry::Install(Arc::clone(first));
            assert_eq!(replica.check_install(first, |_| Epoch::NONE), Ok(()));
            replica.append(&entry);
            replica.sync(&entry);
            replica.apply(&entry);
        }
        Self {
            replica,
            is_lost: false,
            is_stopped: false,
            data: State::NEVER,
            aside: State::NEVER,
            log: Vec::new(),
            synced: 0,
            copy: None,
            table: None,
            compared: None,
        }
    }

    /// Whether its process takes part.
    pub(super) const fn runs(&self) -> bool {
        !self.is_lost && !self.is_stopped
    }

    /// Takes the effect of a record of the log.
    pub(super) fn take(&mut self, logged: &Logged, config: &Config) -> Option<Outcome> {
        let without = config.without;
        match logged {
            Logged::Install(entry) => {
                let sets_aside = self.replica.apply(entry);
                if sets_aside && without != Some(Rule::NewLearnersBeginEmpty) {
                    self.set_aside(config);
                }
                if !config.in_parts && without != Some(Rule::NothingSetAsideIsMerged) {
                    self.aside = State::NEVER;
                }
                if !self.may_be_built(config) {
                    self.table = None;
                }
                None
            }
            Logged::Copied(entry, copy) => {
                self.replica.apply(entry);
                self.data = self.data.max(*copy);
                if !config.in_parts {
                    self.data = self.data.max(self.aside);
                }
                self.aside = State::NEVER;
                if without != Some(Rule::CopiesThrowTablesAway) {
                    self.table = None;
                }
                None
            }
            Logged::Write { state, .. } | Logged::Repair { state, .. } => {
                let outcome = decide(&mut self.data, *state);
                if self.table.is_some() && without != Some(Rule::TablesFollow) {
                    self.table = Some(self.data);
                }
                let counts = match without {
                    Some(Rule::NewerIsNoSuccess) => true,
                    Some(Rule::SameMeaningIsNoSuccess) => self.data.live == state.live,
                    _ => false,
                };
                Some(if counts { Outcome::Done } else { outcome })
            }
        }
    }

    /// Begins anew. What was set aside before stays so; if that was nothing, the rest is.
    fn set_aside(&mut self, config: &Config) {
        let data = std::mem::replace(&mut self.data, State::NEVER);
        if !config.in_parts {
            self.aside = self.aside.max(data);
        } else if self.aside == State::NEVER {
            self.aside = data;
        }
    }

    /// Whether the store is to hold tables, by the record that is applied.
    pub(super) fn may_be_built(&self, config: &Config) -> bool {
        let Some((record, role)) = self.replica.standing() else {
            return false;
        };
        let is_due = match role {
            Role::Copied { .. } | Role::InSync => true,
            Role::Copying { .. } => config.without == Some(Rule::CopiesThrowTablesAway),
            Role::None => false,
        };
        config.hot > 0 && is_due && record.is_hot(self.replica.store())
    }

    /// The state of the element that a crash leaves at least.
    pub(super) fn durable(&self, config: &Config) -> State {
        if self.synced == 0 {
            return self.data;
        }
        let mut store = self.clone();
        for logged in &self.log[..self.synced] {
            store.take(logged, config);
        }
        store.data
    }

    /// The disk comes back with what was synced and the first `kept` records of the rest.
    pub(super) fn restart(&mut self, kept: usize) {
        self.log.truncate(self.synced + kept);
        self.copy = None;
        self.table = None;
        for logged in &self.log[self.synced..] {
            sync(&mut self.replica, logged);
        }
        self.synced = self.log.len();
        self.replica.appended = self.replica.synced.clone();
    }

    pub(super) fn sync(&mut self) {
        for logged in &self.log[self.synced..] {
            sync(&mut self.replica, logged);
        }
        self.synced = self.log.len();
    }
}

fn sync(replica: &mut Replica, logged: &Logged) {
    match logged {
        Logged::Install(entry) | Logged::Copied(entry, _) => replica.sync(entry),
        Logged::Write { .. } | Logged::Repair { .. } => {}
    }
}

pub(super) fn id(store: u8) -> StoreId {
    StoreId([store; 16])
}

pub(super) fn number(epoch: Epoch) -> u8 {
    epoch.number as u8
}
