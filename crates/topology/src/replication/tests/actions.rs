//! What may happen next in a state, and the state after it.

use std::sync::Arc;

use super::checks::{Promise, ended, on_acknowledgement, on_answer};
use super::comparison::{Comparison, comparisons};
use super::floors;
use super::former;
use super::metadata::{self, Change};
use super::rules::Rule;
use super::world::{Config, Logged, OPERATIONS, Phase, Reader, Store, World, id, number};
use crate::replication::record::Epoch;
use crate::replication::{
    Entry, Outcome, Pin, Read, Replica, Sent, State, decide, is_forgotten, is_later, may_stay,
    read_quorum,
};
use crate::version::Version;

/// How often an operation gets a new version, at most.
const RESTAMPS: u8 = 1;

/// Writers and stores by their places, records by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing yet.
    Begin,
    BeginWrite(u8),
    Append {
        writer: u8,
        store: u8,
        epoch: u8,
    },
    Sync(u8),
    /// The log refuses the entries that are not synced, as on a full disk.
    Withdraw(u8),
    Apply(u8),
    Acknowledge {
        writer: u8,
        epoch: u8,
    },
    Restamp(u8),
    TellFailure(u8),
    GiveUp(u8),
    Change(Change),
    Install {
        store: u8,
        epoch: u8,
    },
    Crash {
        store: u8,
        kept: u8,
    },
    LoseDisk(u8),
    Pin {
        learner: u8,
        source: u8,
    },
    EndCopy {
        learner: u8,
        comparison: Comparison,
    },
    /// A scrub reads what a store has.
    Scrub(u8),
    /// A scrub reads what another shard of the document has, which an operation has reached.
    ScrubElsewhere(u8),
    /// A store takes what a scrub read.
    Repair(u8),
    /// Tables are made.
    Warm(u8),
    /// A store deletes what it has, as it holds the shard no more.
    Delete(u8),
    /// A store is compared with the others.
    Compare(u8),
    /// A store drops a tombstone.
    Drop(u8),
    BeginRead(u8),
    Answer(u8),
    Confirm(u8),
}

/// All that may be tried in a state.
pub(super) fn actions(config: &Config, world: &World, into: &mut Vec<Action>) {
    let epochs = 1..=world.history.len() as u8;
    for writer in 0..world.writers.len() as u8 {
        into.extend([
            Action::BeginWrite(writer),
            Action::Restamp(writer),
            Action::TellFailure(writer),
            Action::GiveUp(writer),
            Action::ScrubElsewhere(writer),
        ]);
        for epoch in epochs.clone() {
            into.push(Action::Acknowledge { writer, epoch });
            let append = |store| Action::Append {
                writer,
                store,
                epoch,
            };
            into.extend((0..config.stores).map(append));
        }
    }
    for store in 0..config.stores {
        into.extend([
            Action::Sync(store),
            Action::Withdraw(store),
            Action::Apply(store),
            Action::LoseDisk(store),
            Action::Scrub(store),
            Action::Repair(store),
            Action::Warm(store),
            Action::Delete(store),
            Action::Answer(store),
            Action::Confirm(store),
        ]);
        floors::actions(config, store, into);
        into.extend(epochs.clone().map(|epoch| Action::Install { store, epoch }));
        into.extend((0..4).map(|kept| Action::Crash { store, kept }));
        if world.stores[usize::from(store)].copy.is_some() {
            into.extend(
                comparisons(config, world).map(|comparison| Action::EndCopy {
                    learner: store,
                    comparison,
                }),
            );
        }
        let pin = |source| Action::Pin {
            learner: store,
            source,
        };
        into.extend((0..config.stores).map(pin));
    }
    if config.reads {
        into.extend(epochs.map(Action::BeginRead));
    }
    if world.history.len() <= config.changes {
        into.extend(metadata::changes(config, world).map(Action::Change));
    }
}

