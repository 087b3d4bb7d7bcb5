//! Records of shards that are installed: at the start, from the log, and from the manifest.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, InSync, ShardRecord, ShardRecords, Step, StoreId};

use super::{Fixture, insert, owned, small};
use crate::directory::{Directory, DiskDirectory};
use crate::element::Operation;
use crate::manifest::Manifest;
use crate::store::{Holding, OpenError, Replicas, Store, entries_of};
use crate::writer::InstallFailure;

const SHARD: ShardId = ShardId(3);

fn store_in(directory: &Path) -> StoreId {
    Store::claim(directory).unwrap().store
}

/// The records of all shards that the store is to hold: the first ones, then those after.
fn records(store: StoreId, generation: u32, number: u64) -> ShardRecords {
    let record = |shard: ShardId| {
        let mut record = ShardRecord::first(generation, &[store], shard.0.into());
        record.epoch.number = number;
        (shard, Arc::new(record))
    };
    owned().iter().map(record).collect()
}

fn try_open(directory: &Path, records: ShardRecords) -> Result<Store, OpenError> {
    let holding = Holding {
        shards: owned(),
        records: Some(records),
    };
    Store::open(directory, holding, small())
}

fn open(directory: &Path, records: ShardRecords) -> Fixture {
    Fixture::start(try_open(directory, records).unwrap())
}

fn install(fixture: &Fixture, records: &ShardRecords) -> bool {
    let (ticket, outcome) = channel();
    let is_news = fixture
        .writer
        .install(records, |_, _| Epoch::NONE, ticket)
        .unwrap();
    if is_news {
        outcome.recv().unwrap().unwrap();
        // Its own place in the log is behind it, so the installation is applied.
        let version = fixture.store.epoch(SHARD).number + 100;
        insert(fixture, version, &[(version, "")]);
    }
    is_news
}

fn epoch(generation: u32, number: u64) -> Epoch {
    Epoch { generation, number }
}

/// IR1: from the manifest that the start wrote, from the log, and from the manifest of a flush.
#[test]
fn what_was_installed_is_there_again_and_nothing_earlier_takes_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let [first, second, third] = [1, 2, 3].map(|number| records(store, 0, number));
    let fixture = open(directory, first.clone());
    fixture.create();
    assert_eq!(fixture.store.epoch(SHARD), Epoch::FIRST);
    assert!(!install(&fixture, &first));
    drop(fixture);

    let fixture = open(directory, second.clone());
    assert_eq!(fixture.store.epoch(SHARD), epoch(0, 2));
    assert!(install(&fixture, &third));
    assert!(!install(&fixture, &third));
    assert_eq!(fixture.store.epoch(SHARD), epoch(0, 3));
    drop(fixture);
    for is_flushed in [false, true] {
        for earlier in [&first, &second] {
            let refused = try_open(directory, earlier.clone()).unwrap_err();
            assert!(
                matches!(refused, OpenError::OtherRecords { .. }),
                "{refused}"
            );
        }
        let fixture = open(directory, third.clone());
        assert_eq!(fixture.store.epoch(SHARD), epoch(0, 3), "{is_flushed}");
        fixture.flush();
    }
}

/// By the flush alone: the log before it may go.
#[test]
fn a_flush_writes_what_was_installed_to_the_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let fixture = open(directory, records(store, 0, 1));
    fixture.create();
    assert!(install(&fixture, &records(store, 0, 2)));
    let in_manifest = || {
        let manifest = DiskDirectory::open(directory).and_then(|opened| {
            Manifest::read(&opened).map_err(|error| std::io::Error::other(error.to_string()))
        });
        manifest.unwrap().unwrap().replicas[&SHARD].record.epoch
    };
    assert_eq!(in_manifest(), Epoch::FIRST);
    fixture.flush();
    assert_eq!(in_manifest(), epoch(0, 2));
}

/// A claim reads the log too: a cluster that begins anew must not give a generation again.
#[test]
fn a_claim_tells_of_what_only_the_log_has() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let claim = Store::claim(directory).unwrap();
    assert_eq!((claim.next_generation, claim.corpora.len()), (0, 0));
    drop(claim);
    let fixture = open(directory, records(store, 0, 1));
    fixture.create();
    assert!(install(&fixture, &records(store, 3, 1)));
    drop(fixture);
    let claim = Store::claim(directory).unwrap();
    assert_eq!((claim.next_generation, claim.corpora.len()), (4, 1));
}

