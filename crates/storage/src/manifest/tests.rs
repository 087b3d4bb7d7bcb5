//! Manifests written, read, damaged, and byte by byte.

use std::fs;

use proptest::prelude::*;
use simshard_topology::replication::{Epoch, Role};

use super::*;
use crate::directory::DiskDirectory;
use crate::shard_record;
use crate::tests::{changed, changes, compare_with_golden, fuzz_cases};

fn folder(path: &Path) -> Arc<dyn Directory> {
    Arc::new(DiskDirectory::open(path).unwrap())
}

fn read(path: &Path) -> Result<Option<Manifest>, ReadError> {
    Manifest::read(&*folder(path))
}

fn uid(byte: u8) -> CorpusUid {
    CorpusUid([byte; 16])
}

fn segment(shard: u8, number: u64) -> SegmentId {
    let shard = ShardId(shard);
    SegmentId { shard, number }
}

fn meta(byte: u8) -> SegmentMeta {
    SegmentMeta {
        bytes: 65_536 + u64::from(byte),
        elements: u64::from(byte) + 1,
        highest_version: Version(u64::from(byte) << 16),
        hash: [byte; 32],
        origin: None,
    }
}

fn sample() -> Manifest {
    let layout = |blocks, distance| Layout::new(blocks, distance).unwrap();
    Manifest {
        generation: 12,
        first_sequence: 3_456,
        next_segment: 9,
        shards: [0, 0x3f, 0xff].map(ShardId).into_iter().collect(),
        corpora: BTreeMap::from([(uid(1), layout(5, 3)), (uid(4), layout(64, 1))]),
        dropped: BTreeSet::from([uid(2), uid(3)]),
        segments: BTreeMap::from([
            (segment(0, 8), meta(1)),
            (segment(0x3f, 2), meta(2)),
            (segment(0x3f, 7), meta(3)),
        ]),
        ..Manifest::new(Uuid::from_bytes([7; 16]))
    }
}

/// A manifest of version 2: with records of shards, and a segment of another store.
fn sample_2() -> Manifest {
    let epoch = |number| Epoch {
        generation: 1,
        number,
    };
    let replica = |number, role| ReplicaMeta {
        record: Arc::new(shard_record::tests::sample(number)),
        role,
        replay_start: 3_000 + number,
    };
    let (copying, copied) = (
        Role::Copying { added: epoch(9) },
        Role::Copied { added: epoch(8) },
    );
    let roles = [Role::None, copying, copied, Role::InSync];
    let mut manifest = sample();
    manifest.replicas = (0..4)
        .zip(roles)
        .map(|(number, role)| (ShardId(number), replica(number.into(), role)))
        .collect();
    let adopted = manifest.segments.get_mut(&segment(0x3f, 2)).unwrap();
    adopted.origin = Some(Origin {
        store: Uuid::from_bytes([8; 16]),
        number: 77,
    });
    manifest
}

/// A manifest of version 3: with segments that were set aside.
fn sample_3() -> Manifest {
    let mut manifest = sample_2();
    for id in [segment(0, 8), segment(0x3f, 2)] {
        let meta = manifest.segments.remove(&id).unwrap();
        manifest.aside.insert(id, meta);
    }
    manifest
}

/// With a floor.
fn sample_4() -> Manifest {
    let mut manifest = sample_2();
    for (shard, replica) in &mut manifest.replicas {
        replica.record = Arc::new(shard_record::tests::with_floor(u64::from(shard.0) + 1));
    }
    manifest
}

/// The sample's bytes after a change, under a sound checksum.
fn resealed(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = sample().encode();
    bytes.truncate(bytes.len() - SEAL_BYTES);
    change(&mut bytes);
    seal(&mut bytes, 0);
    bytes
}

/// MF1, MF2.
#[test]
fn a_manifest_is_read_as_it_was_written_and_replaces_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(read(directory.path()).unwrap(), None);
    let mut manifest = Manifest::new(Uuid::from_bytes([7; 16]));
    manifest.write(&folder(directory.path())).unwrap();
    assert_eq!(read(directory.path()).unwrap(), Some(manifest));
    manifest = sample();
    fs::write(directory.path().join("manifest.new"), b"of a crash").unwrap();
    manifest.write(&folder(directory.path())).unwrap();
    assert_eq!(read(directory.path()).unwrap(), Some(manifest));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_manifest_is_as_recorded() {
    compare_with_golden("manifest", &sample().encode());
    assert_eq!(Manifest::decode(&sample().encode()), Ok(sample()));
    compare_with_golden("manifest-2", &sample_2().encode());
    assert_eq!(Manifest::decode(&sample_2().encode()), Ok(sample_2()));
    compare_with_golden("manifest-3", &sample_3().encode());
    assert_eq!(Manifest::decode(&sample_3().encode()), Ok(sample_3()));
    compare_with_golden("manifest-4", &sample_4().encode());
    assert_eq!(Manifest::decode(&sample_4().encode()), Ok(sample_4()));
    // No earlier format has floors.
    let mut bytes = sample_4().encode();
    bytes.truncate(bytes.len() - SEAL_BYTES);
    bytes[8] = 3;
    seal(&mut bytes, 0);
    let refused = Manifest::decode(&bytes).unwrap_err();
    assert!(matches!(refused, Fault::Damaged { .. }), "{refused:?}");
}

/// So a program of version 1 reads whatever says nothing of replicas.
#[test]
fn a_version_is_written_where_the_one_before_cannot_say_it() {
    let format = |manifest: &Manifest| manifest.encode()[8];
    let mut adopted = sample_2();
    adopted.replicas.clear();
    let mut installed = sample_2();
    installed.segments = sample().segments;
    assert_eq!(
        [sample(), adopted, installed, sample_3()]
            .each_ref()
            .map(format),
        [1, 2, 2, 3]
    );
}

