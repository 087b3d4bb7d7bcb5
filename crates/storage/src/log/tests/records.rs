//! Bytes of records: what is written is read, and nothing else is read.

use std::sync::Arc;

use proptest::prelude::*;
use simshard_simhash::{Documents, Fingerprint, Layout};
use simshard_topology::replication::Epoch;
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use uuid::Uuid;

use super::insert;
use crate::FORMAT_VERSION;
use crate::element::{Change, ChangeKind, MAX_ID_BYTES, Operation, ShardCopy};
use crate::log::Record;
use crate::log::frame::MAX_BODY_BYTES;
use crate::log::record::EncodeError;
use crate::log::record::{DecodeError, is_mark};
use crate::segment::{Origin, SegmentId, SegmentMeta};
use crate::shard_record::tests::sample;
use crate::store::Installation;

fn documents() -> impl Strategy<Value = Documents> {
    let document = (any::<u64>(), "\\PC{0,12}|[a-z/]{0,40}");
    let named = prop::collection::vec(document, 0..20).prop_map(|all| {
        let (fingerprints, ids): (Vec<u64>, Vec<String>) = all.into_iter().unzip();
        // Ids without a byte are read as no ids.
        let is_bare = ids.iter().all(String::is_empty);
        Documents {
            fingerprints: fingerprints.into_iter().map(Fingerprint).collect(),
            ids: if is_bare { Vec::new() } else { ids },
        }
    });
    let bare = prop::collection::vec(any::<u64>(), 0..20).prop_map(|all| Documents {
        fingerprints: all.into_iter().map(Fingerprint).collect(),
        ids: Vec::new(),
    });
    prop_oneof![named, bare]
}

fn change() -> impl Strategy<Value = Change> {
    let kind = prop_oneof![Just(ChangeKind::Insert), Just(ChangeKind::Remove)];
    let head = (kind, any::<[u8; 16]>(), any::<u64>(), any::<[u8; 32]>());
    (head, documents()).prop_map(|((kind, corpus, version, shards), documents)| Change {
        kind,
        corpus: CorpusUid(corpus),
        version: Version(version),
        shards: ShardSet::from_bytes(shards),
        documents,
    })
}

fn installation() -> impl Strategy<Value = Installation> {
    prop::collection::btree_map(any::<u8>(), any::<u64>(), 0..4).prop_map(|numbers| {
        let numbers = numbers.into_iter();
        let record = |(shard, number)| (ShardId(shard), Arc::new(sample(number)));
        numbers.map(record).collect()
    })
}

/// The end of a copy, of segments with these hashes. Some are of another store.
fn copied(shard: ShardId, number: u64, hashes: &[[u8; 32]]) -> Record {
    let segment = |(place, &hash): (u64, &[u8; 32])| {
        let number = number.wrapping_add(place);
        let origin = Origin {
            store: Uuid::from_bytes([9; 16]),
            number: number / 5,
        };
        let meta = SegmentMeta {
            bytes: number / 2,
            elements: number / 3,
            highest_version: Version(number),
            hash,
            origin: (hash[0] == 0).then_some(origin),
        };
        (SegmentId { shard, number }, meta)
    };
    let added = Epoch {
        generation: 3,
        number,
    };
    Record::Operation(Operation::Copied(ShardCopy {
        shard,
        added,
        segments: (0..).zip(hashes).map(segment).collect(),
    }))
}

fn record() -> impl Strategy<Value = Record> {
    let create = (any::<[u8; 16]>(), 2..=12_u32, any::<u32>());
    prop_oneof![
        4 => change().prop_map(Record::change),
        1 => create.prop_map(|(uid, blocks, distance)| {
            let uid = CorpusUid(uid);
            let layout = Layout::new(blocks, distance % blocks).unwrap();
            Record::Operation(Operation::CreateCorpus { uid, layout })
        }),
        1 => any::<[u8; 16]>().prop_map(|uid| Record::Operation(Operation::DropCorpus { uid: CorpusUid(uid) })),
        1 => installation().prop_map(|installed| Record::Operation(Operation::Install(installed))),
        1 => (any::<u8>(), any::<u64>(), prop::collection::vec(any::<[u8; 32]>(), 0..4)).prop_map(|(shard, number, hashes)| copied(ShardId(shard), number, &hashes)),
        1 => Just(Record::Mark),
    ]
}

proptest! {
    #[test]
    fn records_survive_their_bytes(record in record()) {
        let body = record.encode().unwrap();
        prop_assert_eq!(is_mark(&body), record == Record::Mark);
        prop_assert_eq!(Record::decode(&body, FORMAT_VERSION), Ok(record));
    }

    #[test]
    fn a_body_that_is_too_short_or_too_long_is_refused(record in record(), cut: prop::sample::Index) {
        let mut body = record.encode().unwrap();
        let cut = cut.index(body.len());
        let short = Record::decode(&body[..cut], FORMAT_VERSION).unwrap_err();
        prop_assert!(matches!(short, DecodeError::Short | DecodeError::Shards), "{short}");
        body.push(0);
        prop_assert_eq!(Record::decode(&body, FORMAT_VERSION), Err(DecodeError::Long(1)));
    }
}

