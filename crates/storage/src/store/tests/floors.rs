//! Tombstones that are settled go, and nothing that was removed comes back.

use std::path::Path;
use std::sync::mpsc::channel;

use fastrand::Rng;
use simshard_topology::replication::{Sent, ShardRecord};
use simshard_topology::{ShardId, Version};

use super::copies::{alone, install, open, store_in};
use super::{Fixture, Model, change, fingerprint, owned, random_change};
use crate::element::{Change, ChangeKind};
use crate::gate::Barred;
use crate::tests::is_long;

/// Queues a change at the epoch of a record, and waits for it.
fn run(fixture: &Fixture, record: &ShardRecord, change: Change, sent: Sent) -> Barred {
    let epochs: Vec<_> = owned().iter().map(|shard| (shard, record.epoch)).collect();
    let (ticket, outcome) = channel();
    let (barred, not_needed) = fixture
        .writer
        .change(&epochs, change, sent, ticket)
        .unwrap();
    if not_needed.is_none() {
        outcome.recv().unwrap().unwrap();
    }
    barred
}

/// Elements of all segments.
fn elements(fixture: &Fixture) -> u64 {
    let segments = fixture.store.all_segments();
    segments.iter().map(|segment| segment.elements()).sum()
}

/// A store that is in sync alone, beside a map that forgets nothing.
struct Scene<'a> {
    directory: &'a Path,
    /// While it is open.
    fixture: Option<Fixture>,
    record: ShardRecord,
    model: Model,
}

impl<'a> Scene<'a> {
    fn new(directory: &'a Path) -> Self {
        let record = alone(store_in(directory), 1);
        let fixture = open(directory, &record);
        fixture.create();
        Self {
            directory,
            fixture: Some(fixture),
            record,
            model: Model::default(),
        }
    }

    fn fixture(&self) -> &Fixture {
        self.fixture.as_ref().unwrap()
    }

    /// FL2: the store takes what the map takes.
    fn change(&mut self, change: &Change) {
        let is_late = change.version <= self.record.floor;
        let barred = run(self.fixture(), &self.record, change.clone(), Sent::ByRouter);
        if is_late {
            assert_eq!(barred.late, owned());
            assert_eq!(barred.above, self.record.floor);
        } else {
            assert_eq!(barred, Barred::default());
            self.model.take(change);
        }
    }

    fn next(&mut self, step: impl FnOnce(&mut ShardRecord)) {
        self.record.epoch = self.record.epoch.next();
        self.record.nonce += 1;
        step(&mut self.record);
        install(self.fixture(), &self.record);
    }

    fn raise(&mut self, floor: u64) {
        self.next(|record| (record.floor, record.is_frozen) = (Version(floor), true));
    }

    fn settle(&mut self) {
        self.next(|record| (record.settled, record.is_frozen) = (record.floor, false));
    }

    fn reopen(&mut self) {
        self.fixture = None;
        self.fixture = Some(open(self.directory, &self.record));
    }

    fn check(&self, seed: u64) {
        assert!(
            self.fixture().contents() == self.model.contents(),
            "seed {seed}"
        );
    }
}

/// TD1, FL2: with late changes, merges, and restarts at any time.
#[test]
fn what_was_removed_stays_so_whenever_its_tombstone_goes() {
    let first = fastrand::u64(..u64::MAX / 2);
    println!("seeds from {first}");
    for seed in first..first + if is_long() { 300 } else { 15 } {
        let mut random = Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(directory.path());
        let mut version = 1000;
        for _ in 0..random.u32(50..250) {
            version += 10;
            match random.u8(..20) {
                0 => scene.raise((version - random.u64(..300)).max(scene.record.floor.0 + 1)),
                1 if scene.record.is_frozen => scene.settle(),
                2 => scene.fixture().flush(),
                3 => {
                    while scene
                        .fixture()
                        .upkeep(&|_| Ok(()))
                        .compact_one()
                        .unwrap()
                        .is_some()
                    {}
                }
                4 => scene.reopen(),
                _ => scene.change(&random_change(&mut random, version)),
            }
            if random.u8(..8) == 0 {
                scene.check(seed);
            }
        }
        scene.raise(version);
        scene.settle();
        scene.check(seed);
        // Nothing is replayed from before.
        scene.change(&change(
            ChangeKind::Insert,
            version + 1,
            &[(fingerprint(999), "")],
        ));
        scene.fixture().flush();
        scene.check(seed);
        let live = scene.model.contents().len() as u64;
        assert_eq!(elements(scene.fixture()), live, "seed {seed}");
        scene.reopen();
        scene.check(seed);
    }
}

/// TD1: the log has an insert that was late when its document was removed already. It is replayed as long as the tombstone
/// is there.
#[test]
fn a_tombstone_stays_while_the_log_has_what_it_outdoes() {
    let directory = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(directory.path());
    let document = [(fingerprint(1), "a")];
    scene.change(&change(ChangeKind::Insert, 4, &document));
    scene.change(&change(ChangeKind::Remove, 8, &document));
    scene.fixture().flush();
    let with_tombstones = elements(scene.fixture());
    assert!(with_tombstones > 0);
    scene.change(&change(ChangeKind::Insert, 5, &document));
    scene.raise(9);
    scene.settle();
    let compact = |scene: &Scene<'_>| {
        while scene
            .fixture()
            .upkeep(&|_| Ok(()))
            .compact_one()
            .unwrap()
            .is_some()
        {}
    };
    compact(&scene);
    scene.check(0);
    scene.reopen();
    scene.check(0);
    scene.raise(10);
    scene.settle();
    scene.fixture().flush();
    compact(&scene);
    assert_eq!(elements(scene.fixture()), 0);
    scene.check(0);
    scene.reopen();
    scene.check(0);
}

/// FL2.
#[test]
fn repairs_are_taken_above_what_is_settled_unless_the_record_is_frozen() {
    let directory = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(directory.path());
    let repair = |scene: &Scene<'_>, version| {
        let change = change(ChangeKind::Insert, version, &[(fingerprint(version), "a")]);
        run(scene.fixture(), &scene.record, change, Sent::ToRepair)
    };
    let barred = |version| Barred {
        late: owned(),
        above: Version(version),
        ..Barred::default()
    };
    scene.raise(8);
    assert_eq!(repair(&scene, 8), barred(8));
    assert_eq!(repair(&scene, 9), Barred::default());
    scene.next(|record| record.is_frozen = false);
    assert_eq!(repair(&scene, 8), Barred::default());
    scene.raise(12);
    scene.settle();
    assert_eq!(repair(&scene, 12), barred(12));
    assert_eq!(repair(&scene, 13), Barred::default());
    let shard = ShardId(0);
    assert_eq!(scene.fixture().store.epoch(shard), scene.record.epoch);
}
