//! What a store that failed for good leaves, and what the next start makes of it.

use super::{Fixture, Store, insert, owned, small};
use crate::inspect::inspect;
use crate::store::FailureNote;
use crate::writer::Failure;

/// ST6.
#[test]
fn a_store_that_failed_is_opened_again_once_an_operator_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    let contents = fixture.contents();
    for reason in ["the first reason", "another one"] {
        let failure = Failure::new(&std::io::Error::other(reason));
        fixture.store.leave_word(&failure);
    }
    drop(fixture);
    let word = directory.path().join("FAILED");
    for _ in 0..2 {
        let refused = Store::open(directory.path(), owned(), small()).unwrap_err();
        let (word, folder) = (word.display(), directory.path().display());
        assert_eq!(
            refused.to_string(),
            format!(
                "the store failed when it was last used, as {word} says: the first reason; check the disk, run \
                 simshard storage verify {folder}, and delete that file if all is well"
            )
        );
    }
    let inspection = inspect(directory.path()).unwrap();
    let reason = "the first reason".to_owned();
    let path = word.clone();
    assert_eq!(inspection.failed, Some(FailureNote { path, reason }));
    inspection.verify(|_| ()).unwrap();
    drop(inspection);
    std::fs::remove_file(word).unwrap();
    assert_eq!(inspect(directory.path()).unwrap().failed, None);
    assert_eq!(Fixture::open(directory.path()).contents(), contents);
}

#[test]
fn a_log_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    let failure = fixture.store.log_failure(&std::io::Error::other("no more"));
    let log = directory.path().join("log");
    let expected = format!("cannot write the log in {}: no more", log.display());
    assert_eq!(failure.to_string(), expected);
}
