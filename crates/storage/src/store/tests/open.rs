//! Which directories are opened, and what becomes of the files in them.

use std::path::Path;

use simshard_topology::{ShardId, ShardSet};

use super::{Fixture, Store, insert, owned, small};

/// ST3.
#[test]
fn what_a_step_that_was_cut_off_left_is_deleted_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    fixture.flush();
    let contents = fixture.contents();
    drop(fixture);
    let folder = directory.path().join("segments");
    let file = |name: &str| folder.join(name);
    let leftovers = ["00-00000000000000ff.seg", "01-0000000000000009.new"];
    let others = ["notes.txt", "00-ff.seg"];
    for name in leftovers.iter().chain(&others) {
        std::fs::write(file(name), "x").unwrap();
    }
    let fixture = Fixture::open(directory.path());
    assert_eq!(fixture.contents(), contents);
    assert!(leftovers.iter().all(|name| !file(name).exists()));
    assert!(others.iter().all(|name| file(name).exists()));
}

/// ST3: nothing is deleted where something is missing.
#[test]
fn a_store_without_all_its_files_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    fixture.flush();
    drop(fixture);
    let refusal = |hidden: &Path, leftover: bool| {
        let aside = directory.path().join("aside");
        std::fs::rename(hidden, &aside).unwrap();
        let orphan = directory.path().join("segments/00-00000000000000ff.seg");
        std::fs::write(&orphan, "x").unwrap();
        let error = Store::open(directory.path(), owned(), small()).unwrap_err();
        assert_eq!(orphan.exists(), leftover);
        std::fs::rename(&aside, hidden).unwrap();
        error.to_string()
    };
    let segments = std::fs::read_dir(directory.path().join("segments")).unwrap();
    let segment = segments.map(|entry| entry.unwrap().path()).next().unwrap();
    let message = refusal(&segment, true);
    assert!(message.contains(segment.to_str().unwrap()), "{message}");
    let message = refusal(&directory.path().join("manifest"), true);
    assert!(message.contains("no manifest"), "{message}");
    let log = std::fs::read_dir(directory.path().join("log")).unwrap();
    let log = log.map(|entry| entry.unwrap().path()).next().unwrap();
    let message = refusal(&log, true);
    assert!(message.contains("no file has record"), "{message}");
    Fixture::open(directory.path());
}

#[test]
fn a_directory_serves_one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = Fixture::open(directory.path());
    let error = Store::open(directory.path(), owned(), small()).unwrap_err();
    let message = error.to_string();
    let process = format!("process {}", std::process::id());
    assert!(
        message.contains("in use") && message.contains(&process),
        "{message}"
    );
    drop(first);
    Fixture::open(directory.path());
}

#[test]
fn a_directory_with_documents_is_not_used_for_other_shards() {
    let directory = tempfile::tempdir().unwrap();
    let open = |shards: ShardSet| Store::open(directory.path(), shards, small());
    let more: ShardSet = (0..9).map(ShardId).collect();
    open(owned()).unwrap();
    // Nothing is in it yet.
    open(more).unwrap();
    let fixture = Fixture::start(open(owned()).unwrap());
    fixture.create();
    drop(fixture);
    for other in [0..3, 0..10] {
        let message = open(other.map(ShardId).collect()).unwrap_err().to_string();
        assert!(
            message.contains("holds documents of the shards 00-05"),
            "{message}"
        );
    }
    open(owned()).unwrap();
}
