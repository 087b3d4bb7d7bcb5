//! The bytes of a log, kept in a file, so that a change of the format fails a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simshard_simhash::{Documents, Fingerprint, Layout};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use super::{CORPUS, LogOptions, Numbered, STORE, commit, open};
use crate::directory::DiskDirectory;
use crate::element::{Change, ChangeKind, Operation};
use crate::log::{LogError, Record, file, recover};
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

#[test]
fn the_golden_file_is_read_from_disk() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(golden(), directory.path().join(file::name(1))).unwrap();
    let mut read = Vec::new();
    let opened = Arc::new(DiskDirectory::open(directory.path()).unwrap());
    let tail = recover(opened, STORE, 1, |sequence, record| {
        read.push((sequence, record));
        Ok::<(), LogError>(())
    });
    let records = batches().concat().into_iter().chain([Record::Mark]);
    assert_eq!(read, (1..).zip(records).collect::<Numbered>());
    assert_eq!(tail.unwrap().sequence, 6);
}
