//! What becomes of corpora that were dropped: their segments, and the memory of them.

use std::time::{Duration, Instant};

use super::upkeep::{no_space_for_next_segment, segment_files};
use super::{CORPUS, Fixture, Store, change, insert, layout, remove};
use crate::element::{Change, ChangeKind, Operation};
use crate::inspect::inspect;
use crate::shortage::Shortage;
use crate::store::catalog::RECENT_DROPS;
use simshard_simhash::Fingerprint;
use simshard_topology::{CorpusUid, ShardId};

const OTHER: CorpusUid = CorpusUid([2; 16]);

const PATIENCE: Duration = Duration::from_secs(60);

/// Puts this many documents of a corpus into shard 0, and no other shard.
fn insert_into(fixture: &Fixture, corpus: CorpusUid, version: u64, count: u64) {
    fixture.run(Operation::CreateCorpus {
        uid: corpus,
        layout: layout(),
    });
    let value = 0x0077_7777_7777_0000 | u64::from(corpus.0[0]) << 8;
    let documents: Vec<(u64, &str)> = (0..count).map(|number| (value + number, "a")).collect();
    let change = change(ChangeKind::Insert, version, &documents);
    fixture.run(Operation::Change(Change { corpus, ..change }));
}

/// Documents of a corpus in shard 0.
fn count(store: &Store, corpus: CorpusUid) -> u64 {
    let mut count = 0;
    let visit = |_: Fingerprint, _: &str| count += 1;
    store.scan(ShardId(0), corpus, visit).unwrap();
    count
}

fn is_in_segments(store: &Store, corpus: CorpusUid) -> bool {
    let segments = store.all_segments();
    segments
        .iter()
        .any(|segment| segment.corpora().any(|held| held == corpus))
}

fn wait_until_gone(store: &Store, corpus: CorpusUid) {
    let started = Instant::now();
    while is_in_segments(store, corpus) {
        assert!(
            started.elapsed() < PATIENCE,
            "the segments still hold the corpus"
        );
        std::thread::yield_now();
    }
}

#[test]
fn segments_of_a_dropped_corpus_go_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    insert_into(&fixture, CORPUS, 1, 9);
    fixture.flush();
    insert_into(&fixture, OTHER, 1, 9);
    fixture.flush();
    assert_eq!(segment_files(&fixture).len(), 2);
    fixture.run(Operation::DropCorpus { uid: CORPUS });
    wait_until_gone(&fixture.store, CORPUS);
    assert_eq!(segment_files(&fixture).len(), 1);
    drop(fixture);
    let fixture = Fixture::open(directory.path());
    assert_eq!(
        (count(&fixture.store, CORPUS), count(&fixture.store, OTHER)),
        (0, 9)
    );
}

/// CO3.
#[test]
fn a_segment_is_written_anew_without_a_dropped_corpus_unless_that_has_little_of_it() {
    for (dropped, kept, stays) in [(9, 9, false), (3, 9, false), (2, 9, true)] {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Fixture::open(directory.path());
        insert_into(&fixture, CORPUS, 1, dropped);
        insert_into(&fixture, OTHER, 1, kept);
        fixture.flush();
        fixture.run(Operation::DropCorpus { uid: CORPUS });
        if stays {
            fixture.upkeep(&|_| Ok(())).step().unwrap();
        } else {
            wait_until_gone(&fixture.store, CORPUS);
        }
        assert_eq!(is_in_segments(&fixture.store, CORPUS), stays);
        drop(fixture);
        let fixture = Fixture::open(directory.path());
        assert_eq!(
            (count(&fixture.store, CORPUS), count(&fixture.store, OTHER)),
            (0, kept)
        );
    }
}

