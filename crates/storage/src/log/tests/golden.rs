//! The bytes of a log, kept in a file, so that a change of the format fails a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simshard_simhash::{Documents, Fingerprint, Layout};
use simshard_topology::replication::Epoch;
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use super::{CORPUS, LogOptions, Numbered, STORE, commit, open, recover, without_marks};
use crate::directory::DiskDirectory;
use crate::element::{Change, ChangeKind, Operation, ShardCopy};
use crate::log::{self, Appender, LogError, Record, file};
use crate::segment::{Origin, SegmentId, SegmentMeta};
use crate::shard_record::tests::{sample, with_floor};
use crate::tests::ForgetfulDirectory;
use crate::tests::compare_with_golden;

fn golden() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/log");
    folder.join(file::name(1))
}

fn change(kind: ChangeKind, ids: &[&str]) -> Record {
    Record::change(Change {
        kind,
        corpus: CORPUS,
        version: Version::at(1_700_000_000_000),
        shards: ShardSet::from_iter([ShardId(0), ShardId(9), ShardId(255)]),
        documents: Documents {
            fingerprints: vec![Fingerprint(0), Fingerprint(u64::MAX), Fingerprint(0xABCD)],
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        },
    })
}

/// Every kind of record. The log adds the mark.
fn batches() -> Vec<Vec<Record>> {
    let create = Record::Operation(Operation::CreateCorpus {
        uid: CORPUS,
        layout: Layout::new(6, 3).unwrap(),
    });
    let insert = change(ChangeKind::Insert, &["", "page/1", "straße"]);
    let remove = change(ChangeKind::Remove, &[]);
    let uid = CorpusUid([0xD0; 16]);
    vec![
        vec![create],
        vec![insert, remove],
        vec![Record::Operation(Operation::DropCorpus { uid })],
    ]
}

fn written() -> Vec<u8> {
    let memory = ForgetfulDirectory::default();
    memory.forbid_allocation();
    let mut appender = open(&memory, LogOptions::default());
    for batch in batches() {
        commit(&mut appender, &batch).unwrap();
    }
    appender.finish().unwrap();
    memory.bytes(&file::name(1))
}

#[test]
fn a_log_has_the_bytes_of_the_golden_file() {
    compare_with_golden(&format!("log/{}", file::name(1)), &written());
}

/// The records of shards, in a file of version 2.
fn installation() -> Record {
    let records = [0, 0x3f, 0xff].map(|shard| (ShardId(shard), Arc::new(sample(shard.into()))));
    Record::Operation(Operation::Install(records.into()))
}

#[test]
fn an_installation_begins_a_file_of_version_2() {
    let memory = ForgetfulDirectory::default();
    memory.forbid_allocation();
    let mut appender = open(&memory, LogOptions::default());
    let [create, change, drop] = &batches()[..] else {
        panic!("there are three batches");
    };
    let with_installation = [&change[..], &[installation()]].concat();
    for batch in [create, &with_installation, drop] {
        commit(&mut appender, batch).unwrap();
    }
    appender.finish().unwrap();
    assert_eq!(memory.file_names(), [1, 2].map(file::name));
    assert_eq!(memory.bytes(&file::name(1))[8], 1);
    compare_with_golden("log-2.log", &memory.bytes(&file::name(2)));
    let (_, read) = recover(&memory, 1).unwrap();
    let records = [create, &with_installation, drop].map(|batch| batch.clone());
    assert_eq!(
        without_marks(&read),
        (1..).zip(records.concat()).collect::<Numbered>()
    );
}

/// A copy of several segments, one of another store.
fn copied_in_parts() -> Record {
    let shard = ShardId(0x3f);
    let segment = |number: u64, origin| {
        let meta = SegmentMeta {
            bytes: 65_536 + number,
            elements: 4_096,
            highest_version: Version(number << 16),
            hash: [number as u8; 32],
            origin,
        };
        (SegmentId { shard, number }, meta)
    };
    let origin = Origin {
        store: STORE,
        number: 77,
    };
    Record::Operation(Operation::Copied(ShardCopy {
        shard,
        added: Epoch {
            generation: 1,
            number: 9,
        },
        segments: vec![segment(5, Some(origin)), segment(12, None)],
    }))
}

#[test]
fn a_copy_in_parts_begins_a_file_of_version_3() {
    let memory = ForgetfulDirectory::default();
    memory.forbid_allocation();
    let mut appender = open(&memory, LogOptions::default());
    let batches = [vec![installation()], vec![copied_in_parts()]];
    for batch in &batches {
        commit(&mut appender, batch).unwrap();
    }
    appender.finish().unwrap();
    assert_eq!(memory.file_names(), [1, 2].map(file::name));
    compare_with_golden("log-3.log", &memory.bytes(&file::name(2)));
    let (_, read) = recover(&memory, 1).unwrap();
    let records = batches.concat();
    assert_eq!(
        without_marks(&read),
        (1..).zip(records).collect::<Numbered>()
    );
}

#[test]
fn a_record_with_a_floor_begins_a_file_of_version_4() {
    let memory = ForgetfulDirectory::default();
    memory.forbid_allocation();
    let mut appender = open(&memory, LogOptions::default());
    let record = Arc::new(with_floor(7));
    let with_floor = Record::Operation(Operation::Install(vec![(ShardId(0x3f), record)]));
    let batches = [vec![installation()], vec![with_floor]];
    for batch in &batches {
        commit(&mut appender, batch).unwrap();
    }
    appender.finish().unwrap();
    assert_eq!(memory.file_names(), [1, 2].map(file::name));
    compare_with_golden("log-4.log", &memory.bytes(&file::name(2)));
    let (_, read) = recover(&memory, 1).unwrap();
    assert_eq!(
        without_marks(&read),
        (1..).zip(batches.concat()).collect::<Numbered>()
    );
    let body = batches[1][0].encode().unwrap();
    assert!(Record::decode(&body, 3).is_err());
}

/// Without a frame, it takes the place of the one of version 1.
#[test]
fn an_installation_in_a_new_log_replaces_its_file() {
    let memory = ForgetfulDirectory::default();
    let mut appender = open(&memory, LogOptions::default());
    commit(&mut appender, &[installation()]).unwrap();
    commit(&mut appender, &batches()[0]).unwrap();
    appender.finish().unwrap();
    assert_eq!(memory.file_names(), [file::name(1)]);
    let (tail, read) = recover(&memory, 1).unwrap();
    assert_eq!(without_marks(&read).len(), 2);
    let mut appender = Appender::new(tail, LogOptions::default());
    commit(&mut appender, &[installation()]).unwrap();
    assert_eq!(memory.file_names(), [file::name(1)]);
}

#[test]
fn the_golden_file_is_read_from_disk() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(golden(), directory.path().join(file::name(1))).unwrap();
    let mut read = Vec::new();
    let opened = Arc::new(DiskDirectory::open(directory.path()).unwrap());
    let tail = log::recover(opened, STORE, 1, |sequence, record| {
        read.push((sequence, record));
        Ok::<(), LogError>(())
    });
    let records = batches().concat().into_iter().chain([Record::Mark]);
    assert_eq!(read, (1..).zip(records).collect::<Numbered>());
    assert_eq!(tail.unwrap().sequence, 6);
}
