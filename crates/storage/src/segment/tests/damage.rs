//! Damage of every kind: a segment gives what was written, or refuses.

use std::fs;

use super::*;
use crate::error::Fault;

/// A segment of about 64 KiB with blocks of several corpora and kinds, as bytes.
fn segment_of_64_kib() -> (Vec<u8>, SegmentMeta, Model) {
    let mut random = fastrand::Rng::with_seed(64);
    let mut model = Model::new();
    for corpus in 0..16 {
        let longest = [0, 3, 40, 1024][corpus % 4];
        let mut bytes = 0;
        while bytes < 3_900 {
            let id = id(&mut random, longest);
            bytes += id.len() + 18;
            let key = (
                CorpusUid([corpus as u8; 16]),
                Fingerprint(random.u64(..)),
                id,
            );
            let version = Version(random.u64(..));
            model.insert(
                key,
                State {
                    version,
                    live: random.bool(),
                },
            );
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let meta = write(directory.path(), &model);
    let bytes = fs::read(directory.path().join(ID.to_string())).unwrap();
    (bytes, meta, model)
}

/// G2.
#[test]
fn a_flip_of_any_bit_is_refused() {
    let (mut bytes, meta, model) = segment_of_64_kib();
    assert!((60_000..70_000).contains(&bytes.len()), "{}", bytes.len());
    let sound = bytes.clone();
    let sound = open_bytes(&sound[..], meta).unwrap();
    assert!(rest(sound.scan_all(|_| true).unwrap()).unwrap() == model);
    let index_start = sound.index().end_offset() as usize;
    let mut place = 0;
    for at in 0..bytes.len() {
        // The block that the byte is in, if it is in one: the others are what they were.
        let next = sound.index().len().min(place + 1);
        if next < sound.index().len() && sound.index().block(next).offset as usize <= at {
            place = next;
        }
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            match open_bytes(&bytes[..], meta) {
                Ok(segment) => {
                    assert!((64..index_start).contains(&at), "{at} {bit}");
                    let read = segment.load(place, &mut Vec::new());
                    assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{at} {bit}");
                }
                Err(error) => {
                    assert!(!(64..index_start).contains(&at), "{at} {bit}: {error}");
                }
            }
            bytes[at] ^= 1 << bit;
        }
    }
}

/// G2.
#[test]
fn a_segment_that_is_cut_short_is_refused() {
    let (bytes, meta, _) = segment_of_64_kib();
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        assert!(open_bytes(cut, meta).is_err(), "{length}");
        // Even if a manifest says that this is its length.
        let as_long = SegmentMeta {
            bytes: length as u64,
            ..meta
        };
        assert!(open_bytes(cut, as_long).is_err(), "{length}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(open_bytes(&longer[..], meta).is_err());
}

/// G2.
#[test]
fn what_a_manifest_says_of_another_segment_is_refused() {
    let (bytes, meta, _) = segment_of_64_kib();
    let open_as = |header, meta| {
        let cache = Arc::new(BlockCache::new(0));
        let opened = Segment::from_source(&bytes[..], "segment".into(), header, meta, cache);
        opened.map(|_| ()).unwrap_err().to_string()
    };
    let header = Header {
        store: STORE,
        id: ID,
    };
    let id = SegmentId { number: 8, ..ID };
    assert!(open_as(Header { id, ..header }, meta).contains("this is another segment"));
    let id = SegmentId {
        shard: ShardId(0),
        ..ID
    };
    assert!(open_as(Header { id, ..header }, meta).contains("this is another segment"));
    let store = Uuid::nil();
    assert_eq!(
        open_as(Header { store, ..header }, meta),
        "segment belongs to store 07070707-0707-0707-0707-070707070707, not to \
         00000000-0000-0000-0000-000000000000: put the file of this store in its place"
    );
    let elements = meta.elements + 1;
    assert!(open_as(header, SegmentMeta { elements, ..meta }).contains("the footer is not"));
    let highest_version = Version(0);
    let other = SegmentMeta {
        highest_version,
        ..meta
    };
    assert!(open_as(header, other).contains("the footer is not"));
}

#[test]
fn foreign_and_newer_files_are_told_from_damage() {
    let (bytes, meta, _) = segment_of_64_kib();
    let message = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        open_bytes(&bytes[..], meta).unwrap_err().to_string()
    };
    assert_eq!(
        message(0, b'X'),
        "segment is no segment of simshard, give another directory or move it away"
    );
    assert_eq!(
        message(8, 2),
        "segment has format version 2, this program reads 1: use a newer simshard"
    );
    assert_eq!(
        message(20, 1),
        "segment is damaged at byte 0, the checksum of the header does not match: check the disk; if other nodes hold \
         its shards, move the data directory away and start the node with an empty one, else restore a backup"
    );
}

/// G2.
#[test]
fn a_sound_block_in_the_place_of_another_is_refused() {
    let corpus = CorpusUid([1; 16]);
    let (old, new) = (block(&[(1, ""), (2, "")]), block(&[(1, ""), (2, "")]));
    let mut stale = Block::default();
    for place in 0..old.len() {
        let version = Version(8);
        stale.push(Element {
            version,
            ..old.element(place)
        });
    }
    let (mut bytes, meta) = assemble(&[(corpus, new)]);
    let mut encoded = Vec::new();
    stale.encode(&mut encoded);
    bytes[64..64 + encoded.len()].copy_from_slice(&encoded);
    let segment = open_bytes(&bytes[..], meta).unwrap();
    let error = segment.find(corpus, Fingerprint(1), "").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("not the one that the index lists"),
        "{error}"
    );
}