/// The state after an action, and the promise that the action itself breaks. None if it cannot happen.
pub(super) fn act(
    config: &Config,
    world: &World,
    action: Action,
) -> Option<(World, Option<Promise>)> {
    let next = match action {
        Action::Begin => None,
        Action::BeginWrite(writer) => begin_write(world, writer),
        Action::Append {
            writer,
            store,
            epoch,
        } => append_write(config, world, writer, store, epoch),
        Action::Sync(store) => sync(world, store),
        Action::Withdraw(store) => withdraw(world, store),
        Action::Apply(store) => {
            let held = world.stores.get(usize::from(store))?;
            (held.synced > 0).then(|| applied(config, world.clone(), store))
        }
        Action::Acknowledge { writer, epoch } => return acknowledge(config, world, writer, epoch),
        Action::Restamp(writer) => restamp(world, writer),
        Action::TellFailure(writer) => tell_failure(config, world, writer),
        Action::GiveUp(writer) => give_up(world, writer),
        Action::Change(change) => metadata::change(config, world, change),
        Action::Install { store, epoch } => install(config, world, store, epoch),
        Action::Crash { store, kept } => crash(world, store, kept),
        Action::LoseDisk(store) => lose_disk(config, world, store),
        Action::Pin { learner, source } => pin(config, world, learner, source),
        Action::EndCopy {
            learner,
            comparison,
        } => end_copy(config, world, learner, comparison),
        Action::Scrub(store) => scrub(world, store),
        Action::ScrubElsewhere(writer) => floors::scrub_elsewhere(config, world, writer),
        Action::Repair(store) => repair(config, world, store),
        Action::Warm(store) => warm(config, world, store),
        Action::Delete(store) => former::delete(config, world, store),
        Action::Compare(store) => floors::compare(config, world, store),
        Action::Drop(store) => floors::drop(config, world, store),
        Action::BeginRead(epoch) => begin_read(config, world, epoch),
        Action::Answer(store) => return answer(config, world, store),
        Action::Confirm(store) => return confirm(config, world, store),
    };
    next.map(|next| (next, None))
}

fn begin_write(world: &World, writer: u8) -> Option<World> {
    let place = usize::from(writer);
    if world.writers[place].phase != Phase::New {
        return None;
    }
    let mut next = world.clone();
    let writer = &mut next.writers[place];
    writer.phase = Phase::Active;
    writer.acknowledged_before = world.acknowledged();
    writer.ended_before = ended(world);
    Some(next)
}

fn append_write(config: &Config, world: &World, writer: u8, store: u8, epoch: u8) -> Option<World> {
    let operation = &world.writers[usize::from(writer)];
    let held = &world.stores[usize::from(store)];
    let is_late = operation.phase == Phase::Acknowledged && config.late;
    let is_sent = matches!(operation.phase, Phase::Active | Phase::Told) || is_late;
    if !is_sent || !held.runs() {
        return None;
    }
    let state = operation.write.state();
    let number = epoch;
    let epoch = world.record(number).epoch;
    if !takes(config, world, store, number)
        || is_repeated(world, writer, store, epoch)
        || is_late && floors::is_outdone(held, state)
    {
        return None;
    }
    let bar = floors::bar(config, held, Sent::ByRouter);
    if state.version <= bar {
        return floors::barred(world, writer, store, (epoch, bar));
    }
    let mut next = world.clone();
    if config.without == Some(Rule::AnswerAfterSync) {
        let write = &mut next.writers[usize::from(writer)].write;
        write.answered(id(store), epoch, state, Outcome::Done);
    }
    let logged = Logged::Write {
        writer,
        epoch,
        state,
    };
    Some(append(config, next, store, logged))
}

/// Whether the gate of a store takes a write.
fn takes(config: &Config, world: &World, store: u8, number: u8) -> bool {
    let replica = &world.stores[usize::from(store)].replica;
    let record = world.record(number);
    match config.without {
        Some(Rule::EpochsMustAgree) => {
            let is_named = record.write_set().any(|named| named == id(store));
            is_named && replica.takes(replica.confirms())
        }
        Some(Rule::GateFromAppend) => {
            let mut late = replica.clone();
            late.appended = late.applied.clone();
            late.takes(record.epoch)
        }
        _ => replica.takes(record.epoch),
    }
}

