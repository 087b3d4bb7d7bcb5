//! The answers of a corpus: single matches, and those of many queries as columns.

use crate::Fingerprint;
use crate::counting;
use crate::index::Hit;

/// A stored fingerprint near a query; ordered by distance, then fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// Distance from the query in bits.
    pub distance: u32,
    /// The stored fingerprint.
    pub fingerprint: Fingerprint,
}

impl From<Hit> for Match {
    fn from(hit: Hit) -> Self {
        Self {
            distance: hit.distance,
            fingerprint: hit.fingerprint,
        }
    }
}

/// The matches of many queries, in the order of the queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkMatches {
    /// Where the matches of each query end.
    ends: Vec<usize>,
    matches: Vec<Match>,
}

impl BulkMatches {
    /// Sorts hits in any order into the matches of `queries` queries.
    #[must_use]
    pub fn from_hits(queries: usize, hits: &[Hit]) -> Self {
        let mut ends = vec![0; queries];
        counting::count(&mut ends, hits.iter().map(|hit| hit.query as usize));
        counting::to_starts(&mut ends);
        let nothing = Match {
            distance: 0,
            fingerprint: Fingerprint(0),
        };
        let mut matches = vec![nothing; hits.len()];
        let by_query = hits.iter().map(|&hit| (hit.query as usize, hit.into()));
        counting::scatter(&mut ends, by_query, &mut matches);
        let mut start = 0;
        for &end in &ends {
            matches[start..end].sort_unstable();
            start = end;
        }
        Self { ends, matches }
    }

    pub(super) fn concatenate(mut chunks: Vec<Self>) -> Self {
        if chunks.len() == 1 {
            return chunks.remove(0);
        }
        let mut all = Self {
            ends: Vec::with_capacity(chunks.iter().map(|chunk| chunk.ends.len()).sum()),
            matches: Vec::with_capacity(chunks.iter().map(|chunk| chunk.matches.len()).sum()),
        };
        for chunk in chunks {
            let before = all.matches.len();
            all.ends.extend(chunk.ends.iter().map(|end| before + end));
            all.matches.extend(chunk.matches);
        }
        all
    }

    /// Number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there was no query.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The matches of one query, by distance, then fingerprint.
    ///
    /// # Panics
    /// If `query` is not below [`len`](Self::len).
    #[must_use]
    pub fn get(&self, query: usize) -> &[Match] {
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        &self.matches[start..self.ends[query]]
    }

    /// The matches of each query.
    pub fn iter(&self) -> impl Iterator<Item = &[Match]> {
        (0..self.len()).map(|query| self.get(query))
    }

    /// All matches, those of the first query first.
    #[must_use]
    pub fn into_matches(self) -> Vec<Match> {
        self.matches
    }
}
