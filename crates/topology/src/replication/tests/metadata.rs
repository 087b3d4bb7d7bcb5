//! Changes of the record, as any process may write them that has read the current one.

use std::sync::Arc;

use super::floors;
use super::rules::Rule;
use super::world::{Config, Store, World, id};
use crate::replication::record::{Epoch, ShardRecord, StoreId};
use crate::replication::{Step, StepError, seal_quorum};

/// A change, with stores by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Keep,
    Evict(u8),
    Add(u8),
    Drop(u8),
    Promote(u8),
    Heat(u8),
    Cool(u8),
    Freeze(u64),
    Thaw,
    Settle(u64),
    /// Two stores leave at once.
    EvictTwo(u8, u8),
    /// An operator lets a store go on alone. Those that answer are bits by their places.
    Force {
        store: u8,
        answering: u8,
    },
    /// A learner takes the place of a store in sync.
    Swap {
        promoted: u8,
        evicted: u8,
    },
}

/// All changes that may be tried.
pub(super) fn changes(config: &Config, world: &World) -> impl Iterator<Item = Change> {
    let stores = 0..config.stores;
    let of_one = stores.clone().flat_map(|store| {
        [
            Change::Evict(store),
            Change::Add(store),
            Change::Drop(store),
            Change::Promote(store),
        ]
    });
    let turned = stores
        .clone()
        .filter(|_| config.hot > 0)
        .flat_map(|store| [Change::Heat(store), Change::Cool(store)]);
    let without = config.without;
    let pairs = move |first| stores.clone().map(move |second| (first, second));
    let of_two = (0..config.stores).flat_map(pairs);
    let of_two = of_two.filter_map(move |(first, second)| match without {
        Some(Rule::OneEvictionAtOnce) => Some(Change::EvictTwo(first, second)),
        Some(Rule::NoSwap) => Some(Change::Swap {
            promoted: first,
            evicted: second,
        }),
        _ => None,
    });
    let keep = config.keeps.then_some(Change::Keep);
    let of_all = move |store| {
        let answering = (0..1_u8 << config.stores)
            .filter(move |answering: &u8| answering & (1_u8 << store) != 0);
        answering.map(move |answering| Change::Force { store, answering })
    };
    let forced = (0..config.stores)
        .filter(|_| config.forces > 0)
        .flat_map(of_all);
    keep.into_iter()
        .chain(of_one)
        .chain(turned)
        .chain(of_two)
        .chain(forced)
        .chain(floors::changes(config, world))
}

/// The state after a change. None if it is refused.
pub(super) fn change(config: &Config, world: &World, change: Change) -> Option<World> {
    let step = |change| step(config, world, world.current(), change);
    if let Change::Force { store, answering } = change {
        return force(config, world, store, answering);
    }
    let record = match change {
        Change::EvictTwo(first, second) => {
            let one = step(Change::Evict(first)).ok()?;
            let mut both = one.clone();
            both.in_sync.retain(|entry| entry.store != id(second));
            let leaves = both.in_sync.len() + 1 == one.in_sync.len() && !both.in_sync.is_empty();
            leaves.then_some(both)?
        }
        Change::Swap { promoted, evicted } => {
            let mut record = step(Change::Promote(promoted)).ok()?;
            record.in_sync(id(evicted))?;
            record.in_sync.retain(|entry| entry.store != id(evicted));
            record
        }
        Change::Add(store) if !world.stores[usize::from(store)].runs() => return None,
        Change::Keep
        | Change::Evict(_)
        | Change::Add(_)
        | Change::Drop(_)
        | Change::Promote(_)
        | Change::Heat(_)
        | Change::Cool(_)
        | Change::Freeze(_)
        | Change::Thaw
        | Change::Settle(_)
        | Change::Force { .. } => step(change).ok()?,
    };
    let mut next = world.clone();
    Arc::make_mut(&mut next.history).push(Arc::new(record));
    Some(next)
}

/// The state after a forced record: all that do not answer do not run.
fn force(config: &Config, world: &World, store: u8, answering: u8) -> Option<World> {
    let answers = |place: u8| answering & 1 << place != 0;
    let can = |(place, held): (usize, &Store)| held.runs() || !answers(place as u8);
    if world.forces == 0 || !world.stores.iter().enumerate().all(can) {
        return None;
    }
    let answered = |store: StoreId| answers(store.0[0]);
    let record = world.current().forced(id(store), 0, answered).ok()?;
    let mut next = world.clone();
    next.forces -= 1;
    let learns_first = config.without != Some(Rule::StoppedStoresLearnFirst);
    for (place, held) in next.stores.iter_mut().enumerate() {
        if !answers(place as u8) {
            held.is_stopped = learns_first;
            held.copy = None;
        }
    }
    Arc::make_mut(&mut next.history).push(Arc::new(record));
    Some(next)
}

fn step(
    config: &Config,
    world: &World,
    current: &ShardRecord,
    change: Change,
) -> Result<ShardRecord, StepError> {
    let current = &floors::blinded(config, current, change);
    let step = match change {
        Change::Freeze(_) | Change::Thaw | Change::Settle(_) => {
            let not_compared = StepError::NotCompared(current.epoch);
            floors::step(config, world, change).ok_or(not_compared)?
        }
        Change::Keep | Change::EvictTwo(..) | Change::Swap { .. } | Change::Force { .. } => {
            Step::Adjust
        }
        Change::Evict(store) => Step::Evict(id(store)),
        Change::Add(store) => Step::AddLearner(id(store)),
        Change::Drop(store) => Step::DropLearner(id(store)),
        Change::Heat(_) => Step::Adjust,
        Change::Cool(store) => Step::Cool(id(store)),
        Change::Promote(store) => Step::Promote {
            store: id(store),
            copied: word(config, world, current, id(store)),
        },
    };
    let reports = |store: &&StoreId| world.store(**store).replica.reports() >= current.epoch;
    let some_suffice = config.without == Some(Rule::ForceIsSealedByAll)
        && current.previous.iter().filter(reports).count() >= seal_quorum(current.previous.len());
    let is_lost = |store| matches!(change, Change::Heat(well) if store != id(well));
    let synced = |store| {
        let replica = &world.store(store).replica;
        match config.without {
            Some(Rule::Seal) => current.epoch,
            _ if some_suffice => current.epoch,
            Some(Rule::SealBySync) => replica.confirms(),
            _ => replica.reports(),
        }
    };
    let next = current.after(step, 0, synced, is_lost);
    next.map(|next| floors::with_learners(config, next, change, &world.current().learners))
}

/// What a learner says that it has copied.
fn word(config: &Config, world: &World, current: &ShardRecord, store: StoreId) -> Epoch {
    let word = world.store(store).replica.has_copied();
    let ignores_word = match config.without {
        Some(Rule::PromoteByWord) => true,
        Some(Rule::WordOfThisAddition) => word.is_some(),
        _ => false,
    };
    let added = current.learner(store).map(|learner| learner.added);
    let word = if ignores_word { added } else { word };
    word.unwrap_or(Epoch::NONE)
}
