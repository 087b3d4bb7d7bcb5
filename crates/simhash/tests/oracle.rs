//! The in-memory corpus against a linear scan: every layout with at most 10
//! blocks and distance 7, and single-bit blocks, over random, clustered and
//! skewed sets with 0 and 2^64-1 in them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod level;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;
use simshard_simhash::synthetic::{self, Data};
use simshard_simhash::{
    ActiveTables, Bounds, Corpus, Fingerprint, Hit, Index, Layout, LeadGroups, Match, Search,
    Tables,
};

/// The layouts of the promise: (m, k) for k up to 7 and m up to 10, and more.
fn layouts() -> Vec<(u32, u32)> {
    let mut layouts: Vec<(u32, u32)> = (1..=10)
        .flat_map(|blocks| (0..blocks.min(8)).map(move |distance| (blocks, distance)))
        .collect();
    layouts.extend([(16, 1), (32, 1), (64, 1), (9, 8), (10, 9), (64, 63)]);
    layouts
}

/// The slow, obvious answer.
fn linear_scan(set: &BTreeSet<Fingerprint>, query: Fingerprint, distance: u32) -> Vec<Match> {
    let mut matches: Vec<Match> = set
        .iter()
        .map(|&fingerprint| Match {
            distance: fingerprint.distance(query),
            fingerprint,
        })
        .filter(|found| found.distance <= distance)
        .collect();
    matches.sort();
    matches
}

