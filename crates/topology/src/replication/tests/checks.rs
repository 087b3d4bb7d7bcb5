//! The promises, as checks of a state, and of an operation that ends.

use super::floors;
use super::world::{Config, Logged, Phase, Reader, Store, World};
use crate::replication::record::{Epoch, ShardRecord, StoreId};
use crate::replication::replica::Role;
use crate::replication::{Entry, State, read_quorum, seal_quorum};

use Promise::{EP5, FL4, RI1, RI2, RI3, RI4, RI5, RI6, RI8, RI10, RI11, RI12};

/// The ids of the promises, as the module's head states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
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
    EP5,
    FL4,
}

/// The promise that a new state breaks. If a rule is left out, only what users can see counts.
pub(super) fn broken(config: &Config, before: &World, world: &World) -> Option<Promise> {
    let seen = in_sync(config, world);
    let seen = seen.or_else(|| (!floors::are_settled(config, world)).then_some(FL4));
    if seen.is_some() || config.without.is_some() {
        return seen;
    }
    let mut stores = before.stores.iter().zip(&world.stores);
    if stores.any(|(old, new)| new.replica.reports() < old.replica.reports()) {
        return Some(RI3);
    }
    if !world
        .history
        .windows(3)
        .all(|three| is_sealed(world, three))
    {
        return Some(RI4);
    }
    if world.current().epoch > Epoch::FIRST && world.current().is_too_cold() {
        return Some(EP5);
    }
    let stores = || world.stores.iter().enumerate();
    if !stores().all(|(_, store)| is_in_order(store)) {
        return Some(RI11);
    }
    let id = |place: usize| super::world::id(place as u8);
    let mut learners = stores().map(|(place, store)| (id(place), store));
    (!learners.all(|(id, store)| is_reported(world, id, store))).then_some(RI12)
}

/// RI1, RI5, RI10: the stores in sync have all that was acknowledged, and nothing that ended before.
fn in_sync(config: &Config, world: &World) -> Option<Promise> {
    let acknowledged = world.acknowledged();
    if acknowledged == 0 {
        return None;
    }
    for entry in &world.current().in_sync {
        let store = world.store(entry.store);
        if store.is_lost {
            continue;
        }
        let missing = if entry.since == Epoch::FIRST {
            RI1
        } else {
            RI5
        };
        let shown = floors::shown(world, store.durable(config));
        if let Some(promise) = wrong(world, shown, acknowledged, missing) {
            return Some(promise);
        }
    }
    None
}

/// What is wrong about showing a state when these operations are acknowledged.
fn wrong(world: &World, shown: State, acknowledged: u8, missing: Promise) -> Option<Promise> {
    for (place, writer) in world.writers.iter().enumerate() {
        let state = writer.write.state();
        if acknowledged & 1 << place == 0 || shown.live == state.live {
            continue;
        }
        if shown < state {
            return Some(missing);
        }
        if writer.ended_before & 1 << (shown.version.0 % super::world::OPERATIONS) != 0 {
            return Some(RI10);
        }
    }
    None
}

/// RI1 and RI6, when an operation is acknowledged at the epoch of a record.
pub(super) fn on_acknowledgement(
    config: &Config,
    world: &World,
    place: usize,
    record: &ShardRecord,
) -> Option<Promise> {
    let writer = &world.writers[place];
    let written = writer.write.state();
    for id in record.write_set() {
        let store = world.store(id);
        let state = floors::shown(world, store.durable(config));
        let holds = !store.is_lost && has_held_since(store, id, record.epoch);
        if holds && state < written && state.live != written.live {
            return Some(RI1);
        }
    }
    let others = world.writers.iter().enumerate();
    let mut before = others.filter(|(other, _)| writer.acknowledged_before & 1 << other != 0);
    let is_late = before.any(|(_, other)| {
        let state = other.write.state();
        state.live != written.live && state.version >= written.version
    });
    // What users can see comes later.
    (is_late && config.without.is_none()).then_some(RI6)
}

/// Whether a store has held the shard since an epoch, by what it has synced.
fn has_held_since(store: &Store, id: StoreId, epoch: Epoch) -> bool {
    let record = store.replica.synced.record.as_ref();
    record.is_some_and(|record| {
        let in_sync = record.in_sync(id).map(|entry| entry.since);
        let since = in_sync.or_else(|| record.learner(id).map(|entry| entry.added));
        since.is_some_and(|since| since <= epoch)
    })
}

/// RI2, RI8, RI10, when a reader has a complete answer.
pub(super) fn on_answer(config: &Config, world: &World, reader: &Reader) -> Option<Promise> {
    let read = &reader.read;
    let record = world.record(super::world::number(read.epoch()));
    let quorum = read_quorum(record.in_sync.len());
    let is_proven = read.is_current || read.confirmed.len() >= quorum;
    let promise = wrong(world, reader.answer, reader.acknowledged, RI2);
    promise.or((config.without.is_none() && !is_proven).then_some(RI8))
}

/// RI4, for three records in a row.
fn is_sealed(world: &World, three: &[std::sync::Arc<ShardRecord>]) -> bool {
    if three[2].epoch.generation > three[1].epoch.generation {
        return true;
    }
    let fenced = |store: &StoreId| world.store(*store).replica.reports() >= three[1].epoch;
    if three[1].epoch.generation > three[0].epoch.generation {
        return three[1].previous.iter().all(fenced);
    }
    let (first, second) = (&three[0].in_sync, three[1].epoch);
    let synced = |store: StoreId| world.store(store).replica.reports() >= second;
    let synced = first.iter().filter(|entry| synced(entry.store));
    synced.count() >= seal_quorum(first.len())
}

/// RI11, for what is not applied.
fn is_in_order(store: &Store) -> bool {
    let mut installed = store.replica.applied.epoch();
    store.log.iter().all(|logged| match logged {
        Logged::Install(Entry::Install(record)) => {
            installed = record.epoch;
            true
        }
        Logged::Install(_) | Logged::Copied(..) => true,
        Logged::Write { epoch, .. } | Logged::Repair { epoch, .. } => *epoch == installed,
    })
}

/// RI12, for a store that takes writes as a learner.
fn is_reported(world: &World, id: StoreId, store: &Store) -> bool {
    let added = match store.replica.appended.role {
        Role::Copying { added } | Role::Copied { added } => added,
        Role::None | Role::InSync => return true,
    };
    let record = world.record(super::world::number(added));
    debug_assert!(record.learner(id).is_some());
    let mut later = world.history.iter().filter(|record| record.epoch >= added);
    later.any(|record| {
        let mut in_sync = record.in_sync.iter();
        in_sync.any(|entry| world.store(entry.store).replica.reports() >= added)
    })
}

/// The operations that have ended.
pub(super) fn ended(world: &World) -> u8 {
    world.operations(&[Phase::Acknowledged, Phase::GivenUp])
}
