//! A directory: what is on disk, what was written and may be lost, and the shards that both amount to.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{
    Entry, Epoch, HeldIncarnations, Outcome, Replica, Role, ShardRecord, State, StoreId, decide,
};

use crate::faults::Fault;
use crate::scene::ELEMENTS;

/// The states of all elements of a shard.
pub(crate) type Contents = [State; ELEMENTS];

/// Of a shard without documents.
pub(crate) const EMPTY: Contents = [State::NEVER; ELEMENTS];

/// A record of the log.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Write {
        element: usize,
        state: State,
        shards: Vec<(ShardId, Epoch)>,
    },
    Install(Vec<(ShardId, Arc<ShardRecord>)>),
    Copied {
        shard: ShardId,
        added: Epoch,
        contents: Contents,
    },
}

/// A shard in memory.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) replica: Replica,
    pub(crate) contents: Contents,
}

impl Shard {
    /// Whether it has tables. They are made at once.
    pub(crate) fn is_hot(&self, store: StoreId) -> bool {
        let standing = self.replica.standing();
        standing.is_some_and(|(record, _)| record.is_hot(store))
    }
}

pub(crate) type Shards = BTreeMap<ShardId, Shard>;

/// What was flushed of a shard.
#[derive(Clone, Debug)]
struct Flushed {
    record: Arc<ShardRecord>,
    role: Role,
    contents: Contents,
}

#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) store: StoreId,
    pub(crate) held: Option<HeldIncarnations>,
    flushed: BTreeMap<ShardId, Flushed>,
    /// The number of the first record of the log.
    first: u64,
    log: Vec<Record>,
    /// How many records were ever synced. Those after them may be lost.
    pub(crate) synced: u64,
}

impl Disk {
    pub(crate) const fn new(store: StoreId) -> Self {
        Self {
            store,
            held: None,
            flushed: BTreeMap::new(),
            first: 0,
            log: Vec::new(),
            synced: 0,
        }
    }

    /// How many records were ever appended.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    pub(crate) fn push(&mut self, record: Record) {
        self.log.push(record);
    }

    pub(crate) fn record(&self, number: u64) -> &Record {
        &self.log[(number - self.first) as usize]
    }

    /// A power loss: any number of records that were not synced stay.
    pub(crate) fn crash(&mut self, kept: u64) {
        let end = (self.synced + kept).min(self.end());
        self.log.truncate((end - self.first) as usize);
        self.synced = end;
    }

    /// The shards by all that is synced.
    pub(crate) fn durable(&self, fault: Option<Fault>) -> Shards {
        let flushed = self.flushed.iter().map(|(&id, flushed)| {
            let record = Arc::clone(&flushed.record);
            let shard = Shard {
                replica: Replica::restored(self.store, record, flushed.role),
                contents: flushed.contents,
            };
            (id, shard)
        });
        let mut shards = flushed.collect();
        for record in &self.log[..(self.synced - self.first) as usize] {
            append(&mut shards, self.store, record);
            sync(&mut shards, record);
            apply(&mut shards, record, fault);
        }
        shards
    }

    /// Writes down the shards as they were when the first `applied` records were applied.
    pub(crate) fn flush(&mut self, shards: &Shards, applied: u64, fault: Option<Fault>) {
        self.flushed.clear();
        for (&id, shard) in shards {
            let Some((record, role)) = shard.replica.standing() else {
                continue;
            };
            let mut contents = shard.contents;
            if fault == Some(Fault::TombstonesDropped) {
                for state in contents.iter_mut().filter(|state| !state.live) {
                    *state = State::NEVER;
                }
            }
            let record = Arc::clone(record);
            let flushed = Flushed {
                record,
                role,
                contents,
            };
            self.flushed.insert(id, flushed);
        }
        self.log.drain(..(applied - self.first) as usize);
        self.first = applied;
    }
}

/// The entries of a record, by shard.
fn entries(record: &Record) -> Vec<(ShardId, Entry)> {
    match record {
        Record::Write { .. } => Vec::new(),
        Record::Install(records) => {
            let entry = |(shard, record): &(ShardId, Arc<ShardRecord>)| {
                (*shard, Entry::Install(Arc::clone(record)))
            };
            records.iter().map(entry).collect()
        }
        Record::Copied { shard, added, .. } => vec![(*shard, Entry::Copied { added: *added })],
    }
}

pub(crate) fn append(shards: &mut Shards, store: StoreId, record: &Record) {
    for (id, entry) in entries(record) {
        let new = || Shard {
            replica: Replica::new(store),
            contents: EMPTY,
        };
        let shard = shards.entry(id).or_insert_with(new);
        shard.replica.append(&entry);
    }
}

pub(crate) fn sync(shards: &mut Shards, record: &Record) {
    for (id, entry) in entries(record) {
        if let Some(shard) = shards.get_mut(&id) {
            shard.replica.sync(&entry);
        }
    }
}

/// Applies a record. Answers what became of a write in each of its shards.
pub(crate) fn apply(
    shards: &mut Shards,
    record: &Record,
    fault: Option<Fault>,
) -> Vec<(ShardId, Epoch, Outcome)> {
    for (id, entry) in entries(record) {
        let Some(shard) = shards.get_mut(&id) else {
            continue;
        };
        let sets_aside = shard.replica.apply(&entry);
        if sets_aside && fault != Some(Fault::LearnersKeepTheirData) {
            shard.contents = EMPTY;
        }
        if let Record::Copied { contents, .. } = record {
            adopt(&mut shard.contents, contents, fault);
        }
    }
    let Record::Write {
        element,
        state,
        shards: of_write,
    } = record
    else {
        return Vec::new();
    };
    let mut outcomes = Vec::new();
    for &(id, epoch) in of_write {
        if let Some(shard) = shards.get_mut(&id) {
            let mut outcome = decide(&mut shard.contents[*element], *state);
            if fault == Some(Fault::NewerIsSuccess) {
                outcome = Outcome::Done;
            }
            outcomes.push((id, epoch, outcome));
        }
    }
    outcomes
}

fn adopt(contents: &mut Contents, copied: &Contents, fault: Option<Fault>) {
    for (state, copied) in contents.iter_mut().zip(copied) {
        *state = match fault {
            Some(Fault::CopiesReplaceLaterWrites) => *copied,
            _ => *copied.max(state),
        };
    }
}
