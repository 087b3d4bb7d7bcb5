//! The bytes of a small segment, pinned.

use std::fs;

use super::*;
use crate::tests::compare_with_golden;

fn small() -> Model {
    let state = |version, live| State {
        version: Version(version),
        live,
    };
    let (a, b) = (CorpusUid([0xa1; 16]), CorpusUid([0xb2; 16]));
    let key = |corpus, fingerprint, id: &str| (corpus, Fingerprint(fingerprint), id.to_owned());
    Model::from([
        (key(a, 0, ""), state(0x0102_0304_0506_0708, true)),
        (key(a, u64::MAX, ""), state(9, false)),
        (key(b, 0x3f00_0000_0000_0001, ""), state(10, true)),
        (
            key(b, 0x3f00_0000_0000_0001, "https://example.org/ä"),
            state(11, false),
        ),
        (
            key(b, 0x3f00_0000_0000_0001, "https://example.org/🙂"),
            state(12, true),
        ),
        (key(b, 0x3f00_0000_0000_0002, "b"), state(13, true)),
    ])
}

#[test]
fn a_small_segment_is_as_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let meta = write(directory.path(), &small());
    let bytes = fs::read(directory.path().join(ID.to_string())).unwrap();
    compare_with_golden("3f-0000000000000007.seg", &bytes);
    let segment = open_bytes(&bytes[..], meta).unwrap();
    assert!(rest(segment.scan_all(|_| true).unwrap()).unwrap() == small());
}
