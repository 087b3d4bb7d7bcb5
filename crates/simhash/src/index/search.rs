//! Searching an index. Many queries go through one table after the other, few queries
//! through all tables at once. Each query is also compared with the recent fingerprints.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::few::Bounds;
use super::run::Run;
use super::sort::Permuted;
use super::{Hit, Index, Search, mixed_bits, shared_bits};
use crate::Fingerprint;
use crate::counting;
use crate::scan::{self, BATCH, HitBuffer, Packed, Probe, Sink, Zeroed};
use crate::table::Table;
use crate::tables::ActiveTables;

/// Fewer queries than this are searched one by one.
const BATCHED_QUERIES: usize = 16;

/// Where the two leading bytes of a value begin, by which queries are sorted; further down if all share leading bits.
const LOW: u32 = 48;
const HIGH: u32 = 56;

/// Values of a byte.
const BYTES: usize = 256;

/// Entries that a search of many queries collects before it hands them on.
const ROOM: usize = 1024;

impl Index {
    /// Calls `hit` for every match of every query, each once, in no order. If `hit`
    /// breaks, the search ends and returns the break.
    ///
    /// Goes through one table after the other, so that the directory of the
    /// table stays in the cache. Each of many queries then takes less time.
    ///
    /// # Panics
    /// If there are 2^32 queries or more.
    pub fn search(
        &self,
        search: &Search,
        queries: &[Fingerprint],
        mut hit: impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        assert!(u32::try_from(queries.len()).is_ok(), "2^32 queries or more");
        self.search_recent(search, queries, &mut hit)?;
        if queries.len() >= BATCHED_QUERIES {
            return self.search_many(search, queries, &mut hit);
        }
        let mut bounds = Bounds::new(usize::MAX);
        self.search_few(search, queries, &mut bounds, &mut hit)
    }

