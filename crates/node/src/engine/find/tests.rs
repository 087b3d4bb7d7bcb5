//! Searches at once against those on other threads.

use std::collections::HashSet;
use std::num::NonZeroU32;

use simshard_cluster::random_corpus_uid;
use simshard_simhash::Layout;
use simshard_simhash::synthetic::{self, Data};
use simshard_topology::MapDigest;
use tokio_util::sync::CancellationToken;

use super::*;

fn all() -> ShardSet {
    ShardId::all().collect()
}

/// A corpus of bare fingerprints, all shards of it.
fn corpus(fingerprints: &[Fingerprint]) -> Arc<NodeCorpus> {
    corpus_with(5, 3, fingerprints)
}

fn corpus_with(blocks: u32, distance: u32, fingerprints: &[Fingerprint]) -> Arc<NodeCorpus> {
    let layout = Layout::new(blocks, distance).unwrap();
    let corpus = NodeCorpus::new(layout, all());
    let parts = group_by_shard(all(), fingerprints, |fingerprint| {
        corpus.tables_for_change().document_shards(fingerprint)
    });
    for (id, places) in parts {
        let document = |&place: &u32| (fingerprints[place as usize], "");
        let documents: Vec<_> = places.iter().map(document).collect();
        let mut shard = corpus.write(id).unwrap();
        shard.insert(documents, &HashSet::new());
    }
    Arc::new(corpus)
}

fn find(corpus: &Arc<NodeCorpus>, fingerprints: &[Fingerprint], limit: u32) -> Find {
    Find {
        store: Arc::new(Store::in_memory(all())),
        corpus: Arc::clone(corpus),
        query: NearQuery {
            target: Target {
                corpus: random_corpus_uid(),
                blocks: corpus.layout().blocks(),
                distance: corpus.layout().distance(),
                planned_by: crate::target::PlannedBy::Map(MapDigest(0)),
            },
            shards: all(),
            active: LeadGroups::all(corpus.layout()),
            spec: SearchSpec {
                max_distance: Some(3),
                limit: NonZeroU32::new(limit),
                ..SearchSpec::default()
            },
            fingerprints: fingerprints.to_vec(),
        },
        room: Room::new(1 << 20),
    }
}

/// What is found by other threads.
fn elsewhere(find: &Find) -> Nearest {
    find.nearest(&cancellation()).unwrap()
}

fn cancellation() -> Cancellation {
    Cancellation {
        abandoned: CancellationToken::new(),
        deadline: None,
    }
}

/// `number` fingerprints within the distance of each other.
fn near_each_other(number: u64) -> Vec<Fingerprint> {
    (0..64_u64)
        .flat_map(|a| (0..64).map(move |b| 1 << a ^ 1 << b))
        .flat_map(|pair| [pair, pair ^ 1 << 40])
        .map(Fingerprint)
        .take(number as usize)
        .collect()
}

#[test]
fn a_quick_search_finds_what_others_find() {
    for seed in 0..8 {
        println!("seed {seed}");
        let stored = Data::Clustered.fingerprints(3000, seed);
        let corpus = corpus(&stored);
        let queries = synthetic::queries(&stored, QUICK_QUERIES - 1, 3, seed);
        for limit in [0, 1] {
            let find = find(&corpus, &queries, limit);
            let quick = find.nearest_at_once();
            assert!(quick.as_ref().is_some_and(|(hits, _)| !hits.is_empty()));
            assert_eq!(quick, Some(elsewhere(&find)));
        }
    }
}

/// N3.
#[test]
fn what_may_take_long_is_left_to_others() {
    let stored = near_each_other(2 * QUICK_REACH.hits as u64);
    let corpus = corpus(&stored);
    assert!(find(&corpus, &stored[..1], 0).nearest_at_once().is_none());
    let far = [Fingerprint(u64::MAX); QUICK_QUERIES];
    assert!(find(&corpus, &far, 0).nearest_at_once().is_none());
    assert!(find(&corpus, &far[1..], 0).nearest_at_once().is_some());
    // All in one bucket, and too far from the query for a hit.
    let crowd: Vec<_> = (0..1 << 18).map(Fingerprint).collect();
    let one = [Fingerprint(0x3f << 32)];
    let in_time = |number: usize| {
        let corpus = corpus_with(5, 3, &crowd[..number]);
        find(&corpus, &one, 0).nearest_at_once().is_some()
    };
    assert!(in_time(1 << 14) && !in_time(1 << 18));
}

/// N3: with many tables, to know the shards takes long by itself.
#[test]
fn with_many_tables_few_queries_are_many() {
    let queries = synthetic::queries(&[Fingerprint(0)], QUICK_QUERIES - 1, 3, 1);
    for (blocks, distance, most) in [
        (5, 3, QUICK_QUERIES - 1),
        (10, 5, 16),
        (14, 4, 4),
        (14, 10, 4),
    ] {
        let corpus = corpus_with(blocks, distance, &queries);
        let quick = |number| {
            let find = find(&corpus, &queries[..number], 0);
            find.nearest_at_once().is_some()
        };
        assert!(quick(1), "({blocks}, {distance})");
        assert!(
            !(most + 1..QUICK_QUERIES).any(quick),
            "({blocks}, {distance})"
        );
    }
}