fn with_documents(documents: Documents) -> Record {
    let Record::Operation(Operation::Change(mut change)) = insert(1, 0) else {
        unreachable!()
    };
    change.documents = documents;
    Record::change(change)
}

fn with_ids(ids: &[&str]) -> Record {
    with_documents(Documents {
        fingerprints: vec![Fingerprint(7); ids.len()],
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    })
}

#[test]
fn ids_without_a_byte_take_no_bytes() {
    let bare = with_documents(Documents {
        fingerprints: vec![Fingerprint(7); 2],
        ids: Vec::new(),
    });
    let body = with_ids(&["", ""]).encode().unwrap();
    assert_eq!(body, bare.encode().unwrap());
    assert_eq!(Record::decode(&body, FORMAT_VERSION), Ok(bare));
}

#[test]
fn a_record_that_could_not_be_read_is_not_written() {
    let most = "é".repeat(MAX_ID_BYTES / 2);
    assert!(with_ids(&[&most]).encode().is_ok());
    let longer = format!("{most}x");
    let bytes = MAX_ID_BYTES + 1;
    assert_eq!(
        with_ids(&["", &longer]).encode(),
        Err(EncodeError::IdTooLong { bytes })
    );
    let unequal = with_documents(Documents {
        fingerprints: vec![Fingerprint(7); 2],
        ids: vec![String::new()],
    });
    let (ids, fingerprints) = (1, 2);
    assert_eq!(
        unequal.encode(),
        Err(EncodeError::UnequalColumns { ids, fingerprints })
    );
    let bare = |count: usize| {
        with_documents(Documents {
            fingerprints: vec![Fingerprint(7); count],
            ids: Vec::new(),
        })
    };
    let most = (MAX_BODY_BYTES - 65) / 8;
    assert!(bare(most).encode().unwrap().len() <= MAX_BODY_BYTES);
    let bytes = 65 + 8 * (most + 1);
    assert_eq!(bare(most + 1).encode(), Err(EncodeError::TooLong { bytes }));
}

/// L8: decoding allocates no more than the body has bytes.
#[test]
fn damaged_bodies_are_refused_whatever_they_claim() {
    // The ends of the ids stand behind 65 bytes and two fingerprints, their bytes behind the ends.
    let body = with_ids(&["aé", "b"]).encode().unwrap();
    let (count, ends, text) = (57, 81, 89);
    let damaged = |at: usize, bytes: &[u8]| {
        let mut body = body.clone();
        body[at..at + bytes.len()].copy_from_slice(bytes);
        Record::decode(&body, FORMAT_VERSION).unwrap_err()
    };
    assert_eq!(Record::decode(&[], FORMAT_VERSION), Err(DecodeError::Short));
    assert_eq!(damaged(0, &[9]), DecodeError::UnknownKind(9));
    assert_eq!(damaged(0, &[0]), DecodeError::UnknownKind(0));
    assert_eq!(damaged(count, &[0xFF; 4]), DecodeError::Short);
    assert_eq!(damaged(count + 4, &[0xFF; 4]), DecodeError::Short);
    assert_eq!(damaged(ends, &[2]), DecodeError::Ends, "within a character");
    assert_eq!(damaged(ends, &[5]), DecodeError::Ends, "behind the ids");
    assert_eq!(damaged(ends + 4, &[1]), DecodeError::Ends, "not ascending");
    assert_eq!(damaged(ends + 4, &[3]), DecodeError::Ends, "not at the end");
    assert_eq!(damaged(text, &[0xFF]), DecodeError::NotText);
    let mut create = vec![1];
    create.extend([9; 16]);
    create.extend([3, 3]);
    let refused = Record::decode(&create, FORMAT_VERSION).unwrap_err();
    assert!(matches!(refused, DecodeError::Layout(_)), "{refused}");

    let most = "x".repeat(MAX_ID_BYTES);
    let mut body = with_ids(&[&most, "y"]).encode().unwrap();
    let end = (MAX_ID_BYTES + 1) as u32;
    body[ends..ends + 4].copy_from_slice(&end.to_le_bytes());
    assert_eq!(
        Record::decode(&body, FORMAT_VERSION),
        Err(DecodeError::IdTooLong(MAX_ID_BYTES + 1))
    );
}

/// A copy of one segment has the bytes that earlier programs read, and no others.
#[test]
fn a_copy_in_parts_is_refused_in_files_of_an_earlier_version_and_with_one_part() {
    let hash = [7; 32];
    let one = copied(ShardId(3), 5, &[hash]);
    let two = copied(ShardId(3), 5, &[hash, hash]);
    assert_eq!([one.format(), two.format()], [2, 3]);
    let body = two.encode().unwrap();
    assert_eq!(Record::decode(&body, 3), Ok(two));
    assert_eq!(Record::decode(&body, 2), Err(DecodeError::UnknownKind(8)));
    let mut body = body[..1 + 4 + 12 + 4 + 64 + 24].to_vec();
    body[17] = 1;
    assert_eq!(Record::decode(&body, 3), Err(DecodeError::Shards));
    body[17] = 0;
    body.truncate(21);
    assert_eq!(Record::decode(&body, 3), Err(DecodeError::Shards));
}