/// A start removes the elements of corpora that were dropped before it, or whose segments were still in use.
#[test]
fn a_start_lets_go_of_what_was_dropped_before() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    insert_into(&fixture, CORPUS, 1, 9);
    fixture.flush();
    fixture.writer.end_maintenance();
    fixture.run(Operation::DropCorpus { uid: CORPUS });
    assert!(is_in_segments(&fixture.store, CORPUS));
    drop(fixture);
    wait_until_gone(&Fixture::open(directory.path()).store, CORPUS);
}

/// ST7: and changes that were committed after the drop do no harm.
#[test]
fn a_dropped_corpus_is_forgotten_once_nothing_names_it_and_many_others_were_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    insert_into(&fixture, CORPUS, 1, 2);
    insert_into(&fixture, OTHER, 1, 9);
    fixture.flush();
    fixture.run(Operation::DropCorpus { uid: CORPUS });
    fixture.flush();
    let is_known = |fixture: &Fixture| fixture.store.catalog.read().dropped.contains_key(&CORPUS);
    let drop_others = |fixture: &Fixture| {
        for number in 0..RECENT_DROPS as u128 {
            let uid = CorpusUid((1_000 + number).to_be_bytes());
            fixture.run(Operation::DropCorpus { uid });
        }
        fixture.flush();
    };
    drop_others(&fixture);
    assert!(is_known(&fixture), "a segment has elements of it");
    insert_into(&fixture, OTHER, 2, 30);
    for version in 3..6 {
        insert_into(&fixture, OTHER, version, 30);
        remove(&fixture, version, &[(1, "")]);
        fixture.flush();
    }
    fixture.flush();
    assert!(!is_in_segments(&fixture.store, CORPUS), "they were merged");
    drop_others(&fixture);
    assert!(!is_known(&fixture));
    insert(&fixture, 6, &[(1, "a change that came late")]);
    drop(fixture);
    let dropped = inspect(directory.path()).unwrap().dropped;
    assert!(!dropped.contains(&CORPUS));
    assert_eq!(dropped.len(), RECENT_DROPS);
    let fixture = Fixture::open(directory.path());
    assert_eq!(
        (count(&fixture.store, CORPUS), count(&fixture.store, OTHER)),
        (0, 30)
    );
}

/// ST7: the log that is kept says that the corpus was created, in vain, and no longer that it was dropped.
#[test]
fn a_dropped_corpus_is_not_forgotten_while_the_log_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.run(Operation::DropCorpus { uid: CORPUS });
    // Another batch, which begins once the one before it is applied.
    insert_into(&fixture, OTHER, 1, 1);
    let upkeep = fixture.upkeep(&|_| Ok(()));
    no_space_for_next_segment(&fixture);
    let error = upkeep.flush().unwrap_err();
    assert_eq!(error.shortage(), Some(Shortage::Space));
    fixture.create();
    assert!(!fixture.store.holds(CORPUS));
    upkeep.flush().unwrap();
    drop(upkeep);
    drop(fixture);
    let fixture = Fixture::open(directory.path());
    assert!(!fixture.store.holds(CORPUS));
    fixture.flush();
    // Nothing names it any more. A creation that comes late does not bring it back, in this life or in the next.
    fixture.create();
    assert!(!fixture.store.holds(CORPUS));
    drop(fixture);
    assert!(!Fixture::open(directory.path()).store.holds(CORPUS));
}

/// A corpus that was dropped is gone for good, from memory and from segments, and others stay.
#[test]
fn a_dropped_corpus_stays_gone() {
    let directory = tempfile::tempdir().unwrap();
    let documents = [(1, "a"), (2, "b")];
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &documents);
    fixture.flush();
    insert(&fixture, 2, &[(3, "c")]);
    fixture.run(Operation::DropCorpus { uid: CORPUS });
    fixture.create();
    assert_eq!(fixture.store.corpora(), []);
    fixture.flush();
    drop(fixture);
    let fixture = Fixture::open(directory.path());
    assert_eq!(fixture.store.corpora(), []);
    assert!(fixture.contents().is_empty());
}
