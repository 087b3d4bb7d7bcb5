//! Searches at once against those on other threads.

use std::collections::HashSet;

use simshard_cluster::random_corpus_uid;
use simshard_simhash::Layout;
use simshard_simhash::synthetic::{self, Data};
use tokio_util::sync::CancellationToken;

use super::*;

fn all() -> ShardSet {
    ShardId::all().collect()
}

/// A corpus of bare fingerprints, all shards of it.
fn corpus(fingerprints: &[Fingerprint]) -> Arc<NodeCorpus> {
    let corpus = NodeCorpus::new(Layout::new(5, 3).unwrap(), all());
    let parts = group_by_shard(all(), fingerprints, |fingerprint| {
        corpus.tables.document_shards(fingerprint)
    });
    for (id, places) in parts {
        let document = |&place: &u32| (fingerprints[place as usize], "");
        let documents: Vec<_> = places.iter().map(document).collect();
        let mut shard = corpus.write(id).unwrap();
        shard.came(documents, &HashSet::new());
    }
    Arc::new(corpus)
}

fn find(corpus: &Arc<NodeCorpus>, fingerprints: &[Fingerprint], limit: u32) -> Find {
    Find {
        store: Arc::new(Store::in_memory(all())),
        corpus: Arc::clone(corpus),
        query: NearQuery {
            corpus: random_corpus_uid(),
            shards: all(),
            active: LeadGroups::all(corpus.tables.layout()),
            max_distance: 3,
            limit,
            max_ids: 0,
            fingerprints: fingerprints.to_vec(),
        },
        room: Room::new(1 << 20),
    }
}

/// What is found by other threads.
fn elsewhere(find: &Find) -> Nearest {
    let wanted = Wanted {
        abandoned: CancellationToken::new(),
        deadline: None,
    };
    find.nearest(&wanted).unwrap()
}

/// So many fingerprints within the distance of each other.
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
        let queries = synthetic::queries(&stored, FEW - 1, 3, seed);
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
    let stored = near_each_other(2 * QUICK as u64);
    let corpus = corpus(&stored);
    assert!(find(&corpus, &stored[..1], 0).nearest_at_once().is_none());
    let far = [Fingerprint(u64::MAX); FEW];
    assert!(find(&corpus, &far, 0).nearest_at_once().is_none());
    assert!(find(&corpus, &far[1..], 0).nearest_at_once().is_some());
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
