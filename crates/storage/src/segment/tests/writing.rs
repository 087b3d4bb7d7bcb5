//! What writers refuse, and what they leave behind.

use std::fs;

use super::*;
use crate::element::MAX_ID_BYTES;

const CORPUS: CorpusUid = CorpusUid([4; 16]);

fn element(fingerprint: u64, id: &str) -> Element<'_> {
    Element {
        fingerprint: Fingerprint(fingerprint),
        id,
        version: Version(1),
        live: true,
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// G4.
#[test]
fn an_unfinished_segment_has_another_name_and_vanishes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut writer = begin(path).unwrap();
    writer.push(CORPUS, element(1, "a")).unwrap();
    assert_eq!(names(path), ["3f-0000000000000007.new"]);
    drop(writer);
    assert!(names(path).is_empty());
    let empty = begin(path).unwrap();
    assert_eq!(empty.finish().unwrap(), None);
    assert!(names(path).is_empty());
    let mut writer = begin(path).unwrap();
    writer.push(CORPUS, element(1, "a")).unwrap();
    writer.finish().unwrap();
    assert_eq!(names(path), ["3f-0000000000000007.seg"]);
}

/// G4.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_frees_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let new = directory.path().join("3f-0000000000000007.new");
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    let mut writer = begin(directory.path()).unwrap();
    let failed = (0..).find_map(|n| writer.push(CORPUS, element(n, "")).err());
    let Some(WriteError::Io { source, .. }) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert!(names(directory.path()).is_empty());
    let finished = writer.finish();
    assert!(
        matches!(finished, Err(WriteError::Abandoned { .. })),
        "{finished:?}"
    );
    assert!(names(directory.path()).is_empty());

    // So little that it is noticed at the end.
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    let mut writer = begin(directory.path()).unwrap();
    writer.push(CORPUS, element(1, "")).unwrap();
    assert!(matches!(writer.finish(), Err(WriteError::Io { .. })));
    assert!(names(directory.path()).is_empty());
}

#[test]
fn elements_that_do_not_ascend_are_refused_and_the_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = begin(directory.path()).unwrap();
    let long = "x".repeat(MAX_ID_BYTES + 1);
    writer.push(CORPUS, element(5, "b")).unwrap();
    let refused = [
        (CORPUS, element(5, "b")),
        (CORPUS, element(5, "a")),
        (CORPUS, element(5, "")),
        (CORPUS, element(4, "c")),
        (CorpusUid([3; 16]), element(6, "c")),
    ];
    for (corpus, element) in refused {
        let error = writer.push(corpus, element).unwrap_err();
        assert!(
            matches!(error, WriteError::OutOfOrder { element: 1, .. }),
            "{error}"
        );
    }
    let error = writer.push(CORPUS, element(6, &long)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("has an id of 1025 bytes, the limit is 1024")
    );
    writer
        .push(CorpusUid([5; 16]), element(0, &long[1..]))
        .unwrap();
    let meta = writer.finish().unwrap().unwrap();
    let segment = open(directory.path(), meta, 0).unwrap();
    assert_eq!(rest(segment.scan_all(|_| true).unwrap()).unwrap().len(), 2);
}

#[test]
fn blocks_are_filled_to_their_limit() {
    let mut block = Block::default();
    let ids: Vec<String> = (0..1000).map(|n| format!("{n:0>1024}")).collect();
    for id in &ids {
        if !block.fits(id.len()) {
            break;
        }
        block.push(element(3, id));
    }
    assert_eq!(
        (block.len(), block.encoded_len()),
        (62, 62 * (1024 + 18) + 8 + 8 + 4)
    );
    let mut bytes = Vec::new();
    let sum = block.encode(&mut bytes);
    assert_eq!(bytes.len(), block.encoded_len());
    assert_eq!(Block::decode(&bytes), Ok((block, sum)));
}
