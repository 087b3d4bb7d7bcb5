//! Power loss, at any moment of the life of a store: nothing that was acknowledged is lost, and nothing is invented.
//!
//! The directory forgets what was not synced, bytes and names alike, each in any part. Four thousand histories of three
//! lives each, and a loss at each sync of twenty more; fifty times as many with `SIMSHARD_LONG`.

mod machine;
mod model;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::panicking;
use std::time::Duration;

use fastrand::Rng;
use simshard_simhash::{Documents, Fingerprint};
use simshard_topology::replication::{Epoch, Learner, ShardRecord, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use super::{Fixture, random_change};
use crate::directory::Directory;
use crate::element::{Change, ChangeKind, Operation, ShardCopy};
use crate::inspect::inspect_in;
use crate::store::{Installation, Options, SEGMENTS, Store};
use crate::tests::{ForgetfulDirectory, Trouble, is_long};
use machine::{Machine, Step};
use model::{Model, layouts};

/// Stands for the store in records, before its name is known.
const OWN: StoreId = StoreId([1; 16]);

/// The ids of documents that change.
const IDS: [&str; 3] = ["", "a", "a longer id"];

/// Few, so that some flushes make segments enough to merge.
fn owned() -> ShardSet {
    (0..3).map(ShardId).collect()
}

/// How many times as much is done as by default.
fn effort() -> u64 {
    if is_long() { 50 } else { 1 }
}

/// Names the history that a test fails in.
struct Named(u64, String);

impl Drop for Named {
    fn drop(&mut self) {
        if panicking() {
            println!("it failed with seed {}, {}", self.0, self.1);
        }
    }
}

/// What happened in all histories, to be sure that they meet every kind of step.
#[derive(Debug, Default)]
struct Counts {
    /// Losses of power in the midst of something.
    losses: usize,
    /// Of those, losses while a store was being opened or made.
    in_start: usize,
    /// Of those, losses after which something was there that was not acknowledged, but in flight.
    kept_unacknowledged: usize,
    /// Processes that were killed, and whose machine went on.
    kills: usize,
    flushes: usize,
    merges: usize,
    drops: usize,
    copies: usize,
    /// Of those, copies that keep segments which were set aside.
    kept: usize,
}

/// Makes the steps of a history: the same ones for the same seed.
struct Script {
    random: Rng,
    version: u64,
    /// Uids are used once.
    next_corpus: u8,
    corpora: Vec<CorpusUid>,
    /// Of the last record of a shard.
    epoch: u64,
    /// When the store was last added as a learner.
    added: Epoch,
}

impl Script {
    fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            version: 100,
            next_corpus: 0,
            corpora: Vec::new(),
            epoch: 0,
            added: Epoch::FIRST,
        }
    }

    fn step(&mut self) -> Step {
        match self.random.u8(..20) {
            0..4 => Step::Flush,
            4..7 => Step::Maintain,
            7 => Step::Mark,
            _ => {
                let count = self.random.usize(1..4);
                Step::Commit((0..count).map(|_| self.operation()).collect())
            }
        }
    }

    fn operation(&mut self) -> Operation {
        let known = self.corpora.len();
        match self.random.usize(..30) {
            0 if known > 0 => {
                let uid = self.corpora[self.random.usize(..known)];
                Operation::DropCorpus { uid }
            }
            chosen if known == 0 || (chosen < 3 && known < 5) => {
                let uid = CorpusUid([self.next_corpus; 16]);
                self.next_corpus += 1;
                self.corpora.push(uid);
                let layout = layouts()[usize::from(self.random.bool())];
                Operation::CreateCorpus { uid, layout }
            }
            3..6 => Operation::Install(self.installation()),
            6..12 => Operation::Copied(ShardCopy {
                shard: ShardId(self.random.u8(..3)),
                added: self.added,
                segments: Vec::new(),
            }),
            _ => Operation::Change(self.change(known)),
        }
    }

    /// Records of some shards, each after all before it: they name the store in sync, as a learner, or not at all.
    fn installation(&mut self) -> Installation {
        // A copy has states of the version that the addition has as a number.
        self.version += 1;
        self.epoch = self.version;
        let stores = [StoreId([2; 16]), OWN];
        let kind = self.random.u8(..5);
        let in_sync = if kind == 0 { 2 } else { 1 };
        let mut record = ShardRecord::first(0, &stores[..in_sync], self.random.u64(..));
        record.epoch.number = self.epoch;
        if kind == 1 {
            self.added = record.epoch;
        }
        if (1..4).contains(&kind) {
            let added = self.added;
            record.learners.push(Learner { store: OWN, added });
        }
        let record = Arc::new(record);
        let first = self.random.u8(..3);
        let shards = (first..3).map(ShardId);
        shards.map(|shard| (shard, Arc::clone(&record))).collect()
    }

    /// A change of few documents, so that they meet, of a corpus that may be gone. Versions do not always ascend.
    fn change(&mut self, corpora: usize) -> Change {
        let random = &mut self.random;
        self.version += 1;
        let behind = if random.u8(..4) == 0 { 50 } else { 2 };
        let count = random.usize(1..4);
        let id = |random: &mut Rng| IDS[random.usize(..IDS.len())].to_owned();
        Change {
            kind: match random.u8(..3) {
                0 => ChangeKind::Remove,
                _ => ChangeKind::Insert,
            },
            corpus: self.corpora[random.usize(..corpora)],
            version: Version(self.version - random.u64(..behind)),
            shards: match random.u8(..4) {
                0 => ShardSet::from_iter([ShardId(random.u8(..3))]),
                _ => owned(),
            },
            documents: Documents {
                fingerprints: (0..count).map(|_| fingerprint(random.u64(..8))).collect(),
                ids: (0..count).map(|_| id(random)).collect(),
            },
        }
    }
}