/// Whether a store has said already what it would say again.
fn is_repeated(world: &World, writer: u8, store: u8, epoch: Epoch) -> bool {
    let write = &world.writers[usize::from(writer)].write;
    let held = &world.stores[usize::from(store)];
    let mut changes_role = false;
    for logged in &held.log {
        match logged {
            Logged::Write {
                writer: by,
                epoch: at,
                state,
            } if (*by, *at, *state) == (writer, epoch, write.state()) => return true,
            Logged::Write { .. } | Logged::Repair { .. } => {}
            Logged::Install(_) | Logged::Copied(..) => changes_role = true,
        }
    }
    let is_outdone = || match decide(&mut held.data.clone(), write.state()) {
        Outcome::Newer(version) => write.newer >= version,
        Outcome::Done => false,
    };
    write.done.contains(&(epoch, id(store))) || !changes_role && is_outdone()
}

fn append(config: &Config, mut next: World, store: u8, logged: Logged) -> World {
    let held = &mut next.stores[usize::from(store)];
    match &logged {
        Logged::Install(entry) | Logged::Copied(entry, _) => held.replica.append(entry),
        Logged::Write { .. } | Logged::Repair { .. } => {}
    }
    held.log.push(logged);
    if config.at_once {
        held.sync();
        next = applied(config, next, store);
    }
    next
}

fn sync(world: &World, store: u8) -> Option<World> {
    let held = &world.stores[usize::from(store)];
    (held.synced < held.log.len()).then(|| {
        let mut next = world.clone();
        next.stores[usize::from(store)].sync();
        next
    })
}

/// The log refuses what it was given last: records, or the end of a copy. The writes before them stay in the queue.
fn withdraw(world: &World, store: u8) -> Option<World> {
    let held = &world.stores[usize::from(store)];
    let unsynced = held.log[held.synced..].iter().rev();
    let is_entry = |logged: &&Logged| matches!(logged, Logged::Install(_) | Logged::Copied(..));
    let refused = unsynced.take_while(is_entry).count();
    (refused > 0).then(|| {
        let mut next = world.clone();
        let held = &mut next.stores[usize::from(store)];
        held.log.truncate(held.log.len() - refused);
        held.replica.withdraw();
        next
    })
}

/// Applies the first record of the log.
fn applied(config: &Config, mut next: World, store: u8) -> World {
    let held = &mut next.stores[usize::from(store)];
    let logged = held.log.remove(0);
    held.synced -= 1;
    let outcome = held.take(&logged, config);
    if let (
        Logged::Write {
            writer,
            epoch,
            state,
        },
        Some(outcome),
    ) = (logged, outcome)
    {
        let operation = &mut next.writers[usize::from(writer)];
        if matches!(operation.phase, Phase::Active | Phase::Told) {
            operation.write.answered(id(store), epoch, state, outcome);
        }
    }
    next
}

fn acknowledge(
    config: &Config,
    world: &World,
    writer: u8,
    epoch: u8,
) -> Option<(World, Option<Promise>)> {
    let place = usize::from(writer);
    let operation = &world.writers[place];
    let record = world.record(epoch);
    let write = &operation.write;
    if operation.phase != Phase::Active {
        return None;
    }
    let may = match config.without {
        Some(Rule::LearnersAreWrittenTo) => {
            let mut narrow = record.as_ref().clone();
            narrow.learners.clear();
            write.may_acknowledge(&narrow)
        }
        Some(Rule::AllOfTheWriteSet) => {
            let set: Vec<_> = record.write_set().collect();
            let done = write.done.iter().filter(|(at, _)| *at == record.epoch);
            done.count() > set.len() / 2
        }
        _ => write.may_acknowledge(record),
    };
    may.then(|| {
        let mut next = world.clone();
        next.writers[place].phase = Phase::Acknowledged;
        next.writers[place].write.done.clear();
        next.writers[place].write.newer = Version::NONE;
        let breach = on_acknowledgement(config, &next, place, record);
        let counts = !matches!(config.without, Some(Rule::LearnersAreWrittenTo));
        (next, breach.filter(|_| counts))
    })
}