/// The hits of a search, which are the same without bounds and within bounds that are wide.
fn collect(index: &Index, search: &Search, queries: &[Fingerprint], hits: &mut Vec<Hit>) {
    let start = hits.len();
    let flow = index.search(search, queries, |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    let mut within = Vec::new();
    let mut bounds = Bounds::new(usize::MAX);
    let flow = index.search_within(&mut bounds, search, queries, |hit| {
        within.push(hit);
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    within.sort_unstable();
    hits[start..].sort_unstable();
    assert_eq!(within, hits[start..]);
}

fn with_extremes(mut set: Vec<Fingerprint>) -> Vec<Fingerprint> {
    set.extend([0, u64::MAX, 1, u64::MAX - 1].map(Fingerprint));
    set
}

fn check(corpus: &Corpus, set: &BTreeSet<Fingerprint>, queries: &[Fingerprint], what: &str) {
    let distance = corpus.layout().distance();
    assert_eq!(corpus.len(), set.len(), "{what}");
    let found = corpus.find_all_bulk(queries);
    let first = corpus.find_first_bulk(queries);
    assert_eq!((found.len(), first.len()), (queries.len(), queries.len()));
    for (place, &query) in queries.iter().enumerate() {
        let expected = linear_scan(set, query, distance);
        assert_eq!(found.get(place), expected, "{what}: find_all {query}");
        assert_eq!(
            first[place],
            expected.first().copied(),
            "{what}: find_first {query}"
        );
    }
}

#[test]
fn every_layout_and_kind_of_set_equals_a_linear_scan() {
    level::take();
    for (blocks, distance) in layouts() {
        for data in Data::ALL {
            let seed = u64::from(blocks * 100 + distance);
            let what = format!("({blocks}, {distance}) {} seed {seed}", data.name());
            let fingerprints = with_extremes(data.fingerprints(600, seed));
            let set: BTreeSet<Fingerprint> = fingerprints.iter().copied().collect();
            let queries = with_extremes(synthetic::queries(&fingerprints, 150, distance, seed));

            let mut corpus = Corpus::new(blocks, distance).unwrap();
            assert_eq!(corpus.insert_bulk(&fingerprints), set.len(), "{what}");
            check(&corpus, &set, &queries, &what);
        }
    }
}

#[test]
fn large_sets_equal_a_linear_scan() {
    level::take();
    for data in Data::ALL {
        let fingerprints = with_extremes(data.fingerprints(60_000, 5));
        let set: BTreeSet<Fingerprint> = fingerprints.iter().copied().collect();
        let queries = synthetic::queries(&fingerprints, 300, 3, 6);
        let mut corpus = Corpus::new(5, 3).unwrap();
        for chunk in fingerprints.chunks(7_001) {
            corpus.insert_bulk(chunk);
        }
        check(&corpus, &set, &queries, data.name());
    }
}

/// T5 through the engine, for the layouts of the promise with up to 8 blocks.
#[test]
fn any_lead_groups_find_every_match_below_their_number() {
    level::take();
    for (blocks, distance) in layouts() {
        if blocks > 8 {
            continue;
        }
        let tables = std::sync::Arc::new(Tables::new(Layout::new(blocks, distance).unwrap()));
        let fingerprints = with_extremes(Data::Clustered.fingerprints(120, 3));
        let set: BTreeSet<Fingerprint> = fingerprints.iter().copied().collect();
        let queries = synthetic::queries(&fingerprints, 40, distance, 4);
        let mut index = Index::new(tables.clone());
        index.insert_new(set.iter().copied().collect());
        for groups in 1..1 << (distance + 1) {
            let groups = LeadGroups(groups);
            let max_distance = groups.guaranteed_distance().unwrap();
            let search = Search {
                active: ActiveTables::of_lead_groups(&tables, groups),
                max_distance,
            };
            let mut hits: Vec<Hit> = Vec::new();
            collect(&index, &search, &queries, &mut hits);
            hits.sort();
            let mut expected = Vec::new();
            for (query, &wanted) in (0..).zip(&queries) {
                for found in linear_scan(&set, wanted, max_distance) {
                    let Match {
                        distance,
                        fingerprint,
                    } = found;
                    expected.push(Hit {
                        query,
                        distance,
                        fingerprint,
                    });
                }
            }
            assert_eq!(hits, expected, "({blocks}, {distance}) groups {groups}");
        }
    }
}

/// X5 and X6: the shards of a corpus together report each match once.
#[test]
fn shards_together_report_each_match_once() {
    level::take();
    for (blocks, distance) in [
        (5, 3),
        (6, 3),
        (4, 3),
        (8, 7),
        (10, 2),
        (16, 1),
        (9, 8),
        (64, 63),
    ] {
        let tables = std::sync::Arc::new(Tables::new(Layout::new(blocks, distance).unwrap()));
        let fingerprints = with_extremes(Data::Skewed.fingerprints(400, 9));
        let set: BTreeSet<Fingerprint> = fingerprints.iter().copied().collect();
        let queries = with_extremes(synthetic::queries(&fingerprints, 60, distance, 4));
        let mut shards: Vec<Index> = (0..=255)
            .map(|shard| Index::of_shard(tables.clone(), shard))
            .collect();
        for &fingerprint in &set {
            let mut own: Vec<u8> = tables.document_shards(fingerprint).collect();
            own.sort_unstable();
            own.dedup();
            for shard in own {
                shards[usize::from(shard)].insert_new(vec![fingerprint]);
                assert!(shards[usize::from(shard)].contains(fingerprint));
            }
        }
        let search = Search {
            active: ActiveTables::All,
            max_distance: distance,
        };
        let mut hits: Vec<Hit> = Vec::new();
        for shard in &shards {
            collect(shard, &search, &queries, &mut hits);
        }
        hits.sort();
        let expected: usize = queries
            .iter()
            .map(|&q| linear_scan(&set, q, distance).len())
            .sum();
        assert_eq!(hits.len(), expected, "({blocks}, {distance})");
        assert!(
            hits.is_sorted_by(|a, b| a < b),
            "({blocks}, {distance}) repeats a match"
        );
    }
}

#[test]
fn bounds_hold_over_all_searches_together() {
    level::take();
    let tables = std::sync::Arc::new(Tables::new(Layout::new(5, 3).unwrap()));
    let mut index = Index::new(tables);
    // One bucket of the table that leads with the first blocks.
    index.insert_new((0..10_000).map(Fingerprint).collect());
    let search = Search {
        active: ActiveTables::All,
        max_distance: 0,
    };
    let breaks_after = |comparisons| {
        let mut bounds = Bounds::new(comparisons);
        let mut searches = 0;
        while searches < 20 {
            let flow = index.search_within(&mut bounds, &search, &[Fingerprint(0)], |_| {
                ControlFlow::Continue(())
            });
            if flow.is_break() {
                break;
            }
            searches += 1;
        }
        searches
    };
    assert_eq!(breaks_after(9_999), 0);
    let once = breaks_after(100_000);
    assert!((1..20).contains(&once), "{once}");
    assert!(breaks_after(200_000) >= 2 * once);
}

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u64>),
    Remove(Vec<u64>),
    Find(Vec<u64>),
}

/// Values that collide and lie near each other often.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..4_u64, 0..64_u32, 0..64_u32).prop_map(|(base, a, b)| {
            base.wrapping_mul(0x5555_5555_5555_5555) ^ 1 << a ^ 1 << b
        }),
        Just(0),
        Just(u64::MAX),
        any::<u64>(),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let values = || prop::collection::vec(value(), 0..400);
    prop_oneof![
        4 => values().prop_map(Op::Insert),
        2 => values().prop_map(Op::Remove),
        1 => prop::collection::vec(value(), 1..20).prop_map(Op::Find),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_order_of_operations_behaves_as_a_set(
        ops in prop::collection::vec(op(), 1..30),
        (blocks, distance) in (1..=10_u32).prop_flat_map(|m| (Just(m), 0..m.min(8))),
    ) {
        level::take();
        let mut corpus = Corpus::new(blocks, distance).unwrap();
        let mut set: BTreeSet<Fingerprint> = BTreeSet::new();
        for op in ops {
            match op {
                Op::Insert(values) => {
                    let values: Vec<Fingerprint> = values.into_iter().map(Fingerprint).collect();
                    let before = set.len();
                    set.extend(&values);
                    prop_assert_eq!(corpus.insert_bulk(&values), set.len() - before);
                }
                Op::Remove(values) => {
                    let values: Vec<Fingerprint> = values.into_iter().map(Fingerprint).collect();
                    let before = set.len();
                    set.retain(|fingerprint| !values.contains(fingerprint));
                    prop_assert_eq!(corpus.remove_bulk(&values), before - set.len());
                }
                Op::Find(values) => {
                    let values: Vec<Fingerprint> = values.into_iter().map(Fingerprint).collect();
                    check(&corpus, &set, &values, "ops");
                }
            }
        }
        let members: BTreeSet<Fingerprint> = corpus.iter().collect();
        prop_assert_eq!(members, set);
    }
}

