//! Searching for few queries: one after the other, in all tables at once.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::run::Run;
use super::{Hit, Index, Search};
use crate::Fingerprint;
use crate::scan::{self, Found, One, Places, Sink};

/// Entries that are found before they are looked at: room costs time before anything is found.
const ROOM: usize = 64;

/// Runs that one query is looked up in before that takes memory from the heap.
const STOPS: usize = 16;

/// How much searches of few queries may do, through one index after the other.
#[derive(Debug)]
pub struct Bounds {
    /// Entries of tables that may yet be compared with a query.
    comparisons: usize,
    found: Found,
}

impl Bounds {
    /// At most so many comparisons of a query with an entry of a table, in all searches together. Those with what was
    /// inserted lately come on top: they are few by themselves.
    #[must_use]
    pub fn new(comparisons: usize) -> Self {
        Self {
            comparisons,
            found: Found::with_room(ROOM),
        }
    }

    fn take(&mut self, comparisons: usize) -> ControlFlow<()> {
        match self.comparisons.checked_sub(comparisons) {
            Some(left) => {
                self.comparisons = left;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

impl Index {
    /// As [`search`](Self::search), for few queries; breaks as well before it compares more than the bounds allow.
    /// What it called `hit` for until then is not all there is.
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

    /// Has the loads of one query in all tables under way before the first is used.
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
            let value = scan::mix(table.leading_mask(), value);
            for run in self.stores[place].runs().iter().map(Run::packed) {
                let bucket = run.bucket(value);
                run.prefetch_places(bucket);
                stops.push((place, run, value, bucket));
            }
        }
        let places: SmallVec<[_; STOPS]> = stops
            .iter()
            .map(|(_, run, _, bucket)| run.places(*bucket))
            .collect();
        bounds.take(places.iter().map(Places::len).sum())?;
        let found = &mut bounds.found;
        for (&(place, run, value, _), places) in stops.iter().zip(places) {
            let mut take = |found: &mut Found| {
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