fn restamp(world: &World, writer: u8) -> Option<World> {
    let place = usize::from(writer);
    let operation = &world.writers[place];
    let is_active = matches!(operation.phase, Phase::Active | Phase::Told);
    if !is_active || operation.restamps == RESTAMPS {
        return None;
    }
    let above = operation.write.outdone_by()?;
    let mut next = world.clone();
    let operation = &mut next.writers[place];
    let versions = above.0 + 1..;
    let mut own = versions.filter(|version| version % OPERATIONS == u64::from(writer));
    operation.write.restamp(Version(own.next()?));
    operation.restamps += 1;
    Some(next)
}

fn tell_failure(config: &Config, world: &World, writer: u8) -> Option<World> {
    let place = usize::from(writer);
    let may_fail = config.operations[place].may_fail;
    (may_fail && world.writers[place].phase == Phase::Active).then(|| {
        let mut next = world.clone();
        next.writers[place].phase = Phase::Told;
        next.writers[place].write.tell_failure();
        next
    })
}

/// The router forgets the operation. No message of it is under way.
fn give_up(world: &World, writer: u8) -> Option<World> {
    let place = usize::from(writer);
    (world.writers[place].phase == Phase::Told).then(|| {
        let mut next = world.clone();
        let operation = &mut next.writers[place];
        operation.phase = Phase::GivenUp;
        operation.write.done.clear();
        operation.write.newer = Version::NONE;
        next
    })
}

fn install(config: &Config, world: &World, store: u8, epoch: u8) -> Option<World> {
    let record = world.record(epoch);
    let held = &world.stores[usize::from(store)];
    let synced = |store| match config.without {
        Some(Rule::AdditionIsReported) => record.epoch,
        Some(Rule::ForceIsFenced) if record.is_forced() => record.epoch,
        _ => world.store(store).replica.reports(),
    };
    let starts_late = held.is_stopped && record.epoch != world.current().epoch;
    if held.is_lost || starts_late || held.replica.check_install(record, synced).is_err() {
        return None;
    }
    let mut next = world.clone();
    let logged = Logged::Install(Entry::Install(Arc::clone(record)));
    if !held.is_stopped {
        return Some(append(config, next, store, logged));
    }
    // A start has on disk and applies what it finds, the record too, before it serves: it cannot be taken back.
    next.stores[usize::from(store)].is_stopped = false;
    next = append(config, next, store, logged);
    next.stores[usize::from(store)].sync();
    while !next.stores[usize::from(store)].log.is_empty() {
        next = applied(config, next, store);
    }
    Some(next)
}

fn crash(world: &World, store: u8, kept: u8) -> Option<World> {
    let held = &world.stores[usize::from(store)];
    let unsynced = held.log.len() - held.synced;
    let kept = usize::from(kept);
    let loses = kept < unsynced || held.copy.is_some() && kept == unsynced;
    if world.crashes == 0 || held.is_lost || !loses {
        return None;
    }
    let mut next = world.clone();
    next.crashes -= 1;
    next.stores[usize::from(store)].restart(kept);
    Some(next)
}

/// A disk is gone with all that it held. The node comes back with another, under another name.
fn lose_disk(config: &Config, world: &World, store: u8) -> Option<World> {
    if world.wipes == 0 || world.stores[usize::from(store)].is_lost {
        return None;
    }
    let mut next = world.clone();
    next.wipes -= 1;
    let held = &mut next.stores[usize::from(store)];
    held.is_lost = config.without != Some(Rule::LostDisksGetNewNames);
    let synced = held.replica.synced.clone();
    held.replica.appended = synced.clone();
    held.replica.applied = synced;
    *held = Store {
        data: State::NEVER,
        aside: State::NEVER,
        log: Vec::new(),
        synced: 0,
        copy: None,
        table: None,
        compared: None,
        ..held.clone()
    };
    Some(next)
}