/// One of a few fingerprints whose home is owned.
fn fingerprint(number: u64) -> Fingerprint {
    Fingerprint((number % 2) << 56 | number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8)
}

/// A store, and what must be in it.
struct History {
    script: Script,
    /// All that was acknowledged.
    model: Model,
    /// What was being committed when the power went.
    in_flight: Vec<Operation>,
    counts: Counts,
}

impl History {
    fn new(seed: u64) -> Self {
        Self {
            script: Script::new(seed),
            model: Model::default(),
            in_flight: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// ST1, ST2: a store that was opened holds what was acknowledged, then a first part of what was in flight, and
    /// nothing else.
    fn check(&mut self, store: &Store) {
        let found = Model::of(store);
        let mut operations = self.in_flight.drain(..);
        let mut is_kept = false;
        while self.model != found {
            let Some(operation) = operations.next() else {
                panic!("acknowledged: {:#?}, found: {found:#?}", self.model);
            };
            self.model.take(&operation);
            is_kept = true;
        }
        drop(operations);
        self.counts.kept_unacknowledged += usize::from(is_kept);
    }

    /// Opens the store, unless the power goes meanwhile. What it shows then is on disk.
    fn start(&mut self, directory: &ForgetfulDirectory, random: &mut Rng) -> Option<Machine> {
        match Machine::start(directory) {
            Ok(machine) => {
                self.check(&machine.store);
                let image = Machine::start(&directory.crash_image(random));
                let image = image.expect("a store that was opened can be opened");
                assert_eq!(Model::of(&image.store), self.model, "what was shown");
                Some(machine)
            }
            Err(error) => {
                assert!(directory.has_crashed(), "{error}");
                self.counts.losses += 1;
                self.counts.in_start += 1;
                None
            }
        }
    }

    /// Does steps until the power goes; ends well sometimes if it does not.
    fn live(&mut self, directory: &ForgetfulDirectory, machine: &mut Machine, steps: usize) {
        for _ in 0..steps {
            let mut step = self.script.step();
            let segments = machine.store.all_segments().len();
            if let Err(error) = machine.run(&mut step) {
                assert!(directory.has_crashed(), "{step:?}: {error:?}");
                self.counts.losses += 1;
                if let Step::Commit(operations) = step {
                    self.in_flight = operations;
                }
                return;
            }
            let after = machine.store.all_segments().len();
            match step {
                Step::Commit(operations) => operations.iter().for_each(|one| self.done(one)),
                Step::Flush => self.counts.flushes += usize::from(after > segments),
                Step::Maintain => self.counts.merges += usize::from(after < segments),
                Step::Mark => {}
            }
        }
        let ends_well = self.script.random.bool();
        if let Some(Err(error)) = ends_well.then(|| machine.finish()) {
            assert!(directory.has_crashed(), "{error:?}");
        }
    }

    fn done(&mut self, operation: &Operation) {
        self.model.take(operation);
        if let Operation::DropCorpus { .. } = operation {
            self.counts.drops += 1;
        }
        if let Operation::Copied(copy) = operation {
            self.counts.copies += 1;
            self.counts.kept += usize::from(copy.is_in_parts());
        }
    }
}

/// Three lives, each of which a loss of power ends, or a kill, whenever that may be. Then the store is opened once more,
/// and verified.
fn three_lives(seed: u64) -> Counts {
    let _named = Named(seed, "three lives".to_owned());
    let mut random = Rng::with_seed(!seed);
    let mut history = History::new(seed);
    let mut directory = ForgetfulDirectory::default();
    for _ in 0..3 {
        if random.u8(..4) == 0 {
            directory.forbid_allocation();
        }
        let calls = [20, 100, 300][random.usize(..3)];
        directory.trouble_at(random.usize(..calls), Trouble::Crash);
        if let Some(mut machine) = history.start(&directory, &mut random) {
            history.live(&directory, &mut machine, 25);
        }
        directory = match random.u8(..4) {
            0 => {
                history.counts.kills += 1;
                directory.after_kill()
            }
            _ => directory.crash_image(&mut random),
        };
    }
    let machine = history.start(&directory, &mut random).unwrap();
    drop(machine);
    let inspection = inspect_in(&directory).unwrap();
    inspection.verify(|_| ()).unwrap();
    let files = directory.folder(SEGMENTS).unwrap().names().unwrap();
    assert_eq!(files.len(), inspection.segments.len(), "no leftovers stay");
    history.counts
}

/// ST1, ST2, ST3.
#[test]
fn nothing_is_lost_or_invented_by_power_loss_at_any_moment() {
    let first = fastrand::u64(..u64::MAX / 2);
    println!("seeds from {first}");
    let mut all = Counts::default();
    for seed in first..first + 4_000 * effort() {
        let counts = three_lives(seed);
        all.losses += counts.losses;
        all.in_start += counts.in_start;
        all.kept_unacknowledged += counts.kept_unacknowledged;
        all.kills += counts.kills;
        all.flushes += counts.flushes;
        all.merges += counts.merges;
        all.drops += counts.drops;
        all.copies += counts.copies;
        all.kept += counts.kept;
    }
    println!("{all:?}");
    let least = [
        (all.losses, 6_000),
        (all.in_start, 1_000),
        (all.kept_unacknowledged, 200),
        (all.kills, 2_000),
        (all.flushes, 4_000),
        (all.merges, 500),
        (all.drops, 1_000),
        (all.copies, 200),
        (all.kept, 30),
    ];
    assert!(least.iter().all(|(count, least)| count >= least), "{all:?}");
}

/// Does the steps of a seed, loses power at sync number `sync`, and checks some of the disks that this may leave.
/// Says whether there was such a sync.
fn lose_power_at(sync: usize, seed: u64) -> bool {
    let _named = Named(seed, format!("power loss at sync {sync}"));
    let mut random = Rng::with_seed(!seed);
    let directory = ForgetfulDirectory::default();
    directory.crash_at_sync(sync);
    let mut history = History::new(seed);
    if let Ok(mut machine) = Machine::start(&directory) {
        history.live(&directory, &mut machine, 40);
    }
    for _ in 0..3 {
        let mut image = History {
            model: history.model.clone(),
            in_flight: history.in_flight.clone(),
            ..History::new(seed)
        };
        let directory = directory.crash_image(&mut random);
        image.start(&directory, &mut random).unwrap();
    }
    directory.has_crashed()
}

/// ST1, ST2, ST3.
#[test]
fn nothing_is_lost_or_invented_by_power_loss_at_every_sync() {
    let first = fastrand::u64(..u64::MAX / 2);
    println!("seeds from {first}");
    let mut losses = 0;
    for seed in first..first + 20 * effort() {
        let mut syncs = 0..;
        let count = syncs.find(|sync| !lose_power_at(*sync, seed)).unwrap();
        assert!(count > 30, "only {count} syncs");
        losses += count;
    }
    println!("{losses} losses of power");
}

/// ST1: a process that is killed at any call while it makes a store, and then a loss of power at any sync of the next.
#[test]
fn a_store_is_made_however_its_making_was_cut_off_twice() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for call in 0.. {
        let killed = ForgetfulDirectory::default();
        killed.trouble_at(call, Trouble::Crash);
        if Machine::start(&killed).is_ok() {
            assert!(call > 15, "only {call} calls make a store");
            break;
        }
        for sync in 0.. {
            let directory = killed.after_kill();
            directory.crash_at_sync(sync);
            if Machine::start(&directory).is_ok() {
                break;
            }
            for _ in 0..40 {
                let image = Machine::start(&directory.crash_image(&mut random)).unwrap();
                assert_eq!(Model::of(&image.store), Model::default());
            }
        }
    }
}

/// A store at work, with its threads: what it acknowledges before the power goes is there.
fn with_threads(seed: u64) {
    let _named = Named(seed, "with threads".to_owned());
    let mut random = Rng::with_seed(seed);
    let directory = ForgetfulDirectory::default();
    let mut options = Options {
        memtable_bytes: 3_000,
        ..Options::default()
    };
    options.log.file_bytes = 4_096;
    options.log.allocate_bytes = 1_024;
    let open = |directory: &ForgetfulDirectory| {
        Store::open_in(Arc::new(directory.clone()), super::owned().into(), options).unwrap()
    };
    let fixture = Fixture::start(open(&directory));
    fixture.create();
    let crash = directory.calls() + random.usize(..500);
    directory.trouble_at(crash, Trouble::Crash);
    let mut model = super::Model::default();
    let mut in_flight = None;
    for version in 10..80 {
        let change = random_change(&mut random, version);
        if !is_done(&fixture, &directory, Operation::Change(change.clone())) {
            in_flight = Some(change);
            break;
        }
        model.take(&change);
    }
    drop(fixture);
    for _ in 0..3 {
        let fixture = Fixture::start(open(&directory.crash_image(&mut random)));
        let contents = fixture.contents();
        if contents != model.contents() {
            let mut model = super::Model(model.0.clone());
            model.take(in_flight.as_ref().expect("a change that was made"));
            assert_eq!(contents, model.contents());
        }
    }
}

/// Whether an operation is acknowledged before the power goes.
fn is_done(fixture: &Fixture, directory: &ForgetfulDirectory, operation: Operation) -> bool {
    let (ticket, outcome) = channel();
    if fixture.writer.append(operation, ticket).is_err() {
        return false;
    }
    loop {
        match outcome.recv_timeout(Duration::from_millis(10)) {
            Ok(outcome) => {
                outcome.unwrap();
                return true;
            }
            Err(RecvTimeoutError::Timeout) if !directory.has_crashed() => {}
            // Without power nothing is said any more.
            Err(_) => {
                assert!(directory.has_crashed(), "an answer is missing");
                return false;
            }
        }
    }
}

/// ST1, ST2: while flushes and merges go on beside the changes.
#[test]
fn what_a_store_at_work_acknowledged_survives_power_loss() {
    let first = fastrand::u64(..u64::MAX / 2);
    println!("seeds from {first}");
    (first..first + 60 * effort()).for_each(with_threads);
}