#[test]
fn single_forms_agree_with_bulk_forms() {
    level::take();
    let mut corpus = Corpus::new(5, 3).unwrap();
    assert!(corpus.insert(Fingerprint(0)));
    assert!(!corpus.insert(Fingerprint(0)));
    assert!(corpus.insert(Fingerprint(0b111)));
    assert!(corpus.contains(Fingerprint(0)));
    let found = corpus.find_all(Fingerprint(0b11));
    assert_eq!(found.iter().map(|m| m.distance).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(
        corpus.find_first(Fingerprint(0b11)).unwrap().fingerprint,
        Fingerprint(0b111)
    );
    assert!(corpus.remove(Fingerprint(0b111)));
    assert!(!corpus.remove(Fingerprint(0b111)));
    assert_eq!(corpus.find_first(Fingerprint(u64::MAX)), None);
}

/// Removals wait until there are enough of them; then they leave the large runs
/// and the small mutable one alike, and what comes back is found again.
#[test]
fn removed_fingerprints_leave_every_run() {
    level::take();
    let fingerprints = Data::Clustered.fingerprints(20_000, 31);
    let (large, small) = fingerprints.split_at(19_500);
    let mut corpus = Corpus::new(5, 3).unwrap();
    corpus.insert_bulk(large);
    corpus.insert_bulk(small);
    let queries = synthetic::queries(&fingerprints, 500, 3, 32);
    let mut set: BTreeSet<Fingerprint> = fingerprints.iter().copied().collect();
    for gone in [&fingerprints[..100], small, &fingerprints[..9_000]] {
        corpus.remove_bulk(gone);
        for fingerprint in gone {
            set.remove(fingerprint);
        }
        check(&corpus, &set, &queries, "after removing");
    }
    corpus.insert_bulk(small);
    set.extend(small);
    check(&corpus, &set, &queries, "after inserting again");
    corpus.remove_bulk(&fingerprints);
    assert!(corpus.is_empty() && corpus.iter().next().is_none());
    assert!(corpus.memory() < 100_000, "what was removed is kept");
}

/// A run of one value, at either end, and queries for the other end.
#[test]
fn the_last_fingerprint_left_is_found_and_no_other() {
    level::take();
    for last in [0, 1, u64::MAX - 1, u64::MAX] {
        let last = Fingerprint(last);
        let others = Data::Random.fingerprints(3_000, 51);
        let mut corpus = Corpus::new(5, 3).unwrap();
        corpus.insert_bulk(&[&others[..], &[last]].concat());
        corpus.remove_bulk(&others);
        let set = BTreeSet::from([last]);
        let queries = with_extremes(synthetic::queries(&[last], 50, 3, 52));
        check(&corpus, &set, &queries, "one left");
        assert!(corpus.contains(last));
        assert!(!corpus.contains(Fingerprint(!last.0)));
    }
}

#[test]
fn lower_levels_pass_these_tests() {
    level::run_lower("lower_levels_pass_these_tests");
}