fn pin(config: &Config, world: &World, learner: u8, source: u8) -> Option<World> {
    let copying = &world.stores[usize::from(learner)];
    let held = &world.stores[usize::from(source)];
    if !copying.runs() || !held.runs() || copying.copy.is_some() {
        return None;
    }
    let added = copying.replica.is_copying()?;
    let pin = match config.without {
        Some(Rule::PinAfterInstall) => held.replica.pin(Epoch::NONE).map(|pin| Pin {
            at: pin.at.max(added),
            ..pin
        }),
        Some(Rule::PinAfterApply) => {
            let mut early = held.replica.clone();
            early.applied = early.appended.clone();
            early.pin(added)
        }
        _ => held.replica.pin(added),
    }?;
    let mut next = world.clone();
    next.stores[usize::from(learner)].copy = Some((pin, held.data));
    Some(next)
}

fn end_copy(config: &Config, world: &World, learner: u8, comparison: Comparison) -> Option<World> {
    let place = usize::from(learner);
    let (pin, source) = world.stores[place].copy?;
    let copied = if config.in_parts {
        let settled = world.record(number(pin.at)).settled;
        let both = [source, world.stores[place].aside];
        copied(config, both, comparison, settled)
    } else {
        source
    };
    let replica = &world.stores[place].replica;
    let entry = end_of_copy(config, replica, pin);
    let mut next = world.clone();
    next.stores[place].copy = None;
    match entry {
        Some(entry) => Some(append(config, next, learner, Logged::Copied(entry, copied))),
        None => Some(next),
    }
}

/// What a copy has of the element, whose range holds others too: what was received, and what stays of what was set aside.
fn copied(
    config: &Config,
    [source, aside]: [State; 2],
    comparison: Comparison,
    settled: Version,
) -> State {
    let until = Version(comparison.until);
    let is_sent = is_later(source, until);
    let is_compared =
        |state: State| !is_sent && !is_later(state, until) && !is_forgotten(state, settled);
    let compared = |state| Some(state).filter(|state| is_compared(*state));
    let differs = compared(aside) != compared(source) || comparison.others_differ;
    let received = (is_sent || differs).then_some(source);
    let stays = !differs || may_stay(aside, received) || aside == State::NEVER;
    let is_kept = !comparison.others_go
        && (!is_later(aside, until) || config.without == Some(Rule::LaterIsNotKept))
        && (stays || config.without == Some(Rule::DifferingIsReplaced));
    let rest = if is_kept || !differs && !is_later(aside, until) {
        aside
    } else {
        State::NEVER
    };
    rest.max(received.unwrap_or(State::NEVER))
}

/// Takes note of what a store in sync has applied, at the epoch that it has applied.
fn scrub(world: &World, store: u8) -> Option<World> {
    let held = &world.stores[usize::from(store)];
    let (record, _) = held.replica.standing()?;
    let epoch = record.epoch;
    let is_read = held.runs() && held.replica.answers(epoch) && held.data != State::NEVER;
    if world.scrubs == 0 || !is_read {
        return None;
    }
    let mut next = world.clone();
    next.scrubs -= 1;
    next.repair = Some((number(epoch), held.data));
    Some(next)
}

/// A repair that is late changes nothing where it was taken before.
fn repair(config: &Config, world: &World, store: u8) -> Option<World> {
    let (number, state) = world.repair?;
    let held = &world.stores[usize::from(store)];
    let epoch = match config.without {
        Some(Rule::RepairsOfTheirEpoch) => held.replica.confirms(),
        _ => world.record(number).epoch,
    };
    let is_there = held.log.is_empty() && held.data >= state;
    let is_barred = state.version <= floors::bar(config, held, Sent::ToRepair);
    if !held.runs() || is_there || is_barred || !held.replica.takes(epoch) {
        return None;
    }
    let logged = Logged::Repair { epoch, state };
    Some(append(config, world.clone(), store, logged))
}