/// What a full queue, say, has refused is installed the next time.
#[test]
fn what_is_withdrawn_is_news_again() {
    let store = StoreId([1; 16]);
    let mut replicas = Replicas::new(store);
    let first = records(store, 0, 1);
    let news = |replicas: &Replicas| replicas.news(&first, |_, _| Epoch::NONE).unwrap();
    let all = news(&replicas);
    let entries = entries_of(&Operation::Install(all.clone())).unwrap();
    replicas.append(&entries);
    assert!(news(&replicas).is_empty());
    replicas.withdraw();
    assert_eq!(news(&replicas), all);
}

/// A learner begins with nothing: operations of the log before that are no part of its shard.
#[test]
fn operations_before_the_replay_start_of_a_shard_are_not_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let first = records(store, 0, 1);
    let fixture = open(directory, first.clone());
    fixture.create();
    insert(&fixture, 1, &[(1, "before")]);
    let before = fixture.contents();
    drop(fixture);
    let folder: Arc<dyn Directory> = Arc::new(DiskDirectory::open(directory).unwrap());
    let mut manifest = Manifest::read(&*folder).unwrap().unwrap();
    for replica in manifest.replicas.values_mut() {
        replica.replay_start = 1_000;
    }
    manifest.generation += 1;
    manifest.write(&folder).unwrap();
    assert!(open(directory, first.clone()).contents().is_empty());
    for replica in manifest.replicas.values_mut() {
        replica.replay_start = 1;
    }
    manifest.generation += 1;
    manifest.write(&folder).unwrap();
    assert_eq!(open(directory, first).contents(), before);
}

#[test]
fn another_history_of_the_same_epoch_is_refused_and_another_generation_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let fixture = open(directory, records(store, 0, 1));
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    let contents = fixture.contents();

    let mut other = records(store, 0, 1);
    let record = Arc::make_mut(other.get_mut(&SHARD).unwrap());
    record.nonce ^= 1;
    let (ticket, _) = channel();
    let refused = fixture
        .writer
        .install(&other, |_, _| Epoch::NONE, ticket)
        .unwrap_err();
    assert!(
        matches!(refused, InstallFailure::Record { shard, .. } if shard == SHARD),
        "{refused}"
    );
    drop(fixture);
    let refused = try_open(directory, other).unwrap_err().to_string();
    assert!(refused.contains("shard 03"), "{refused}");
    let refused = Store::open(directory, owned(), small()).unwrap_err();
    assert!(matches!(refused, OpenError::NoRecords { .. }), "{refused}");

    assert_eq!(Store::claim(directory).unwrap().next_generation, 1);
    let fixture = open(directory, records(store, 1, 1));
    assert_eq!(fixture.contents(), contents);
    assert_eq!(fixture.store.epoch(SHARD), epoch(1, 1));
}

/// A store that is named in sync of a shard whose copy it never had would answer that the shard is empty. One that is late,
/// and in sync since the first record, has missed nothing.
#[test]
fn a_store_that_is_in_sync_without_a_copy_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let mut promoted = records(store, 0, 2);
    for record in promoted.values_mut() {
        Arc::make_mut(record).in_sync[0].since = epoch(0, 2);
    }
    let refused = try_open(directory, promoted).unwrap_err();
    assert!(refused.to_string().contains("no copy"), "{refused}");
    let late = open(directory, records(store, 0, 2));
    assert_eq!(late.store.epoch(SHARD), epoch(0, 2));
}

/// FO3: a store that is left out has the forced record once it is open; the one that goes on alone waits for the others.
#[test]
fn a_forced_record_is_installed_as_a_store_is_opened_that_it_leaves_out() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let other = StoreId([9; 16]);
    drop(open(directory, records(store, 0, 1)));
    let mut both = records(store, 0, 1);
    for record in both.values_mut() {
        let mut entry = record.in_sync[0];
        entry.store = other;
        Arc::make_mut(record).in_sync.push(entry);
    }
    let force = |to: StoreId| -> ShardRecords {
        let forced = |record: &ShardRecord| record.forced(to, 7, |_| true).unwrap();
        let records = both.iter();
        records
            .map(|(shard, record)| (*shard, Arc::new(forced(record))))
            .collect()
    };
    let waits = open(directory, force(store));
    assert_eq!(waits.store.epoch(SHARD), epoch(0, 1));
    drop(waits);
    let left = open(directory, force(other));
    assert_eq!(left.store.epoch(SHARD), epoch(1, 2));
    assert!(left.store.answered().is_empty());
}

