//! Damage, and trouble of the system, that a segment meets while it is open.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::*;
use crate::segment::Origin;

/// G3.
#[test]
fn after_the_first_damage_all_reads_fail_alike() {
    let corpus = CorpusUid([1; 16]);
    let blocks = [block(&[(1, "")]), block(&[(2, "")]), block(&[(3, "")])];
    let (mut bytes, meta) = assemble(&blocks.map(|block| (corpus, block)));
    let hurt = 64 + 29 + 8;
    bytes[hurt] ^= 1;
    let cache = Arc::new(BlockCache::new(1 << 20));
    let header = Header {
        store: STORE,
        id: ID,
    };
    let segment = Segment::from_source(&bytes[..], "segment".into(), header, meta, cache).unwrap();
    let find = |fingerprint| segment.find(corpus, Fingerprint(fingerprint), "");
    assert!(find(1).unwrap().is_some());
    let first = find(2).unwrap_err().to_string();
    assert!(
        first.starts_with("segment is damaged at byte 93, the checksum of the block"),
        "{first}"
    );
    let later = [
        find(1).map(drop),
        find(77).map(drop),
        segment.lookup(corpus, Fingerprint(1), |_| panic!("an answer")),
        segment.scan(corpus, None).map(drop),
        segment.scan_all(|_| true).map(drop),
        segment.verify(|_| true).map(drop),
    ];
    for result in later {
        assert_eq!(result.unwrap_err().to_string(), first);
    }
}

/// A file of another store is read as it is, under a name of this one.
#[test]
fn an_adopted_segment_has_the_header_of_its_origin() {
    let (bytes, meta) = assemble(&[(CorpusUid([1; 16]), block(&[(1, "")]))]);
    let own = Header {
        store: Uuid::from_bytes([9; 16]),
        id: SegmentId { number: 99, ..ID },
    };
    let open = |origin| {
        let meta = SegmentMeta { origin, ..meta };
        let cache = Arc::new(BlockCache::new(1 << 20));
        Segment::from_source(&bytes[..], "segment".into(), own, meta, cache)
    };
    let (store, number) = (STORE, ID.number);
    let adopted = open(Some(Origin { store, number })).unwrap();
    assert_eq!(adopted.id(), own.id);
    assert!(adopted.verify(|_| true).unwrap());
    let others = [
        None,
        Some(Origin { store, number: 99 }),
        Some(Origin {
            store: own.store,
            number,
        }),
    ];
    for other in others {
        assert!(open(other).is_err(), "{other:?}");
    }
}

#[test]
fn a_hash_that_is_not_the_manifests_is_refused() {
    let (bytes, meta) = assemble(&[(CorpusUid([1; 16]), block(&[(1, "")]))]);
    let segment = open_bytes(&bytes[..], meta).unwrap();
    assert!(segment.verify(|_| true).unwrap());
    let hash = [0; 32];
    let segment = open_bytes(&bytes[..], SegmentMeta { hash, ..meta }).unwrap();
    let error = segment.verify(|_| true).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the hash is not that of the manifest"),
        "{error}"
    );
}

/// G2: the hash of the whole file shows that there is damage, but not where. The error names the place.
#[test]
fn damage_that_the_hash_shows_is_named_where_it_is() {
    let corpus = CorpusUid([1; 16]);
    let blocks = [block(&[(1, "")]), block(&[(2, "")]), block(&[(3, "")])];
    let (bytes, meta) = assemble(&blocks.map(|block| (corpus, block)));
    let sound = open_bytes(&bytes[..], meta).unwrap();
    let index = sound.index();
    let end = index.end_offset();
    let offsets = [0, 1, 2].map(|place| index.block(place).offset);
    let footer = bytes.len() as u64 - 64;
    let cases = [
        (40, 0, "the checksum of the header"),
        (offsets[0] + 3, offsets[0], "the checksum of the block"),
        (offsets[1], offsets[1], "the checksum of the block"),
        (offsets[2] + 20, offsets[2], "the checksum of the block"),
        (end + 5, end, "the checksum of the index"),
        (footer + 40, footer, "the checksum of the footer"),
    ];
    for (at, start, what) in cases {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(ID.to_string());
        fs::write(&path, &bytes).unwrap();
        let segment = open(directory.path(), meta, 0).unwrap();
        let mut damaged = bytes.clone();
        damaged[at as usize] ^= 1;
        fs::write(&path, damaged).unwrap();
        let message = segment.verify(|_| true).unwrap_err().to_string();
        let named = format!("is damaged at byte {start}, {what}");
        assert!(message.contains(&named), "{at}: {message}");
        let later = segment.find(corpus, Fingerprint(1), "").unwrap_err();
        assert_eq!(later.to_string(), message, "G3");
    }
}

/// Fails as long as it is told to, with this error.
struct Failing<'a>(&'a [u8], AtomicBool, Errno);

impl ReadAt for Failing<'_> {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) {
            Err(self.2.into())
        } else {
            self.0.read_exact_at(buffer, offset)
        }
    }
}

#[test]
fn an_error_of_the_system_keeps_its_source_and_is_no_damage() {
    let corpus = CorpusUid([1; 16]);
    let (bytes, meta) = assemble(&[(corpus, block(&[(1, "")])), (corpus, block(&[(2, "")]))]);
    let segment = open_bytes(
        Failing(&bytes, AtomicBool::new(false), Errno::TIMEDOUT),
        meta,
    )
    .unwrap();
    let mut scan = segment.scan(corpus, None).unwrap();
    segment.source().1.store(true, Ordering::Relaxed);
    let error = scan.advance().unwrap_err();
    let ReadError::Io { source, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(source.kind(), io::ErrorKind::TimedOut);
    let at = scan.element().unwrap().1.fingerprint;
    assert_eq!(at, Fingerprint(1), "a cursor that could not advance stays");
    segment.source().1.store(false, Ordering::Relaxed);
    scan.advance().unwrap();
    assert_eq!(scan.element().unwrap().1.fingerprint, Fingerprint(2));
    assert!(segment.find(corpus, Fingerprint(1), "").unwrap().is_some());
}

/// G3.
#[test]
fn what_the_disk_cannot_read_is_damaged() {
    let corpus = CorpusUid([1; 16]);
    let (bytes, meta) = assemble(&[(corpus, block(&[(1, "")]))]);
    let segment = open_bytes(Failing(&bytes, AtomicBool::new(false), Errno::IO), meta).unwrap();
    segment.source().1.store(true, Ordering::Relaxed);
    let message = segment.verify(|_| true).unwrap_err().to_string();
    assert!(message.contains("the disk cannot read"), "{message}");
    assert!(segment.is_damaged());
    segment.source().1.store(false, Ordering::Relaxed);
    let later = segment.find(corpus, Fingerprint(1), "").unwrap_err();
    assert_eq!(later.to_string(), message);
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_damaged() {
    let model = model(3, 3);
    let directory = tempfile::tempdir().unwrap();
    let meta = write(directory.path(), &model);
    let segment = open(directory.path(), meta, 0).unwrap();
    let path = directory.path().join(ID.to_string());
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(64)
        .unwrap();
    let error = segment.scan_all(|_| true).map(drop).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("damaged at byte 64, the file ends"),
        "{error}"
    );
}
