//! Floors: the record's versions rise, stores are compared one after the other, and drop tombstones whenever they may.

use super::actions::Action;
use super::metadata::Change;
use super::rules::Rule;
use super::world::{Config, Phase, Store, World, id, number};
use crate::replication::record::{Epoch, Learner, ShardRecord};
use crate::replication::{Outcome, Role, Sent, State, Step, is_forgotten, may_settle};
use crate::version::Version;

/// The versions that a record may be frozen at: those of operations.
fn versions(world: &World) -> impl Iterator<Item = u64> {
    let writers = world.writers.iter();
    let begun = writers.filter(|writer| writer.phase != Phase::New);
    begun.map(|writer| writer.write.state().version.0)
}

/// The changes of the record that concern its floor.
pub(super) fn changes(config: &Config, world: &World) -> impl Iterator<Item = Change> {
    let versions = versions(world).filter(|_| config.floors);
    let of_versions =
        versions.flat_map(|version| [Change::Freeze(version), Change::Settle(version)]);
    of_versions.chain(config.floors.then_some(Change::Thaw))
}

/// What a store does about floors.
pub(super) fn actions(config: &Config, store: u8, into: &mut Vec<Action>) {
    if config.floors {
        into.extend([Action::Compare(store), Action::Drop(store)]);
    }
}

/// Takes note of what a store in sync has, at the current epoch.
pub(super) fn compare(config: &Config, world: &World, store: u8) -> Option<World> {
    let held = &world.stores[usize::from(store)];
    let epoch = world.current().epoch;
    let compared = (number(epoch), held.data);
    let counts = held.replica.answers(epoch) || config.without == Some(Rule::ComparedOnceApplied);
    let may = config.floors && held.runs() && counts && held.compared != Some(compared);
    may.then(|| {
        let mut next = world.clone();
        next.stores[usize::from(store)].compared = Some(compared);
        next
    })
}

/// Whether the stores in sync were compared by the current record and agree.
fn agree(config: &Config, world: &World, until: Version) -> bool {
    let current = world.current();
    let at = |(epoch, state): (u8, State)| match config.without {
        Some(Rule::ComparedByThisRecord) => Some(state),
        _ => (epoch == number(current.epoch)).then_some(state),
    };
    let states = current.in_sync.iter();
    let states = states.map(|entry| world.store(entry.store).compared.and_then(at));
    let states: Vec<Option<State>> = states.collect();
    let known: Vec<State> = states.iter().copied().flatten().collect();
    match config.without {
        Some(Rule::SettledOnceCompared) => true,
        Some(Rule::AllInSyncAreCompared) => !known.is_empty() && may_settle(&known, until),
        Some(Rule::LaterStatesSayNothing) => {
            let is_later = known.iter().any(|state| state.version > until);
            known.len() == states.len() && (is_later || may_settle(&known, until))
        }
        _ => known.len() == states.len() && may_settle(&known, until),
    }
}

/// The step of a change that concerns the floor.
pub(super) fn step(config: &Config, world: &World, change: Change) -> Option<Step> {
    match change {
        Change::Freeze(version) => Some(Step::Freeze(Version(version))),
        Change::Thaw => Some(Step::Thaw),
        Change::Settle(version) => {
            let (until, compared) = (Version(version), world.current().epoch);
            agree(config, world, until).then_some(Step::Settle { until, compared })
        }
        Change::Keep
        | Change::Evict(_)
        | Change::Add(_)
        | Change::Drop(_)
        | Change::Promote(_)
        | Change::Heat(_)
        | Change::Cool(_)
        | Change::EvictTwo(..)
        | Change::Force { .. }
        | Change::Swap { .. } => None,
    }
}

/// The record that a change of the floor is taken from, if a rule is left out.
pub(super) fn blinded(config: &Config, current: &ShardRecord, change: Change) -> ShardRecord {
    let mut record = current.clone();
    if !matches!(change, Change::Settle(_)) {
        return record;
    }
    match config.without {
        Some(Rule::NoLearnerIsThere) => record.learners.clear(),
        Some(Rule::FloorIsRaisedFirst) => {
            (record.floor, record.is_frozen) = (Version(5), true);
        }
        _ => {}
    }
    record
}

