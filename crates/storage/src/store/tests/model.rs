//! A store against a map: changes, flushes, compactions, restarts, and a copy of a directory at any moment.

use std::path::Path;

use super::{Fixture, Model, Store, owned, random_change};
use crate::element::Operation;

/// ST1, ST2, CO1: whatever is flushed and compacted, and however often it starts anew.
#[test]
fn a_store_equals_a_map_through_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    let mut version = 10;
    for round in 0..6 {
        let fixture = Fixture::open(directory.path());
        if round == 0 {
            fixture.create();
        }
        assert_eq!(fixture.contents(), model.contents(), "round {round}");
        for _ in 0..400 {
            version += 1;
            let change = random_change(&mut random, version);
            let expected = model.take(&change);
            let (changed, _) = fixture.run(Operation::Change(change));
            assert_eq!(changed, expected, "round {round}, version {version}");
        }
        assert_eq!(fixture.contents(), model.contents(), "round {round}");
        fixture.writer.close();
    }
    let segments = std::fs::read_dir(directory.path().join("segments"));
    assert!(segments.unwrap().count() > 0, "nothing was flushed");
}

/// ST1: a copy of the directory is what a process leaves that is killed between two steps.
#[test]
fn a_directory_without_a_clean_end_has_all_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    let mut random = fastrand::Rng::with_seed(3);
    let mut model = Model::default();
    for version in 10..500 {
        let change = random_change(&mut random, version);
        model.take(&change);
        fixture.run(Operation::Change(change));
    }
    fixture.writer.end_maintenance();
    let copy = tempfile::tempdir().unwrap();
    copy_folder(directory.path(), copy.path());
    let restored = Fixture::open(copy.path());
    assert_eq!(restored.contents(), model.contents());
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_store_in_memory_takes_the_same_changes() {
    let fixture = Fixture::start(Store::in_memory(owned()));
    fixture.create();
    let mut random = fastrand::Rng::with_seed(5);
    let mut model = Model::default();
    for version in 10..300 {
        let change = random_change(&mut random, version);
        model.take(&change);
        fixture.run(Operation::Change(change));
    }
    assert_eq!(fixture.contents(), model.contents());
}
