//! Flushes and merges that meet a full disk, each other, and the end of the store.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use parking_lot::Mutex;
use simshard_topology::ShardId;

use super::{CORPUS, Fixture, change, insert, small};
use crate::element::{ChangeKind, Operation};
use crate::error::MaintenanceError;
use crate::files::unfinished_name;
use crate::segment::SegmentId;
use crate::shortage::Shortage;
use crate::writer::Refusal;

/// A document that is in shard 0, and in no other that is owned.
const DOCUMENT: u64 = 0x0077_7777_7777_7777;

/// The files in the folder of segments, once no flush or merge changes them.
pub(super) fn segment_files(fixture: &Fixture) -> Vec<PathBuf> {
    let upkeep = fixture.upkeep(&|_| Ok(()));
    let entries = fs::read_dir(upkeep.disk.segments.path()).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Lets the next segment fail for want of space, if it is of shard 0.
pub(super) fn no_space_for_next_segment(fixture: &Fixture) {
    let disk = fixture.store.disk.as_ref().unwrap();
    let number = disk.manifest.lock().next_segment;
    let id = SegmentId {
        shard: ShardId(0),
        number,
    };
    let unfinished = disk.segments.path().join(unfinished_name(&id.to_string()));
    symlink("/dev/full", unfinished).unwrap();
}

fn trim(_: u64) -> Result<(), MaintenanceError> {
    Ok(())
}

/// A store with four segments in shard 0, which are to be merged.
fn with_four_segments(directory: &tempfile::TempDir) -> Fixture {
    let fixture = Fixture::open(directory.path());
    fixture.create();
    for version in 1..=4 {
        insert(&fixture, version, &[(DOCUMENT, &version.to_string())]);
        fixture.upkeep(&trim).flush().unwrap();
    }
    assert_eq!(segment_files(&fixture).len(), 4);
    fixture
}

fn full() -> MaintenanceError {
    MaintenanceError::Trim(io::Error::from(ErrorKind::StorageFull))
}

#[test]
fn a_shard_that_there_is_no_space_to_merge_rests_and_flushes_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = with_four_segments(&directory);
    let contents = fixture.contents();
    let mut upkeep = fixture.upkeep(&trim);
    no_space_for_next_segment(&fixture);
    assert_eq!(upkeep.compact_one().unwrap(), Some(4));
    assert_eq!(upkeep.compact_one().unwrap(), None, "it rests");
    assert_eq!(fixture.store.maintenance.shortage(), None);
    upkeep.flush().unwrap();
    upkeep.resting.clear();
    assert_eq!(upkeep.compact_one().unwrap(), Some(4));
    assert_eq!(upkeep.compact_one().unwrap(), None, "there is one segment");
    drop(upkeep);
    assert_eq!(segment_files(&fixture).len(), 1);
    assert_eq!(fixture.contents(), contents);
}

#[test]
fn the_disk_is_not_full_any_more_once_something_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = with_four_segments(&directory);
    fixture.store.maintenance.note_shortage(Shortage::Space);
    fixture.upkeep(&trim).compact_one().unwrap();
    assert_eq!(fixture.store.maintenance.shortage(), None);
}

#[test]
fn a_log_that_cannot_be_trimmed_for_want_of_space_is_trimmed_later() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.upkeep(&|_| Err(full())).flush_and_trim().unwrap();
    let failing = |_| Err(MaintenanceError::Trim(ErrorKind::PermissionDenied.into()));
    assert!(fixture.upkeep(&failing).flush_and_trim().is_err());
}

#[test]
fn a_merge_is_abandoned_when_the_store_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = with_four_segments(&directory);
    let files = segment_files(&fixture);
    fixture.store.stop_maintenance();
    let merged = fixture.upkeep(&trim).compact_one();
    assert!(
        matches!(merged, Err(MaintenanceError::Stopped)),
        "{merged:?}"
    );
    assert_eq!(segment_files(&fixture), files);
}

#[test]
fn a_merge_lets_a_flush_go_first() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = with_four_segments(&directory);
    let trimmed = Mutex::new(Vec::new());
    let trim = |below| {
        trimmed.lock().push(below);
        Ok(())
    };
    let mut upkeep = fixture.upkeep(&trim);
    insert(&fixture, 5, &[(DOCUMENT, "5")]);
    let contents = fixture.contents();
    let applied = fixture.store.maintenance.applied();
    fixture.store.maintenance.note_applied(applied, 1);
    assert_eq!(upkeep.compact_one().unwrap(), Some(4));
    assert_eq!(trimmed.lock().len(), 1);
    assert!(!fixture.store.maintenance.needs_flush());
    drop(upkeep);
    assert_eq!(
        segment_files(&fixture).len(),
        2,
        "the merged ones, and the last"
    );
    assert_eq!(fixture.contents(), contents);
    drop(fixture);
    assert_eq!(Fixture::open(directory.path()).contents(), contents);
}

/// ST4.
#[test]
fn removes_on_a_full_disk_are_refused_before_memory_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    // No memtable is flushed any more.
    fixture.writer.end_maintenance();
    fixture.store.maintenance.note_shortage(Shortage::Space);
    let mut refusal = None;
    for version in 1..10_000 {
        let documents: Vec<(u64, &str)> = (0..20).map(|n| (version * 20 + n, "an id")).collect();
        let remove = Operation::Change(change(ChangeKind::Remove, version, &documents));
        let (ticket, outcome) = channel();
        refusal = fixture.writer.append(remove, ticket).err();
        if refusal.is_some() {
            break;
        }
        outcome.recv().unwrap().unwrap();
    }
    assert_eq!(refusal, Some(Refusal::QueueFull));
    let bytes = fixture.store.memory.load(Ordering::Relaxed);
    let limit = small().memtable_bytes;
    // What two changes add comes on top.
    assert!((4 * limit..4 * limit + 20_000).contains(&bytes), "{bytes}");
    // The second one begins once the first is done with.
    for _ in 0..2 {
        fixture.run(Operation::DropCorpus { uid: CORPUS });
    }
    assert_eq!(fixture.store.memory.load(Ordering::Relaxed), 0);
}