/// N4: or few queries could hold up all others.
#[test]
fn a_search_that_turns_out_large_is_no_small_one() {
    let small = |find: &Find| find.small(None, &cancellation()).unwrap().is_some();
    let stored = near_each_other(2 * SMALL_REACH.hits as u64 / 64);
    let corpus = corpus(&stored);
    assert!(small(&find(&corpus, &stored[..1], 0)));
    assert!(!small(&find(&corpus, &[stored[0]; 64], 0)));
    // All in one bucket, and too far from the query for a hit.
    let crowd: Vec<_> = (0..1 << 18).map(Fingerprint).collect();
    let corpus = corpus_with(5, 3, &crowd);
    let far = [Fingerprint(0x3f << 32); 64];
    assert!(small(&find(&corpus, &far[..1], 0)));
    assert!(!small(&find(&corpus, &far, 0)));
    assert!(find(&corpus, &[Fingerprint(0); 1638], 0).may_be_small());
    assert!(!find(&corpus, &[Fingerprint(0); 1639], 0).may_be_small());
}

/// N4: ids take longer than hits.
#[test]
fn a_search_with_many_ids_is_no_small_one() {
    let stored = near_each_other(SMALL_LOOK_UPS as u64);
    let corpus = corpus(&stored);
    let is_small = |queries: &[Fingerprint]| {
        let small = find(&corpus, queries, 0).small(None, &cancellation());
        small.unwrap().is_some()
    };
    assert!(is_small(&[stored[0]; 2]));
    let mut shard = corpus.write(ShardId(0)).unwrap();
    shard.insert([(Fingerprint(0), "an id")], &HashSet::new());
    corpus.note_ids(&shard);
    drop(shard);
    assert!(is_small(&[stored[0]; 1]));
    assert!(!is_small(&[stored[0]; 2]));
}

/// N6.
#[test]
fn searches_of_an_empty_corpus_make_no_tables() {
    assert!(size_of::<NodeCorpus>() < 1 << 10);
    for (blocks, distance) in [(5, 3), (14, 4), (14, 10), (64, 1)] {
        let corpus = corpus_with(blocks, distance, &[]);
        for number in [1, QUICK_QUERIES - 1, QUICK_QUERIES, 1000] {
            let queries: Vec<_> = (0..number as u64).map(Fingerprint).collect();
            let find = find(&corpus, &queries, 0);
            let nothing = (Vec::new(), vec![false; number]);
            let quick = (number < QUICK_QUERIES).then(|| nothing.clone());
            assert_eq!(find.nearest_at_once(), quick);
            assert_eq!(elsewhere(&find), nothing);
        }
        assert_eq!(corpus.counts().count(), ShardId::COUNT);
        assert!(corpus.tables().is_none(), "({blocks}, {distance})");
    }
}

#[test]
fn ids_are_looked_up_for_as_long_as_a_caller_waits() {
    let corpus = corpus(&[]);
    let mut shard = corpus.write(ShardId(0)).unwrap();
    shard.insert([(Fingerprint(0), "an id")], &HashSet::new());
    corpus.note_ids(&shard);
    drop(shard);
    let find = find(&corpus, &[Fingerprint(0)], 0);
    let nearest = elsewhere(&find);
    assert_eq!(nearest.0.len(), 1);
    assert!(find.matches(nearest.clone(), &cancellation()).is_ok());
    let cancelled = cancellation();
    cancelled.abandoned.cancel();
    let given_up = find.matches(nearest, &cancelled);
    assert!(
        matches!(given_up, Err(NodeError::Abandoned)),
        "{given_up:?}"
    );
}

/// N3.
#[test]
fn a_shard_that_is_being_changed_is_not_waited_for() {
    let corpus = corpus(&[Fingerprint(0)]);
    let find = find(&corpus, &[Fingerprint(1)], 0);
    let shard = corpus.write(ShardId(0)).unwrap();
    assert!(find.nearest_at_once().is_none());
    drop(shard);
    assert_eq!(find.nearest_at_once(), Some(elsewhere(&find)));
}

/// N7.
#[test]
fn an_absent_shard_is_refused_by_all_that_reads_or_changes_it() {
    let layout = Layout::new(5, 3).unwrap();
    let absent = ShardId(7);
    let owned: ShardSet = ShardId::all().filter(|id| *id != absent).collect();
    let corpus = Arc::new(NodeCorpus::new(layout, owned));
    let query = Fingerprint(u64::from(absent.0) << 56);
    let refused =
        |error: &NodeError| matches!(error, NodeError::NotOwner(shards) if shards.contains(absent));
    assert!(corpus.read(absent).is_err() && corpus.write(absent).is_err());
    assert!(corpus.read(ShardId(8)).unwrap().is_none());
    corpus.tables_for_change();
    let find = find(&corpus, &[query], 0);
    assert!(find.nearest_at_once().is_none());
    assert!(refused(&find.nearest(&cancellation()).unwrap_err()));
}
