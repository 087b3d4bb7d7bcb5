//! The index at every level against a linear scan.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::*;
use crate::layout::Layout;
use crate::lead_groups::LeadGroups;
use crate::synthetic::{self, Data};

fn hits(index: &Index, search: &Search, queries: &[Fingerprint]) -> Vec<Hit> {
    let mut hits = Vec::new();
    let flow = index.search(search, queries, |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    hits.sort_unstable();
    hits
}

fn linear_scan(set: &[Fingerprint], queries: &[Fingerprint], most: u32) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (query, of) in (0..).zip(queries) {
        let hit = |fingerprint: &Fingerprint| Hit {
            query,
            distance: of.distance(*fingerprint),
            fingerprint: *fingerprint,
        };
        hits.extend(set.iter().map(hit).filter(|hit| hit.distance <= most));
    }
    hits.sort_unstable();
    hits
}

fn distinct(data: Data, count: usize, seed: u64) -> Vec<Fingerprint> {
    let mut set = data.fingerprints(count, seed);
    set.extend([0, 1, u64::MAX - 1, u64::MAX].map(Fingerprint));
    let set: BTreeSet<Fingerprint> = set.into_iter().collect();
    set.into_iter().collect()
}

#[test]
fn an_index_of_few_fingerprints_takes_no_memory_for_its_tables() {
    let tables = Arc::new(Tables::new(Layout::new(14, 4).unwrap()));
    let search = Search {
        active: ActiveTables::All,
        max_distance: 4,
    };
    let few = Data::Random.fingerprints(100, 1);
    let shards = [Index::new(Arc::clone(&tables)), Index::of_shard(tables, 0)];
    for mut index in shards {
        for queries in [&few[..1], &few] {
            assert_eq!(hits(&index, &search, queries), []);
        }
        assert!(!index.contains(few[0]) && index.iter().next().is_none());
        assert_eq!(index.memory(), 0);
        index.insert_new(few.clone());
        index.remove_present(&few[..50]);
        assert!(index.memory() <= 100 * size_of::<Fingerprint>());
    }
}

/// X5 and X6: the runs of an index, and what is recent, few queries and many.
#[test]
fn every_level_equals_a_linear_scan() {
    for (blocks, distance) in [
        (5, 3),
        (4, 3),
        (6, 3),
        (1, 0),
        (3, 0),
        (10, 3),
        (9, 8),
        (64, 63),
    ] {
        let tables = Arc::new(Tables::new(Layout::new(blocks, distance).unwrap()));
        for (data, level) in Data::ALL
            .into_iter()
            .flat_map(|data| Level::available().map(move |level| (data, level)))
        {
            let set = distinct(data, 3_000, 11);
            let queries = synthetic::queries(&set, 100, distance, 12);
            let what = format!("({blocks}, {distance}) {} {level:?}", data.name());
            let mut index = Index::with(tables.clone(), None, level);
            let (now, later) = set.split_at(set.len() - 200);
            index.insert_new(now.to_vec());
            assert!(index.recent.is_empty(), "{what}");
            index.insert_new(later.to_vec());
            assert_eq!(index.recent.len(), later.len(), "{what}");
            let search = Search {
                active: ActiveTables::All,
                max_distance: distance,
            };
            let expected = linear_scan(&set, &queries, distance);
            assert_eq!(hits(&index, &search, &queries), expected, "{what}");
            let few = &queries[..5];
            assert_eq!(
                hits(&index, &search, few),
                linear_scan(&set, few, distance),
                "{what}"
            );
            let present = index.contains_each(&set);
            assert!(present.iter().all(|&present| present), "{what}");
            assert_eq!(index.iter().collect::<BTreeSet<_>>().len(), set.len());
        }
    }
}

/// X5 and X6 where many queries share large buckets: they are put in order.
#[test]
fn queries_that_share_large_buckets_find_what_a_linear_scan_does() {
    for (blocks, distance) in [(7, 6), (10, 9), (20, 18)] {
        let tables = Arc::new(Tables::new(Layout::new(blocks, distance).unwrap()));
        for data in Data::ALL {
            let set = distinct(data, 40_000, 51);
            let queries = synthetic::queries(&set, 1_500, distance, 52);
            let search = Search {
                active: ActiveTables::All,
                max_distance: distance,
            };
            let expected = linear_scan(&set, &queries, distance);
            for level in Level::available() {
                let mut index = Index::with(tables.clone(), None, level);
                index.insert_new(set.clone());
                let what = format!("({blocks}, {distance}) {} {level:?}", data.name());
                assert!(index.runs(0)[0].wants_order(queries.len()), "{what}");
                assert!(!index.runs(0)[0].wants_order(15), "{what}");
                let many = index.runs(0)[0].is_shared_by_many(queries.len());
                assert_eq!(many, blocks != 7, "{what}");
                assert_eq!(hits(&index, &search, &queries), expected, "{what}");
            }
        }
    }
}