/// A record after a step, with the learners that were not seen, if that rule is left out.
pub(super) fn with_learners(
    config: &Config,
    mut next: ShardRecord,
    change: Change,
    learners: &[Learner],
) -> ShardRecord {
    let is_blinded = config.without == Some(Rule::NoLearnerIsThere);
    if is_blinded && matches!(change, Change::Settle(_)) {
        next.learners = learners.to_vec();
    }
    next
}

/// Takes note of what an operation has left in another shard of the document, which may be outdone there later. An
/// operation that was acknowledged is there.
pub(super) fn scrub_elsewhere(config: &Config, world: &World, writer: u8) -> Option<World> {
    let place = usize::from(writer);
    let operation = &world.writers[place];
    let state = operation.write.state();
    let is_there = matches!(operation.phase, Phase::Active | Phase::Acknowledged);
    let mut others = world.writers.iter();
    let is_outdone =
        others.any(|other| other.phase == Phase::Acknowledged && other.write.state() > state);
    if !config.elsewhere || world.scrubs == 0 || !is_there || is_outdone {
        return None;
    }
    let mut next = world.clone();
    next.scrubs -= 1;
    next.repair = Some((number(world.current().epoch), state));
    Some(next)
}

/// Whether the stores in sync agree on what is settled: else they would answer differently for ever.
pub(super) fn are_settled(config: &Config, world: &World) -> bool {
    let current = world.current();
    let in_sync = current.in_sync.iter();
    let stores = in_sync.map(|entry| world.store(entry.store));
    let states = stores.filter(|store| !store.is_lost);
    let states: Vec<State> = states.map(|store| store.durable(config)).collect();
    may_settle(&states, current.settled)
}

/// The version that a store takes changes above.
pub(super) fn bar(config: &Config, held: &Store, sent: Sent) -> Version {
    let is_learner = matches!(
        held.replica.appended.role,
        Role::Copying { .. } | Role::Copied { .. }
    );
    match (config.without, sent) {
        (Some(Rule::LateChangesAreBarred), Sent::ByRouter)
        | (Some(Rule::LateRepairsAreBarred), Sent::ToRepair) => Version::NONE,
        (Some(Rule::FrozenWhileCompared), Sent::ToRepair) => {
            let record = held.replica.appended.record.as_ref();
            record.map_or(Version::NONE, |record| record.settled)
        }
        (Some(Rule::LearnersHaveTheFloor), _) if is_learner => Version::NONE,
        _ => held.replica.bar(sent),
    }
}

/// A store drops a tombstone.
pub(super) fn drop(config: &Config, world: &World, store: u8) -> Option<World> {
    let held = &world.stores[usize::from(store)];
    let (record, role) = held.replica.standing()?;
    let settled = match config.without {
        Some(Rule::DroppedOnceSettled) => record.floor,
        _ => record.settled,
    };
    let is_there = held.data != State::NEVER && role != Role::None && held.runs();
    (is_there && is_forgotten(held.data, settled)).then(|| {
        let mut next = world.clone();
        next.dropped = next.dropped.max(held.data);
        next.stores[usize::from(store)].data = State::NEVER;
        next
    })
}

/// What a store shows that has nothing: a tombstone that was dropped, if there is one.
pub(super) fn shown(world: &World, state: State) -> State {
    if state == State::NEVER {
        world.dropped
    } else {
        state
    }
}

/// A store answers a write that is not above its floor.
pub(super) fn barred(
    world: &World,
    writer: u8,
    store: u8,
    (epoch, bar): (Epoch, Version),
) -> Option<World> {
    let mut next = world.clone();
    let operation = &mut next.writers[usize::from(writer)];
    if operation.phase == Phase::Acknowledged || operation.write.newer >= bar {
        return None;
    }
    let state = operation.write.state();
    let outcome = Outcome::Newer(bar);
    operation.write.answered(id(store), epoch, state, outcome);
    Some(next)
}

/// Whether a write that comes late leaves a store as it is.
pub(super) fn is_outdone(held: &Store, state: State) -> bool {
    held.log.is_empty() && held.data >= state
}
