//! The answers of a corpus: single matches, and those of many queries as columns.

use rayon::iter::repeat_n;
use rayon::prelude::*;

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
    /// Sorts the hits of queries into their matches. Each `chunk` queries have hits of their own, in any order, whose queries
    /// count from the first of them. The threads of the rayon pool share the chunks.
    pub(super) fn from_chunks(queries: usize, chunk: usize, hits: &[Vec<Hit>]) -> Self {
        let mut ends = vec![0; queries];
        if let [hits] = hits {
            // Few queries wake no other thread.
            let mut matches = vec![NOTHING; hits.len()];
            sort_into(&mut ends, &mut matches, hits);
            return Self { ends, matches };
        }
        let all = hits.iter().map(Vec::len).sum();
        let mut matches: Vec<Match> = repeat_n(NOTHING, all).collect();
        let (mut rest, mut before) = (&mut matches[..], 0);
        let parts = ends.chunks_mut(chunk).zip(hits).map(|(ends, hits)| {
            let matches = rest.split_off_mut(..hits.len()).unwrap_or_default();
            let start = before;
            before += hits.len();
            (start, ends, matches, hits)
        });
        let parts: Vec<_> = parts.collect();
        parts
            .into_par_iter()
            .for_each(|(start, ends, matches, hits)| {
                sort_into(ends, matches, hits);
                for end in ends {
                    *end += start;
                }
            });
        Self { ends, matches }
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

/// What a place has before its match is there.
const NOTHING: Match = Match {
    distance: 0,
    fingerprint: Fingerprint(0),
};

/// Sorts hits in any order into the matches of some queries, and says where those of each end. There is nothing before.
fn sort_into(ends: &mut [usize], matches: &mut [Match], hits: &[Hit]) {
    counting::count(ends, hits.iter().map(|hit| hit.query as usize));
    counting::to_starts(ends);
    let by_query = hits.iter().map(|&hit| (hit.query as usize, hit.into()));
    counting::scatter(ends, by_query, matches);
    let mut start = 0;
    for &mut end in ends {
        matches[start..end].sort_unstable();
        start = end;
    }
}