/// X6 where many queries share large buckets of a shard.
#[test]
fn queries_that_share_large_buckets_of_a_shard_find_what_belongs_to_it() {
    let tables = Arc::new(Tables::new(Layout::new(7, 6).unwrap()));
    let set = distinct(Data::Random, 80_000, 61);
    let queries = synthetic::queries(&set, 400, 6, 62);
    let search = Search {
        active: ActiveTables::All,
        max_distance: 6,
    };
    let all = linear_scan(&set, &queries, 6);
    for shard in [0, 0x9f] {
        let mut index = Index::of_shard(tables.clone(), shard);
        let held = |f: &Fingerprint| tables.iter().any(|table| table.leading_byte(*f) == shard);
        index.insert_new(set.iter().copied().filter(held).collect());
        assert!(index.runs(0)[0].wants_order(queries.len()));
        let belongs = |hit: &&Hit| {
            let difference = queries[hit.query as usize].0 ^ hit.fingerprint.0;
            let mut shared = tables
                .iter()
                .filter(|table| table.shares_prefix(difference));
            shared.next().unwrap().leading_byte(hit.fingerprint) == shard
        };
        let expected: Vec<Hit> = all.iter().filter(belongs).copied().collect();
        assert_eq!(hits(&index, &search, &queries), expected, "{shard}");
    }
}

/// X6 at every level, for some of the lead groups too, whether in runs or recent.
#[test]
fn shards_together_report_each_match_once_at_every_level() {
    for (blocks, distance) in [(5, 3), (8, 3), (10, 2), (9, 8)] {
        let tables = Arc::new(Tables::new(Layout::new(blocks, distance).unwrap()));
        let set = distinct(Data::Skewed, 4_000, 21);
        let queries = synthetic::queries(&set, 40, distance, 22);
        let expected = linear_scan(&set, &queries, distance);
        for level in Level::available() {
            let mut all = Vec::new();
            let search = Search {
                active: ActiveTables::All,
                max_distance: distance,
            };
            for shard in 0..=255 {
                let mut index = Index::with(tables.clone(), Some(shard), level);
                let own =
                    |f: &Fingerprint| tables.iter().any(|table| table.leading_byte(*f) == shard);
                let own: Vec<Fingerprint> = set.iter().copied().filter(own).collect();
                let (runs, recent) = own.split_at(own.len() / 2);
                index.change_stores(runs, |store, values, _| store.insert(values));
                index.insert_new(recent.to_vec());
                index.len = own.len();
                assert!(own.iter().all(|&f| index.contains(f)));
                // Most of the queries are not in the set.
                let contained = index.contained(own.iter().chain(&queries).copied());
                assert_eq!(contained, own.iter().copied().collect());
                all.extend(hits(&index, &search, &queries));
            }
            all.sort_unstable();
            assert_eq!(all, expected, "({blocks}, {distance}) {level:?}");
        }
    }
}

/// T5 at every level.
#[test]
fn lead_groups_find_what_they_promise_at_every_level() {
    let tables = Arc::new(Tables::new(Layout::new(5, 3).unwrap()));
    let set = distinct(Data::Clustered, 3_000, 31);
    let queries = synthetic::queries(&set, 60, 3, 32);
    for level in Level::available() {
        let mut index = Index::with(tables.clone(), None, level);
        index.insert_new(set.clone());
        for groups in (1..16).map(LeadGroups) {
            let max_distance = groups.guaranteed_distance().unwrap();
            let search = Search {
                active: ActiveTables::of_lead_groups(&tables, groups),
                max_distance,
            };
            let expected = linear_scan(&set, &queries, max_distance);
            assert_eq!(
                hits(&index, &search, &queries),
                expected,
                "{groups:?} {level:?}"
            );
        }
    }
}

