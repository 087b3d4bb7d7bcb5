//! Data directories that are new, that were not finished, and that lack what they had.

use std::fs;

use simshard_topology::{ShardId, ShardSet};

use super::{CORPUS, Fixture, Store, insert, owned, small};
use crate::element::Operation;

/// ST3: a log with acknowledged records is missed from the first one on.
#[test]
fn a_log_that_was_lost_before_the_first_flush_is_missed() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    drop(fixture);
    let log = directory.path().join("log");
    let file = log.join("00000000000000000001.log");
    let aside = directory.path().join("aside");
    fs::rename(&file, &aside).unwrap();
    let refused = Store::open(directory.path(), owned(), small()).unwrap_err();
    assert!(
        refused.to_string().contains("no file has record 1"),
        "{refused}"
    );
    fs::rename(&aside, &file).unwrap();
    fs::remove_file(directory.path().join("manifest")).unwrap();
    let refused = Store::open(directory.path(), owned(), small()).unwrap_err();
    assert!(refused.to_string().contains("no manifest"), "{refused}");
}

#[test]
fn a_directory_that_was_not_finished_is_made_anew() {
    for name in ["00000000000000000001.log", "00000000000000000001.new"] {
        let directory = tempfile::tempdir().unwrap();
        drop(Store::open(directory.path(), owned(), small()).unwrap());
        // As if the process had been killed before it wrote the manifest.
        fs::remove_file(directory.path().join("manifest")).unwrap();
        let log = directory.path().join("log");
        fs::rename(log.join("00000000000000000001.log"), log.join(name)).unwrap();
        let fixture = Fixture::open(directory.path());
        fixture.create();
        insert(&fixture, 1, &[(1, "a")]);
        let contents = fixture.contents();
        drop(fixture);
        assert_eq!(Fixture::open(directory.path()).contents(), contents);
    }
}

/// Segments of dropped corpora are no documents.
#[test]
fn a_directory_whose_documents_were_all_dropped_is_of_use_for_other_shards() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(0x0077_7777_7777_7777, "a")]);
    fixture.flush();
    fixture.writer.end_maintenance();
    fixture.run(Operation::DropCorpus { uid: CORPUS });
    assert_eq!(fixture.store.all_segments().len(), 1);
    drop(fixture);
    let others: ShardSet = (100..110).map(ShardId).collect();
    for _ in 0..2 {
        let store = Store::open(directory.path(), others, small()).unwrap();
        assert!(store.all_segments().is_empty());
    }
    let segments = fs::read_dir(directory.path().join("segments"));
    assert_eq!(segments.unwrap().count(), 0);
}
