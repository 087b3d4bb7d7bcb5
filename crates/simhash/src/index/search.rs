//! Searching an index. Many queries go through one table after the other, few queries
//! through all tables at once. Each query is also compared with the recent fingerprints.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::batch::{Batch, Cut, Parts};
use super::few::Bounds;
use super::sort::Permuted;
use super::{Hit, Index, Search, mixed_bits, shared_bits};
use crate::Fingerprint;
use crate::scan::{self, BATCH, HitBuffer, Packed, Probe, Sink, Zeroed};
use crate::table::Table;
use crate::tables::ActiveTables;

/// Fewer queries than this are searched one by one.
const BATCHED_QUERIES: usize = 16;

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
        let mut batch = Batch::default();
        let mut found = HitBuffer::with_room(ROOM);
        let mut parts = Parts::of(queries);
        for place in self.searched(search) {
            let cut = self.cut(place, queries.len());
            parts.cut(cut);
            for part in parts.iter() {
                batch.fill(self, place, part);
                match cut {
                    Cut::Every(_) => {}
                    Cut::Whole => batch.order(shared_bits(self.shard)),
                    Cut::By(_) => batch.order_part(),
                }
                self.search_batch(search, place, queries, &batch, &mut found, hit)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// How queries go through a table. Grouping takes less time than sorting all, but leaves the buckets of a group
    /// far from each other. That pays where enough queries share what is loaded.
    fn cut(&self, place: usize, queries: usize) -> Cut {
        let runs = self.runs(place);
        if !runs.iter().any(|run| run.wants_order(queries)) {
            Cut::Every(BATCH)
        } else if self.shard.is_none() && runs[0].is_shared_by_many(queries) {
            Cut::By(self.tables.get(place).first_bits())
        } else {
            Cut::Whole
        }
    }

    /// Calls `hit` for the matches of a batch in the table that it was filled for.
    fn search_batch(
        &self,
        search: &Search,
        place: usize,
        queries: &[Fingerprint],
        batch: &Batch,
        found: &mut HitBuffer,
        hit: &mut impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut take = |found: &mut HitBuffer| {
            // The queries stand in another order than the batch: all are asked for before one is used.
            for query in found.queries() {
                scan::prefetch(queries, batch.places[query as usize] as usize);
            }
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
                found: &mut *found,
                full: &mut take,
            };
            scan::probe(self.level, &probe, &batch.permuted, &mut sink)?;
        }
        take(found)
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
