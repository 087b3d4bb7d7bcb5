//! Searching for few queries: one after the other, in all tables at once.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::run::Run;
use super::{Hit, Index, Search, mixed_bits};
use crate::Fingerprint;
use crate::scan::{self, HitBuffer, One, Sink};

/// Entries that are found before they are looked at: room costs time before anything is found.
const FOUND_ENTRIES: usize = 64;

/// Runs that one query is looked up in before that takes memory from the heap.
const STOPS: usize = 16;

/// Steps of a table that a query is permuted for, whether that concerns the index or not.
const TABLE: usize = 4;

/// Steps of a run that a query is looked up in: its memory comes from afar.
const RUN: usize = 32;

/// Recent fingerprints that are compared with a query in one step.
const RECENT: usize = 8;

/// How much searches of few queries may do, through one index after the other.
///
/// Counted in steps of about a nanosecond. Comparing a query with an entry of a table is one step; all other work
/// counts as the number of comparisons that would take as long.
#[derive(Debug)]
pub struct Bounds {
    /// Steps that may yet be done.
    steps: usize,
    found: HitBuffer,
}

impl Bounds {
    /// Allows `steps` steps, in all searches together.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        Self {
            steps,
            found: HitBuffer::with_room(FOUND_ENTRIES),
        }
    }

    fn take(&mut self, steps: usize) -> ControlFlow<()> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

impl Index {
    /// As [`search`](Self::search), for few queries; breaks as well before it does more than the bounds allow.
    /// The matches until then are not complete.
    ///
    /// # Panics
    /// If there are 2^32 queries or more.
    pub fn search_within(
        &self,
        bounds: &mut Bounds,
        search: &Search,
        queries: &[Fingerprint],
        mut hit: impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        assert!(u32::try_from(queries.len()).is_ok(), "2^32 queries or more");
        let tables = self.stores.len() * TABLE;
        bounds.take(queries.len() * (tables + self.recent.len() / RECENT))?;
        self.search_recent(search, queries, &mut hit)?;
        self.search_few(search, queries, bounds, &mut hit)
    }

    pub(super) fn search_few(
        &self,
        search: &Search,
        queries: &[Fingerprint],
        bounds: &mut Bounds,
        hit: &mut impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (place, &query) in (0..).zip(queries) {
            self.search_one(search, place, query, bounds, hit)?;
        }
        ControlFlow::Continue(())
    }

    /// Has the loads of one query in all tables in flight before the first is used.
    fn search_one(
        &self,
        search: &Search,
        query: u32,
        of: Fingerprint,
        bounds: &mut Bounds,
        hit: &mut impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut stops = SmallVec::<[_; STOPS]>::new();
        for place in self.searched(search) {
            let table = self.tables.get(place);
            let value = table.permute(of);
            let concerned = |shard| table.leading_bytes(value).contains(&shard);
            if !self.shard.is_none_or(concerned) {
                continue;
            }
            let value = scan::mix(mixed_bits(table, self.shard), value);
            for run in self.runs(place).iter().map(Run::packed) {
                let bucket = run.bucket(value);
                run.prefetch_places(bucket);
                stops.push((place, run, value, bucket));
            }
        }
        let places: SmallVec<[_; STOPS]> = stops
            .iter()
            .map(|(_, run, _, bucket)| run.places(*bucket))
            .collect();
        let steps = places.iter().map(|places| RUN + places.len());
        bounds.take(steps.sum())?;
        let found = &mut bounds.found;
        for (&(place, run, value, _), places) in stops.iter().zip(places) {
            let mut take = |found: &mut HitBuffer| {
                for (query, difference) in found.drain() {
                    self.report(search, place, query, of, difference, hit)?;
                }
                ControlFlow::Continue(())
            };
            let probe = self.probe(search, place, run);
            let mut sink = Sink {
                found,
                full: &mut take,
            };
            let one = One {
                query,
                value,
                places,
            };
            scan::scan(self.level, &probe, one, &mut sink)?;
            take(found)?;
        }
        ControlFlow::Continue(())
    }
}