    /// Compares every query with all recent fingerprints. A match belongs to the first
    /// active table that gives both the same prefix, and to its shard.
    pub(super) fn search_recent(
        &self,
        search: &Search,
        queries: &[Fingerprint],
        hit: &mut impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.recent.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut near = Vec::new();
        for (place, &query) in (0..).zip(queries) {
            scan::near_words(
                self.level,
                &self.recent,
                query,
                search.max_distance,
                &mut near,
            );
            for fingerprint in near.drain(..) {
                let shares = |&(place, table): &(usize, &Table)| {
                    search.active.contains(place) && table.shares_prefix(query.0 ^ fingerprint.0)
                };
                let canonical = self.tables.iter().enumerate().find(shares);
                let here = canonical.is_some_and(|(_, table)| self.holds(table, fingerprint));
                if here && !self.is_removed(fingerprint) {
                    hit(Hit {
                        query: place,
                        distance: query.distance(fingerprint),
                        fingerprint,
                    })?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn search_many(
        &self,
        search: &Search,
        queries: &[Fingerprint],
        hit: &mut impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut found = HitBuffer::with_room(ROOM);
        let mut batch = Batch::default();
        for place in self.searched(search) {
            let wants_order = |run: &Run| run.wants_order(queries.len());
            let ordered = self.runs(place).iter().any(wants_order);
            let step = if ordered { queries.len() } else { BATCH };
            for start in (0..queries.len()).step_by(step) {
                let end = queries.len().min(start + step);
                batch.fill(self, place, start as u32, &queries[start..end]);
                if ordered {
                    batch.order(shared_bits(self.shard));
                }
                let mut take = |found: &mut HitBuffer| {
                    for (query, difference) in found.drain() {
                        let query = batch.places[query as usize];
                        let of = queries[query as usize];
                        self.report(search, place, query, of, difference, hit)?;
                    }
                    ControlFlow::Continue(())
                };
                for run in self.runs(place) {
                    let probe = self.probe(search, place, run.packed());
                    let mut sink = Sink {
                        found: &mut found,
                        full: &mut take,
                    };
                    scan::probe(self.level, &probe, &batch.permuted, &mut sink)?;
                }
                take(&mut found)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The tables that a search must go through.
    pub(super) fn searched(&self, search: &Search) -> impl Iterator<Item = usize> {
        let looked_at =
            |&place: &usize| search.active.contains(place) && !self.runs(place).is_empty();
        (0..self.stores.len()).filter(looked_at)
    }

    pub(super) fn probe<'a>(&'a self, search: &Search, place: usize, run: Packed<'a>) -> Probe<'a> {
        let table = self.tables.get(place);
        Probe {
            run,
            prefix: table.leading_mask(),
            max_distance: search.max_distance,
            differ: match search.active {
                ActiveTables::All => table.skipped(),
                // `report` checks whether the table is canonical.
                ActiveTables::Some(_) => &[],
            },
        }
    }

    /// Calls `hit` for a match in a table, if this table must report it.
    #[inline]
    pub(super) fn report(
        &self,
        search: &Search,
        place: usize,
        query: u32,
        of: Fingerprint,
        difference: u64,
        hit: &mut impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let difference = self.tables.get(place).unpermute(difference).0;
        let fingerprint = Fingerprint(of.0 ^ difference);
        let canonical = match search.active {
            ActiveTables::All => true,
            ActiveTables::Some(_) => self.tables.is_canonical(place, &search.active, difference),
        };
        if !canonical || self.is_removed(fingerprint) {
            return ControlFlow::Continue(());
        }
        hit(Hit {
            query,
            distance: difference.count_ones(),
            fingerprint,
        })
    }

    /// Whether this index has the fingerprint's entry of a table, by its shard.
    pub(super) fn holds(&self, table: &Table, fingerprint: Fingerprint) -> bool {
        self.shard
            .is_none_or(|shard| table.leading_byte(fingerprint) == shard)
    }

    /// Whether a fingerprint is in the set.
    #[must_use]
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        let held = |(_, table): &(usize, &Table)| self.holds(table, fingerprint);
        let Some((place, table)) = self.tables.iter().enumerate().find(held) else {
            return false;
        };
        let value = scan::mix(mixed_bits(table, self.shard), table.permute(fingerprint));
        let runs = self.runs(place).iter().map(Run::packed);
        for run in runs.clone() {
            run.prefetch_places(run.bucket(value));
        }
        let in_store = runs.clone().any(|run| run.contains(value));
        (in_store || self.recent.contains(&fingerprint)) && !self.is_removed(fingerprint)
    }

    /// The fingerprints without repetitions, sorted by the first table. In this order
    /// [`contains_each`](Self::contains_each) is fastest.
    pub(crate) fn distinct(&self, fingerprints: &[Fingerprint]) -> Vec<Fingerprint> {
        let table = self.tables.get(0);
        let permuted = Permuted {
            level: self.level,
            table,
            shard: None,
            fingerprints,
        };
        let mut buffer = Zeroed::default();
        let mixed = permuted.sorted(&mut buffer);
        let mask = mixed_bits(table, None);
        let distinct = mixed.chunk_by(|a, b| a == b).map(|equal| equal[0]);
        distinct
            .map(|mixed| Fingerprint(scan::unmix(mask, mixed)))
            .collect()
    }

    /// Whether each of these is in the set of an index of all shards.
    pub(crate) fn contains_each(&self, fingerprints: &[Fingerprint]) -> Vec<bool> {
        debug_assert!(self.shard.is_none());
        let recent: HashSet<Fingerprint> = self.recent.iter().copied().collect();
        let is_recent = |fingerprint| !recent.is_empty() && recent.contains(fingerprint);
        let mut present: Vec<bool> = fingerprints.iter().map(is_recent).collect();
        let mut found = HitBuffer::with_room(ROOM);
        let mut permuted = [0; BATCH];
        let first = self.tables.get(0);
        for (fingerprints, present) in fingerprints.chunks(BATCH).zip(present.chunks_mut(BATCH)) {
            let permuted = &mut permuted[..fingerprints.len()];
            scan::permute(self.level, first, fingerprints, permuted);
            scan::mix_all(self.level, mixed_bits(first, None), permuted);
            let mut take = |found: &mut HitBuffer| {
                for (query, _) in found.drain() {
                    present[query as usize] = true;
                }
                ControlFlow::Continue(())
            };
            for run in self.runs(0) {
                let probe = Probe {
                    run: run.packed(),
                    prefix: u64::MAX,
                    max_distance: 0,
                    differ: &[],
                };
                let mut sink = Sink {
                    found: &mut found,
                    full: &mut take,
                };
                let _ = scan::probe(self.level, &probe, permuted, &mut sink);
            }
            let _ = take(&mut found);
        }
        if !self.removed.is_empty() {
            for (present, &fingerprint) in present.iter_mut().zip(fingerprints) {
                *present = *present && !self.is_removed(fingerprint);
            }
        }
        present
    }
}

/// The queries of a batch that concern one table of an index, permuted and mixed.
#[derive(Default)]
struct Batch {
    permuted: Vec<u64>,
    /// The places of these queries among all.
    places: Vec<u32>,
    /// Room to sort the queries and their places.
    ordered: Vec<(u64, u32)>,
}

impl Batch {
    fn fill(&mut self, index: &Index, place: usize, start: u32, queries: &[Fingerprint]) {
        let table = index.tables.get(place);
        self.permuted.resize(queries.len(), 0);
        let targets = self.permuted.chunks_mut(BATCH);
        for (queries, permuted) in queries.chunks(BATCH).zip(targets) {
            scan::permute(index.level, table, queries, permuted);
        }
        self.places.clear();
        self.places.extend(start..start + queries.len() as u32);
        if let Some(shard) = index.shard {
            self.keep(table, shard);
        }
        scan::mix_all(
            index.level,
            mixed_bits(table, index.shard),
            &mut self.permuted,
        );
    }

    /// Sorts the queries by the two bytes behind the bits that they share, first by the lower one. Queries of one
    /// bucket, or of neighbouring ones, then follow each other.
    fn order(&mut self, shared: u32) {
        let low = |value: u64| usize::from((value << shared >> LOW) as u8);
        let high = |value: u64| usize::from((value << shared >> HIGH) as u8);
        let (mut lows, mut highs) = ([0_u32; BYTES], [0_u32; BYTES]);
        let all = || self.permuted.iter().copied();
        counting::count(&mut lows, all().map(low));
        counting::count(&mut highs, all().map(high));
        counting::to_starts(&mut lows);
        counting::to_starts(&mut highs);
        self.ordered.resize(self.permuted.len(), (0, 0));
        let queries = all().zip(self.places.iter().copied());
        let queries = queries.map(|(value, place)| (low(value), (value, place)));
        counting::scatter(&mut lows, queries, &mut self.ordered);
        for &(value, place) in &self.ordered {
            let next = &mut highs[high(value)];
            (self.permuted[*next as usize], self.places[*next as usize]) = (value, place);
            *next += 1;
        }
    }

    /// Keeps the queries that may have a match in a shard.
    fn keep(&mut self, table: &Table, shard: u8) {
        let mut kept = 0;
        for place in 0..self.permuted.len() {
            let permuted = self.permuted[place];
            if table.leading_bytes(permuted).contains(&shard) {
                self.permuted[kept] = permuted;
                self.places[kept] = self.places[place];
                kept += 1;
            }
        }
        self.permuted.truncate(kept);
    }
}