/// G2.
#[test]
fn blocks_out_of_order_are_refused_by_a_scan() {
    let corpus = CorpusUid([1; 16]);
    for second in ["a", "b"] {
        let (bytes, meta) = assemble(&[
            (corpus, block(&[(1, "b")])),
            (corpus, block(&[(1, second)])),
        ]);
        let segment = open_bytes(&bytes[..], meta).unwrap();
        let error = rest(segment.scan(corpus, None).unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("out of order between blocks"),
            "{error}"
        );
    }
}

/// G2.
#[test]
fn what_no_block_says_is_refused_under_a_sound_checksum() {
    let sample = block(&[(1, "é"), (1, "z"), (2, "")]);
    let mut bytes = Vec::new();
    sample.encode(&mut bytes);
    let (live, ends) = (8 + 3 * 16, 8 + 3 * 16 + 1);
    let cases = [
        (live, 0x0f, "unused bits are set"),
        (ends, 1, "an id has no sound end"),
        (ends, 4, "an id has no sound end"),
        (ends + 2, 1, "an id has no sound end"),
        (ends + 4, 2, "an id has no sound end"),
        (ends + 6, 0xff, "the columns do not fit the block"),
        (0, 0, "the columns do not fit the block"),
        (3, 0xff, "the columns do not fit the block"),
        (7, 0xff, "the columns do not fit the block"),
        (8, 2, "elements are out of order"),
        (24, 0, "elements are out of order"),
    ];
    for (at, byte, what) in cases {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        let refused = Err(Fault::damaged(0, what));
        assert_eq!(Block::decode(&sealed(bytes)), refused, "{at} {byte}");
    }
    let same = block(&[(1, "a"), (1, "a")]);
    let long = block(&[(1, &"x".repeat(1025))]);
    let full = block(&(0..4_100).map(|n| (n, "")).collect::<Vec<_>>());
    for refused in [same, long, full, Block::default()] {
        let mut bytes = Vec::new();
        refused.encode(&mut bytes);
        assert!(Block::decode(&bytes).is_err());
    }
}

/// G2.
#[test]
fn what_no_frame_or_index_says_is_refused_under_sound_checksums() {
    let (a, b) = (CorpusUid([1; 16]), CorpusUid([2; 16]));
    let refused = |(bytes, meta): (Vec<u8>, SegmentMeta)| {
        let opened = open_bytes(&bytes[..], meta).map(drop);
        opened.unwrap_err().to_string()
    };
    let index = "the index says what no index says";
    let corpora = [(b, block(&[(1, "")])), (a, block(&[(1, "")]))];
    assert!(refused(assemble(&corpora)).contains(index));
    let blocks = [(a, block(&[(2, "")])), (a, block(&[(1, "")]))];
    assert!(refused(assemble(&blocks)).contains(index));
    assert!(refused(assemble(&[])).contains(index));

    let (sample, meta) = assemble(&[(a, block(&[(1, ""), (2, "")])), (b, block(&[(3, "")]))]);
    let footer = sample.len() - 64;
    let start = footer - 2 * 32 - 2 * 24;
    let (header, sum) = ("the header says", "do not add up");
    let cases = [
        (8, 0, header),
        (13, 1, header),
        (40, 1, header),
        (59, 1, header),
        (footer + 36, 1, "the footer says"),
        (footer + 51, 1, "the footer says"),
        (footer + 52, 0, "the footer says"),
        (start + 16, 2, index),
        (start + 20, 1, index),
        (start + 24, 0, index),
        (start + 48, 0, index),
        (start + 48, 1, sum),
        (start + 51, 1, index),
        (start + 52, 0, index),
        (start + 52, 9, sum),
        (start + 60, 1, index),
        (start + 64, 3, index),
    ];
    for (at, byte, what) in cases {
        let mut bytes = sample.clone();
        bytes[at] = byte;
        let index_sum = crc32c::crc32c(&bytes[start..footer]);
        bytes[footer + 32..footer + 36].copy_from_slice(&index_sum.to_le_bytes());
        let (header, footer) = (
            sealed(bytes[..64].to_vec()),
            sealed(bytes[footer..].to_vec()),
        );
        let (_, rest) = bytes.split_at(64);
        let bytes = [&header, &rest[..rest.len() - 64], &footer].concat();
        let error = refused((bytes, meta));
        assert!(error.contains(what), "{at} {byte}: {error}");
    }
}