/// MF2.
#[test]
fn a_flip_of_any_bit_and_a_cut_at_any_byte_are_refused() {
    for sample in [sample(), sample_2(), sample_3()] {
        let mut bytes = sample.encode();
        for at in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..at]).is_err(), "{at}");
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                assert!(Manifest::decode(&bytes).is_err(), "{at} {bit}");
                bytes[at] ^= 1 << bit;
            }
        }
        bytes.push(0);
        assert!(Manifest::decode(&bytes).is_err());
    }
}

/// Where the lists of the sample start.
const CORPORA: usize = HEAD_BYTES + 88;
const DROPPED: usize = CORPORA + 2 * 24;
const SEGMENTS: usize = DROPPED + 2 * 16;

fn refused(bytes: &[u8], offset: usize, what: &'static str) {
    assert_eq!(
        Manifest::decode(bytes),
        Err(Fault::damaged(offset, what)),
        "{what}"
    );
}

/// MF2.
#[test]
fn entries_that_are_out_of_order_or_twice_are_refused() {
    for (start, length) in [(CORPORA, 24), (DROPPED, 16), (SEGMENTS, 72)] {
        let swapped = resealed(|bytes| bytes[start..start + 2 * length].rotate_left(length));
        refused(&swapped, start + length, "entries are out of order");
        let twice = resealed(|bytes| bytes.copy_within(start..start + length, start + length));
        refused(&twice, start + length, "entries are out of order");
    }
    let both = resealed(|bytes| bytes.copy_within(CORPORA..CORPORA + 16, DROPPED));
    refused(&both, DROPPED, "a corpus is both there and dropped");
}

/// MF2.
#[test]
fn what_no_manifest_says_is_refused_with_its_place() {
    let segments_end = SEGMENTS + 3 * 72;
    let count_of_segments = CORPORA - 8;
    let cases = [
        (8, 0, 8, "there is no such format version"),
        (CORPORA - 1, 1, CORPORA - 4, "there are no zeros"),
        (CORPORA + 23, 1, CORPORA + 18, "there are no zeros"),
        (SEGMENTS + 5, 1, SEGMENTS + 4, "there are no zeros"),
        (
            CORPORA + 17,
            5,
            CORPORA + 16,
            "no corpus has these blocks and distance",
        ),
        (SEGMENTS + 1, 1, SEGMENTS, "there is no such shard"),
        (
            SEGMENTS,
            1,
            SEGMENTS,
            "a segment is of a shard that the directory does not hold",
        ),
        (
            SEGMENTS + 8,
            9,
            SEGMENTS,
            "a segment has a number that was not given yet",
        ),
        (
            count_of_segments,
            4,
            segments_end,
            "less follows than is counted",
        ),
        (
            count_of_segments,
            2,
            segments_end - 72,
            "more follows than is counted",
        ),
    ];
    for (at, byte, offset, what) in cases {
        refused(&resealed(|bytes| bytes[at] = byte), offset, what);
    }
}

#[test]
fn foreign_newer_and_damaged_manifests_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let message = |bytes: &[u8]| {
        fs::write(directory.path().join(NAME), bytes).unwrap();
        let error = read(directory.path()).unwrap_err().to_string();
        error.replace(directory.path().to_str().unwrap(), "DIR")
    };
    assert_eq!(
        message(b"# a list of parts\n"),
        "DIR/manifest is no manifest of simshard, give another directory or move it away"
    );
    assert_eq!(
        message(&resealed(|bytes| bytes[8] = 5)),
        "DIR/manifest has format version 5, this program reads 4: use a newer simshard"
    );
    let mut bytes = sample().encode();
    bytes[100] ^= 1;
    assert_eq!(
        message(&bytes),
        "DIR/manifest is damaged at byte 0, the checksum does not match: check the disk; if other nodes hold its shards, \
         move the data directory away and start the node with an empty one, else restore a backup"
    );
    fs::remove_file(directory.path().join(NAME)).unwrap();
    fs::create_dir(directory.path().join(NAME)).unwrap();
    let error = read(directory.path()).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }), "{error}");
}

/// MF3.
#[test]
fn what_reading_would_refuse_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    sample().write(&folder(directory.path())).unwrap();
    let mut both = sample();
    both.dropped.insert(uid(4));
    let mut number = sample();
    number.next_segment = 8;
    for (manifest, what) in [
        (both, "a corpus is both there and dropped"),
        (number, "a segment has a number that was not given yet"),
    ] {
        let Err(WriteError::Refused { source, .. }) = manifest.write(&folder(directory.path()))
        else {
            panic!("it was written although {what}");
        };
        assert!(source.to_string().contains(what), "{source}");
    }
    assert_eq!(read(directory.path()).unwrap(), Some(sample()));
}

/// MF2.
#[test]
fn a_damaged_manifest_under_a_sound_checksum_is_refused_or_is_what_it_says() {
    let sample = sample().encode();
    proptest!(fuzz_cases(), |(changes in changes(sample.len()))| {
        let mut bytes = changed(&sample, &changes);
        bytes.truncate(bytes.len().saturating_sub(SEAL_BYTES));
        let length = bytes.len().saturating_sub(HEAD_BYTES) as u32;
        if let Some(told) = bytes.get_mut(12..16) {
            told.copy_from_slice(&length.to_le_bytes());
        }
        seal(&mut bytes, 0);
        if let Ok(manifest) = Manifest::decode(&bytes) {
            assert!(manifest.encode() == bytes);
        }
    });
}
