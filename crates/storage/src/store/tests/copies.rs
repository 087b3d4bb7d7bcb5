//! A learner that copies shards from a source while both change.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use fastrand::Rng;
use simshard_topology::ShardId;
use simshard_topology::replication::{
    Epoch, InSync, Learner, Role, ShardRecord, ShardRecords, StoreId,
};

use super::{Fixture, insert, owned, random_change, remove, small};
use crate::element::{Operation, ShardCopy};
use crate::store::{Holding, Pinned, Store};

const SHARD: ShardId = ShardId(3);

const ADDED: Epoch = Epoch {
    generation: 0,
    number: 2,
};

fn store_in(directory: &Path) -> StoreId {
    Store::claim(directory).unwrap().store
}

/// One record for all shards.
fn all(record: &ShardRecord) -> ShardRecords {
    let record = |shard| (shard, Arc::new(record.clone()));
    owned().iter().map(record).collect()
}

/// The record that adds a learner to a source.
fn added(source: StoreId, learner: StoreId) -> ShardRecord {
    let mut record = ShardRecord::first(0, &[source], 7);
    record.epoch = ADDED;
    record.learners.push(Learner {
        store: learner,
        added: ADDED,
    });
    record
}

fn open(directory: &Path, record: &ShardRecord) -> Fixture {
    let holding = Holding {
        shards: owned(),
        records: Some(all(record)),
    };
    Fixture::start(Store::open(directory, holding, small()).unwrap())
}

fn install(fixture: &Fixture, record: &ShardRecord) {
    let (ticket, outcome) = channel();
    let reported = |_, _| ADDED;
    let is_news = fixture.writer.install(&all(record), reported, ticket);
    assert!(is_news.unwrap());
    outcome.recv().unwrap().unwrap();
}

/// Copies what was pinned.
fn copy(pinned: &Pinned, learner: &Fixture, shard: ShardId) -> ShardCopy {
    let mut writer = learner.store.begin_copy(shard, ADDED).unwrap();
    let push = |corpus, element: crate::element::Element<'_>| {
        writer.push(corpus, element).unwrap();
        true
    };
    pinned.visit(push).unwrap();
    writer.finish().unwrap()
}

fn end(pinned: &Pinned, copy: ShardCopy, learner: &Fixture) -> bool {
    let (ticket, outcome) = channel();
    let is_ended = learner.writer.end_copy(pinned.pin, copy, ticket).unwrap();
    if is_ended {
        outcome.recv().unwrap().unwrap();
    }
    is_ended
}

/// Some changes of both, or of the source alone.
fn change(random: &mut Rng, fixtures: &[&Fixture], version: &mut u64) {
    for _ in 0..random.usize(1..40) {
        *version += 1;
        let change = random_change(random, *version);
        for fixture in fixtures {
            fixture.run(Operation::Change(change.clone()));
        }
        if random.u8(..20) == 0 {
            fixtures[random.usize(..fixtures.len())].flush();
        }
    }
}

/// CY1, CY2, CY3.
#[test]
fn a_learner_that_copied_while_changes_went_on_equals_its_source() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [source_path, learner_path] = directories.each_ref().map(tempfile::TempDir::path);
        let (source_id, learner_id) = (store_in(source_path), store_in(learner_path));
        let source = open(source_path, &ShardRecord::first(0, &[source_id], 1));
        let record = added(source_id, learner_id);
        // What the learner has of before does not count.
        let learner = open(learner_path, &ShardRecord::first(0, &[learner_id], 1));
        source.create();
        learner.create();
        let mut version = 1000;
        change(&mut random, &[&learner], &mut version);
        change(&mut random, &[&source], &mut version);
        assert_eq!(
            source
                .store
                .pin(SHARD, ADDED)
                .unwrap()
                .map(|pinned| pinned.pin),
            None
        );
        install(&source, &record);
        change(&mut random, &[&source], &mut version);
        install(&learner, &record);
        assert!(learner.contents().is_empty());
        change(&mut random, &[&source, &learner], &mut version);
        for shard in owned().iter() {
            let pinned = source.store.pin(shard, ADDED).unwrap().unwrap();
            change(&mut random, &[&source, &learner], &mut version);
            let copy = copy(&pinned, &learner, shard);
            change(&mut random, &[&source, &learner], &mut version);
            assert!(end(&pinned, copy, &learner));
            let role = learner.store.role(shard);
            assert_eq!(role, Some(Role::Copied { added: ADDED }));
        }
        assert_eq!(learner.contents(), source.contents());
        change(&mut random, &[&source, &learner], &mut version);
        assert_eq!(learner.contents(), source.contents());
        drop(learner);
        let learner = open(learner_path, &record);
        assert_eq!(learner.contents(), source.contents());
        change(&mut random, &[&source, &learner], &mut version);
        learner.flush();
        assert_eq!(learner.contents(), source.contents());
    }
}

/// CY1.
#[test]
fn a_view_stays_as_it_was_pinned() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let own = store_in(directory);
    let source = open(directory, &ShardRecord::first(0, &[own], 1));
    source.create();
    let document = |number: u64| (3 << 56 | number, "");
    insert(&source, 1, &[document(1), document(2)]);
    source.flush();
    remove(&source, 2, &[document(1)]);
    insert(&source, 3, &[document(3)]);
    let pinned = source.store.pin(SHARD, Epoch::FIRST).unwrap().unwrap();
    let seen = || {
        let mut seen = Vec::new();
        let visit = |_, element: crate::element::Element<'_>| {
            seen.push((
                element.fingerprint.0 & 0xff,
                element.version.0,
                element.live,
            ));
            true
        };
        pinned.visit(visit).unwrap();
        seen
    };
    let before = seen();
    assert_eq!(before, [(1, 2, false), (2, 1, true), (3, 3, true)]);
    insert(&source, 4, &[document(1), document(4)]);
    for number in 5..10 {
        source.flush();
        insert(&source, number, &[document(number)]);
    }
    assert_eq!(seen(), before);
}

/// CY3.
#[test]
fn a_copy_does_not_count_once_its_source_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let [source, other] = [1, 2].map(|byte| StoreId([byte; 16]));
    let own = store_in(directory.path());
    let learner = open(directory.path(), &ShardRecord::first(0, &[source], 1));
    learner.create();
    let record = added(source, own);
    install(&learner, &record);
    let source_path = tempfile::tempdir().unwrap();
    let mut pinned = {
        let id = store_in(source_path.path());
        let source = open(source_path.path(), &ShardRecord::first(0, &[id], 1));
        source.create();
        source.store.pin(SHARD, Epoch::FIRST).unwrap().unwrap()
    };
    pinned.pin.source = source;
    pinned.pin.at = ADDED;
    let mut next = record;
    next.epoch = next.epoch.next();
    next.in_sync = vec![InSync {
        store: other,
        since: ADDED,
        hot: true,
    }];
    install(&learner, &next);
    let copied = copy(&pinned, &learner, SHARD);
    assert!(!end(&pinned, copied.clone(), &learner));
    learner.store.abandon_copy(&copied).unwrap();
    pinned.pin.source = other;
    let copied = copy(&pinned, &learner, SHARD);
    assert!(end(&pinned, copied, &learner));
}