/// Records of shards that others hold are not the store's.
#[test]
fn a_record_that_does_not_name_the_store_is_installed_only_where_an_earlier_one_did() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let store = store_in(directory);
    let mut all = records(store, 0, 1);
    let of_another = Arc::new(ShardRecord::first(0, &[StoreId([9; 16])], 0));
    all.insert(ShardId(200), Arc::clone(&of_another));
    let fixture = open(directory, all.clone());
    assert_eq!(fixture.store.epoch(ShardId(200)), Epoch::NONE);
    let gone = Arc::make_mut(all.get_mut(&SHARD).unwrap());
    gone.epoch.number = 2;
    gone.in_sync = vec![InSync {
        store: StoreId([9; 16]),
        ..gone.in_sync[0]
    }];
    assert!(install(&fixture, &all));
    assert_eq!(fixture.store.epoch(SHARD), epoch(0, 2));
    assert_eq!(fixture.store.epoch(ShardId(0)), Epoch::FIRST);
}

/// It was to hold the shard, and died before it installed a record. Its report counts for the seal, and a forced record
/// waits for it.
#[test]
fn a_record_that_names_the_store_as_a_previous_one_is_installed() {
    let [own, other] = [1, 9].map(|number| StoreId([number; 16]));
    let mut record = ShardRecord::first(0, &[own, other], 7);
    record.min_in_sync = 1;
    let left = record.after(Step::Evict(own), 8, |_| Epoch::NONE, |_| false);
    let forced = record.forced(other, 9, |_| true);
    for next in [left.unwrap(), forced.unwrap()] {
        let epoch = next.epoch;
        let records = ShardRecords::from([(SHARD, Arc::new(next))]);
        let mut replicas = Replicas::new(own);
        let news = replicas.news(&records, |_, _| Epoch::NONE).unwrap();
        let entries = entries_of(&Operation::Install(news)).unwrap();
        replicas.restore(&entries, 1);
        assert_eq!(replicas.epoch(SHARD), epoch);
        assert!(replicas.in_sync().is_empty());
        // The one after does not name it, and is its business all the same.
        let record = records[&SHARD].after(Step::Adjust, 10, |_| epoch, |_| false);
        let records = ShardRecords::from([(SHARD, Arc::new(record.unwrap()))]);
        let news = replicas.news(&records, |_, _| Epoch::NONE).unwrap();
        assert_eq!(news.len(), 1);
    }
}

/// FO4: where the metadata is lost, no cluster begins with a shard that is yet to be filled.
#[test]
fn a_shard_that_begins_anew_is_not_told_of_as_one_in_sync() {
    let [own, lost] = [1, 9].map(|number| StoreId([number; 16]));
    let emptied = ShardRecord::first(0, &[lost], 7).rebuilt(own, 8, |store| store == own);
    let emptied = emptied.unwrap();
    let mut replicas = Replicas::new(own);
    for (record, is_told) in [(emptied.clone(), false), (emptied.wishing(1, 1), true)] {
        let mut record = record;
        record.epoch.number += u64::from(is_told);
        let records = ShardRecords::from([(SHARD, Arc::new(record))]);
        let news = replicas.news(&records, |_, _| Epoch::NONE).unwrap();
        replicas.restore(&entries_of(&Operation::Install(news)).unwrap(), 1);
        assert_eq!(!replicas.in_sync().is_empty(), is_told);
    }
}

/// A directory is of version 1 until it installs a record.
#[test]
fn only_what_has_installed_records_is_of_version_2() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let format = || std::fs::read(directory.join("manifest")).unwrap()[8];
    let fixture = Fixture::open(directory);
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    fixture.flush();
    let contents = fixture.contents();
    drop(fixture);
    let store = store_in(directory);
    assert_eq!(format(), 1);
    let fixture = open(directory, records(store, 0, 1));
    assert_eq!(format(), 2);
    assert_eq!(fixture.contents(), contents);
    let (ticket, outcome) = channel();
    fixture
        .writer
        .append(Operation::Install(Vec::new()), ticket)
        .unwrap();
    outcome.recv().unwrap().unwrap();
    insert(&fixture, 2, &[(2, "b")]);
    let more = fixture.contents();
    drop(fixture);
    assert_eq!(open(directory, records(store, 0, 1)).contents(), more);
}
