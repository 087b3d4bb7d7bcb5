//! An in-memory set of fingerprints with exact search: the engine as a library.

mod matches;

use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;

use crate::Fingerprint;
use crate::index::{Hit, Index, Search};
use crate::layout::{Layout, LayoutError};
use crate::tables::{ActiveTables, Tables};
pub use matches::{BulkMatches, Match};

/// Fewest and most queries that one task of a bulk search takes. A task goes through one table
/// after the other, and all tables do not fit the cache. The more queries a table serves at a time,
/// the fewer of its lines are loaded again.
const CHUNK: (usize, usize) = (1 << 14, 1 << 20);

/// Fingerprints that are looked up together.
const BULK: usize = 64;

/// A set of fingerprints, searched by distance.
///
/// Bulk forms run on the threads of the current rayon pool and keep the order
/// of the queries.
///
/// ```
/// use simshard_simhash::{Corpus, Fingerprint};
///
/// let mut corpus = Corpus::new(6, 3)?;
/// corpus.insert(Fingerprint(5_456_993_838_078_482_869));
/// let found = corpus.find_all(Fingerprint(5_457_064_206_285_785_525));
/// assert_eq!(found[0].distance, 3);
/// # Ok::<(), simshard_simhash::LayoutError>(())
/// ```
#[derive(Debug)]
pub struct Corpus {
    index: Index,
}

impl Corpus {
    /// An empty corpus whose fingerprints are cut into `blocks` and found up to
    /// `distance` bits away.
    ///
    /// # Errors
    /// If [`Layout::new`] refuses the pair.
    pub fn new(blocks: u32, distance: u32) -> Result<Self, LayoutError> {
        let tables = Tables::new(Layout::new(blocks, distance)?);
        Ok(Self {
            index: Index::new(Arc::new(tables)),
        })
    }

    /// Blocks and distance.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.index.tables().layout()
    }

    /// Number of fingerprints.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no fingerprint.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether this very fingerprint is in the corpus.
    #[must_use]
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.index.contains(fingerprint)
    }

    /// The fingerprints, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        self.index.iter()
    }

    /// Adds a fingerprint; says whether it was absent.
    pub fn insert(&mut self, fingerprint: Fingerprint) -> bool {
        self.insert_bulk(&[fingerprint]) == 1
    }

    /// Adds fingerprints; returns how many were absent.
    pub fn insert_bulk(&mut self, fingerprints: &[Fingerprint]) -> usize {
        let mut new = self.distinct(fingerprints, false);
        new.shrink_to_fit();
        let count = new.len();
        self.index.insert_new(new);
        count
    }

    /// Takes a fingerprint out; says whether it was present.
    pub fn remove(&mut self, fingerprint: Fingerprint) -> bool {
        self.remove_bulk(&[fingerprint]) == 1
    }

    /// Takes fingerprints out; returns how many were present.
    pub fn remove_bulk(&mut self, fingerprints: &[Fingerprint]) -> usize {
        let gone = self.distinct(fingerprints, true);
        self.index.remove_present(&gone);
        gone.len()
    }

    /// The distinct fingerprints among these that are present, or absent.
    fn distinct(&self, fingerprints: &[Fingerprint], present: bool) -> Vec<Fingerprint> {
        let mut distinct = self.index.distinct(fingerprints);
        if self.is_empty() && !present {
            return distinct;
        }
        if distinct.len() < BULK {
            distinct.retain(|&fingerprint| self.contains(fingerprint) == present);
            return distinct;
        }
        let mut is_present = self.index.contains_each(&distinct).into_iter();
        distinct.retain(|_| is_present.next() == Some(present));
        distinct
    }

    /// The nearest match: the smallest distance, then the smallest fingerprint.
    #[must_use]
    pub fn find_first(&self, query: Fingerprint) -> Option<Match> {
        self.find_first_bulk(&[query]).pop().flatten()
    }

    /// [`find_first`](Self::find_first) for each query.
    #[must_use]
    pub fn find_first_bulk(&self, queries: &[Fingerprint]) -> Vec<Option<Match>> {
        let search = self.everything();
        let mut nearest = vec![None; queries.len()];
        let chunk = chunk(queries.len());
        let chunks = nearest.par_chunks_mut(chunk).zip(queries.par_chunks(chunk));
        chunks.for_each(|(nearest, queries)| {
            let _ = self.index.search(&search, queries, |hit| {
                let best = &mut nearest[hit.query as usize];
                let found = Match::from(hit);
                if best.is_none_or(|best| found < best) {
                    *best = Some(found);
                }
                ControlFlow::Continue(())
            });
        });
        nearest
    }

    /// All matches, each once, by distance, then fingerprint.
    #[must_use]
    pub fn find_all(&self, query: Fingerprint) -> Vec<Match> {
        self.find_all_bulk(&[query]).into_matches()
    }

    /// [`find_all`](Self::find_all) for each query.
    #[must_use]
    pub fn find_all_bulk(&self, queries: &[Fingerprint]) -> BulkMatches {
        let search = self.everything();
        let chunk = chunk(queries.len());
        let hits: Vec<Vec<Hit>> = queries
            .par_chunks(chunk)
            .map(|queries| {
                let mut hits: Vec<Hit> = Vec::new();
                let _ = self.index.search(&search, queries, |hit| {
                    hits.push(hit);
                    ControlFlow::Continue(())
                });
                hits
            })
            .collect();
        BulkMatches::from_chunks(queries.len(), chunk, &hits)
    }

    fn everything(&self) -> Search {
        Search {
            active: ActiveTables::All,
            max_distance: self.layout().distance(),
        }
    }

    /// Bytes of memory behind the tables.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.index.memory()
    }
}

/// Queries that one task of a bulk search takes: the same for each task, and each
/// thread gets equally many tasks, unless the queries are few.
fn chunk(queries: usize) -> usize {
    let (fewest, most) = CHUNK;
    let threads = rayon::current_num_threads();
    let rounds = queries.div_ceil(threads * most).max(1);
    queries.div_ceil(threads * rounds).max(fewest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_share_the_queries_equally_among_the_threads() {
        for (threads, queries, expected) in [
            (1, 0, 1 << 14),
            (1, 100, 1 << 14),
            (1, 1_000_000, 1_000_000),
            (2, 1_000_000, 500_000),
            (2, 100_000, 50_000),
            (3, 1_600_000, 533_334),
            (16, 100_000, 1 << 14),
        ] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let chunk = pool.build().unwrap().install(|| chunk(queries));
            assert_eq!(chunk, expected, "{queries} queries, {threads} threads");
        }
    }
}
