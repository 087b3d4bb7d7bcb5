//! What memory and log take at most.

use std::sync::atomic::Ordering;

use super::{Fixture, Options, Store, fingerprint, insert, owned, small};

/// ST4.
#[test]
fn memtables_stay_within_their_limit() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    for version in 1..400 {
        let documents: Vec<(u64, &str)> = (0..20)
            .map(|n| (fingerprint(version * 20 + n), "an id"))
            .collect();
        insert(&fixture, version, &documents);
        let bytes = fixture.store.memory.load(Ordering::Relaxed);
        // What one change adds comes on top.
        assert!(bytes < 2 * small().memtable_bytes + 10_000, "{bytes}");
    }
}

/// ST5.
#[test]
fn the_log_stays_short_however_often_the_same_documents_change() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.log.file_bytes = 4096;
    let fixture = Fixture::start(Store::open(directory.path(), owned(), options).unwrap());
    fixture.create();
    let files = || {
        std::fs::read_dir(directory.path().join("log"))
            .unwrap()
            .count()
    };
    for version in 1..4000 {
        insert(
            &fixture,
            version,
            &[(1, "the same document again and again")],
        );
    }
    fixture.writer.end_maintenance();
    assert!(files() < 40, "{} files", files());
}

/// ST5.
#[test]
fn the_log_stays_short_however_often_a_process_restarts_before_it_is_long() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.log.file_bytes = 4096;
    let open = || Store::open(directory.path(), owned(), options).unwrap();
    for round in 0..20 {
        let fixture = Fixture::start(open());
        if round == 0 {
            fixture.create();
        }
        for version in 1..50 {
            let version = 50 * round + version;
            insert(&fixture, version, &[(1, "the same document")]);
        }
        while fixture.store.maintenance.needs_flush() {
            std::thread::yield_now();
        }
        fixture.writer.close();
    }
    let files = std::fs::read_dir(directory.path().join("log"));
    let files = files.unwrap().count();
    assert!(files < 12, "{files} files");
}