/// Makes the tables of a store that is to have some.
fn warm(config: &Config, world: &World, store: u8) -> Option<World> {
    let place = usize::from(store);
    let held = &world.stores[place];
    if !held.runs() || held.table.is_some() || !held.may_be_built(config) {
        return None;
    }
    let mut next = world.clone();
    next.stores[place].table = Some(held.data);
    Some(next)
}

fn end_of_copy(config: &Config, replica: &Replica, pin: Pin) -> Option<Entry> {
    let added = replica.is_copying()?;
    let source = replica.appended.record.as_ref()?.in_sync(pin.source);
    let pin = match config.without {
        Some(Rule::SourceStaysInSync) => return Some(Entry::Copied { added }),
        Some(Rule::SourceStaysInSyncSince) => Pin {
            at: pin.at.max(source?.since),
            ..pin
        },
        Some(Rule::PinOfThisAddition) => Pin {
            at: pin.at.max(added),
            ..pin
        },
        _ => pin,
    };
    replica.end_of_copy(pin)
}

/// A reader begins. It asks all at once, and later only stores that could not confirm then: a store that can, and the
/// metadata, never prove more at a later time.
fn begin_read(config: &Config, world: &World, epoch: u8) -> Option<World> {
    let acknowledged = world.acknowledged();
    if world.reader.is_some() || acknowledged == 0 {
        return None;
    }
    let mut read = Read::new(Arc::clone(world.record(epoch)));
    let current = match config.without {
        Some(Rule::LinearizableMetadata) => read.epoch(),
        _ => world.current().epoch,
    };
    read.is_current(current);
    for (store, held) in world.stores.iter().enumerate() {
        if held.runs() {
            read.confirmed(id(store as u8), held.replica.confirms());
        }
    }
    let quorum = read_quorum(read.record.in_sync.len());
    let is_hopeless = !read.is_current && read.confirmed.len() < quorum;
    if is_hopeless && world.crashes == 0 && config.without.is_none() {
        return None;
    }
    let mut next = world.clone();
    next.reader = Some(Reader {
        read,
        acknowledged,
        answer: State::NEVER,
    });
    Some(next)
}

fn answer(config: &Config, world: &World, store: u8) -> Option<(World, Option<Promise>)> {
    let held = &world.stores[usize::from(store)];
    let asked = world.reader.as_ref()?.read.epoch();
    if !held.runs() || !held.replica.answers(asked) {
        return None;
    }
    let mut reader = world.reader.clone()?;
    let counts = reader.read.answered(id(store));
    // A cold store refuses.
    let answer = if config.hot > 0 {
        held.table?
    } else {
        held.data
    };
    reader.answer = floors::shown(world, answer);
    counts.then(|| go_on(config, world, reader))
}

fn confirm(config: &Config, world: &World, store: u8) -> Option<(World, Option<Promise>)> {
    let held = &world.stores[usize::from(store)];
    let read = &world.reader.as_ref()?.read;
    let installed = held.replica.confirms();
    let is_known = read.is_current || read.confirmed.contains(&id(store));
    if is_known || !held.runs() || installed > read.epoch() {
        return None;
    }
    let mut reader = world.reader.clone()?;
    reader.read.confirmed(id(store), installed);
    let counts = reader.read.confirmed.contains(&id(store));
    counts.then(|| go_on(config, world, reader))
}

/// The state with a reader that learned something. A reader that is done leaves no trace.
fn go_on(config: &Config, world: &World, reader: Reader) -> (World, Option<Promise>) {
    let mut next = world.clone();
    let read = &reader.read;
    let is_done = match config.without {
        Some(Rule::Proof) => read.answered.is_some(),
        Some(Rule::ReadQuorum) => read.answered.is_some_and(|by| read.confirmed.contains(&by)),
        _ => read.is_proven(),
    };
    if !is_done {
        next.reader = Some(reader);
        return (next, None);
    }
    let breach = on_answer(config, world, &reader);
    next.reader = None;
    (next, breach)
}