#[test]
fn a_search_ends_when_it_is_told_to() {
    let tables = Arc::new(Tables::new(Layout::new(5, 3).unwrap()));
    // More than are found at once, and all near: 16 bits of the last block.
    let set: Vec<Fingerprint> = (0..1 << 12).map(Fingerprint).collect();
    let mut index = Index::new(tables);
    index.insert_new(set.clone());
    let search = Search {
        active: ActiveTables::All,
        max_distance: 3,
    };
    for queries in [&set[..1], &set[..100]] {
        let mut calls = 0;
        let flow = index.search(&search, queries, |_| {
            calls += 1;
            if calls < 7 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        assert!(flow.is_break());
        assert_eq!(calls, 7);
    }
}

#[test]
fn recent_fingerprints_wait_in_proportion_to_the_tables_probed() {
    for (blocks, distance, all, of_shard) in [
        (1, 0, 256, 256),
        (5, 3, 640, 256),
        (6, 3, 1280, 320),
        (10, 3, 2048, 1920),
    ] {
        let tables = Arc::new(Tables::new(Layout::new(blocks, distance).unwrap()));
        for (mut index, most) in [
            (Index::new(tables.clone()), all),
            (Index::of_shard(tables.clone(), 0), of_shard),
        ] {
            for fingerprint in (0..most).map(Fingerprint) {
                index.insert_new(vec![fingerprint]);
            }
            assert_eq!(index.recent.len() as u64, most, "({blocks}, {distance})");
            index.insert_new(vec![Fingerprint(most)]);
            assert!(index.recent.is_empty(), "({blocks}, {distance})");
        }
    }
}

/// X5: what is recent, what waits to be taken out, and what goes at once.
#[test]
fn removals_reach_recent_and_stored_fingerprints_alike() {
    let tables = Arc::new(Tables::new(Layout::new(5, 3).unwrap()));
    let set = distinct(Data::Random, 4_000, 41);
    let mut index = Index::new(tables);
    let (stored, recent) = set.split_at(set.len() - 200);
    index.insert_new(stored.to_vec());
    index.insert_new(recent.to_vec());
    let waiting = [&stored[..100], &recent[..50]].concat();
    index.remove_present(&waiting);
    assert_eq!(index.removed.len(), waiting.len());
    assert!(index.contained(waiting.iter().copied()).is_empty());
    assert_eq!(index.contained(set.iter().copied()).len(), index.len());
    let at_once = [&stored[100..2_000], &recent[50..100]].concat();
    index.remove_present(&at_once);
    assert!(index.removed.is_empty() && index.recent.is_empty());
    let left = [&stored[2_000..], &recent[100..]].concat();
    assert_eq!(index.len(), left.len());
    assert_eq!(index.iter().collect::<BTreeSet<_>>().len(), left.len());
    assert!(left.iter().all(|&f| index.contains(f)));
    let gone = waiting.iter().chain(&at_once);
    assert!(gone.clone().all(|&f| !index.contains(f)));
    assert!(index.contained(gone.copied()).is_empty());
}

/// Stored, recent, and removed.
#[test]
fn the_entries_of_a_shard_are_those_with_its_leading_byte() {
    let tables = Arc::new(Tables::new(Layout::new(10, 7).unwrap()));
    let set = distinct(Data::Skewed, 20_000, 17);
    for shard in [0, 0x5a, 0xff] {
        let is_held = |fingerprint: &Fingerprint| {
            tables
                .document_shards(*fingerprint)
                .any(|byte| byte == shard)
        };
        let mut held: Vec<Fingerprint> = set.iter().copied().filter(is_held).collect();
        let mut index = Index::of_shard(Arc::clone(&tables), shard);
        let gone = held.split_off(held.len() - held.len() / 10);
        index.insert_new(held.iter().chain(&gone).copied().collect());
        index.remove_present(&gone);
        let recent = held.split_off(held.len() - 10);
        index.remove_present(&recent);
        index.insert_new(recent.clone());
        held.extend(recent);
        for (place, table) in tables.iter().enumerate() {
            let own = held
                .iter()
                .copied()
                .filter(|&f| table.leading_byte(f) == shard);
            let own: BTreeSet<Fingerprint> = own.collect();
            let entries: Vec<Fingerprint> = index.entries(place).collect();
            assert_eq!(entries.len(), own.len(), "{shard}, {table}");
            assert_eq!(entries.into_iter().collect::<BTreeSet<_>>(), own);
        }
    }
}
