//! Inspecting a directory: what it reports about the log's end, and that no process changes it meanwhile.

use std::fs::{self, OpenOptions};

use super::{Fixture, Store, insert, owned, small};
use crate::AbruptEnd;
use crate::inspect::inspect;
use crate::store::OpenError;

/// A file that was cut short looks like a torn write. The start continues, and inspecting reports it.
#[test]
fn a_log_that_was_cut_short_is_read_and_remarked_upon() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    for version in 1..=3 {
        insert(&fixture, version, &[(version, "a")]);
    }
    drop(fixture);
    let path = directory.path().join("log/00000000000000000001.log");
    let whole = inspect(directory.path()).unwrap();
    assert_eq!((&whole.torn, &whole.abrupt_end), (&None, &None));
    let contents = fs::read(&path).unwrap();
    let used = contents.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    assert!(contents.len() as u64 > used + 1000, "it is allocated ahead");

    let bytes = used - 100;
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(bytes).unwrap();
    let cut = inspect(directory.path()).unwrap();
    assert!(cut.log_records < whole.log_records);
    assert!(cut.torn.as_ref().unwrap().offset < bytes as usize);
    assert_eq!(cut.abrupt_end, Some(AbruptEnd { path, bytes }));
    cut.verify(|_| ()).unwrap();
    assert_eq!(file.metadata().unwrap().len(), bytes);
    drop((whole, cut));
    assert!(Fixture::open(directory.path()).contents().len() < 3);
}

#[test]
fn a_directory_cannot_be_opened_while_it_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    fixture.flush();
    drop(fixture);
    let inspection = inspect(directory.path()).unwrap();
    assert!(inspection.is_locked());
    let mut segments = 0;
    let is_segment = |_| {
        let opened = Store::open(directory.path(), owned(), small());
        assert!(matches!(opened, Err(OpenError::Locked { .. })));
        segments += 1;
    };
    inspection.verify(is_segment).unwrap();
    assert!(segments > 0);
    drop(inspection);
    Store::open(directory.path(), owned(), small()).unwrap();
}
