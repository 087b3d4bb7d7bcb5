//! The columns of a [`Matches`] message, to and from one value a match.

use std::num::NonZeroU32;

use prost::bytes::Bytes;
use prost::{DecodeError, Message};
use simshard_simhash::Fingerprint;

use crate::search::at_most;
use crate::v1::{Match, Matches};

/// The encoded message, as nodes send it.
#[must_use]
pub fn matches_into_bytes(matches: &Matches) -> Bytes {
    matches.encode_to_vec().into()
}

/// The message of an encoded one.
pub fn matches_from_bytes(bytes: Bytes) -> Result<Matches, DecodeError> {
    Matches::decode(bytes)
}

/// A match of one query of a batch; ordered by query, distance, fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueryMatch {
    /// Place of the query in its batch.
    pub query: u32,
    /// Distance in bits.
    pub distance: u32,
    /// The stored fingerprint.
    pub fingerprint: Fingerprint,
    /// Number of documents that carry it.
    pub document_count: u64,
    /// Ids of those documents, ascending, as many as were asked for.
    pub ids: Vec<String>,
}

impl From<QueryMatch> for Match {
    fn from(found: QueryMatch) -> Self {
        Self {
            query: found.query,
            fingerprint: found.fingerprint.0,
            distance: found.distance,
            document_count: found.document_count,
            ids: found.ids,
        }
    }
}

/// The columns of an answer do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {column} column has {found} elements, not {expected}")]
pub struct MalformedColumns {
    /// The column.
    pub column: &'static str,
    /// Its length.
    pub found: usize,
    /// The length that the other columns ask for.
    pub expected: usize,
}

impl MalformedColumns {
    /// Checks columns: the name of each, its length, and the one that it should have. The first that is wrong is the
    /// error.
    pub(crate) fn check(
        columns: impl IntoIterator<Item = (&'static str, usize, usize)>,
    ) -> Result<(), Self> {
        let mut columns = columns.into_iter();
        let wrong = columns.find(|(_, found, expected)| found != expected);
        wrong.map_or(Ok(()), |(column, found, expected)| {
            Err(Self {
                column,
                found,
                expected,
            })
        })
    }
}

/// Fills columns match by match, in their order.
#[derive(Clone, Debug)]
pub struct MatchColumns {
    columns: Matches,
    /// Most matches of a query.
    most: usize,
}

impl MatchColumns {
    /// No match yet; `truncated` says for which queries matches are missing already. At most `limit` matches a
    /// query are taken.
    #[must_use]
    pub fn new(truncated: Vec<bool>, limit: Option<NonZeroU32>) -> Self {
        let columns = Matches {
            match_counts: vec![0; truncated.len()],
            truncated,
            ..Matches::default()
        };
        let most = at_most(limit);
        Self { columns, most }
    }

    /// Adds the next match: by query, then distance, then fingerprint.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn push(
        &mut self,
        query: u32,
        distance: u32,
        fingerprint: Fingerprint,
        document_count: u64,
        ids: impl IntoIterator<Item = String>,
    ) {
        let Self { columns, most } = self;
        let query = query as usize;
        if columns.match_counts[query] as usize == *most {
            columns.truncated[query] = true;
            return;
        }
        columns.match_counts[query] += 1;
        columns.fingerprints.push(fingerprint.0);
        columns.distances.push(distance);
        columns.document_counts.push(document_count);
        let before = columns.ids.len();
        columns.ids.extend(ids);
        columns.id_counts.push((columns.ids.len() - before) as u32);
    }

    /// The columns.
    #[must_use]
    pub fn finish(self) -> Matches {
        self.columns
    }
}

/// One value a match, in the order of the columns, for `queries` queries.
pub fn matches_into(matches: Matches, queries: usize) -> Result<Vec<QueryMatch>, MalformedColumns> {
    each_match(matches, queries)
}

/// The same as messages.
pub fn rows_of(matches: Matches, queries: usize) -> Result<Vec<Match>, MalformedColumns> {
    each_match(matches, queries)
}

fn each_match<T: From<QueryMatch>>(
    matches: Matches,
    queries: usize,
) -> Result<Vec<T>, MalformedColumns> {
    check_columns(&matches, queries)?;
    let mut found = Vec::with_capacity(matches.fingerprints.len());
    let mut ids = matches.ids.into_iter();
    for (query, &count) in (0..).zip(&matches.match_counts) {
        for _ in 0..count {
            let place = found.len();
            found.push(T::from(QueryMatch {
                query,
                distance: matches.distances[place],
                fingerprint: Fingerprint(matches.fingerprints[place]),
                document_count: matches.document_counts[place],
                ids: ids
                    .by_ref()
                    .take(matches.id_counts[place] as usize)
                    .collect(),
            }));
        }
    }
    Ok(found)
}

fn total(counts: &[u32]) -> usize {
    counts.iter().map(|&count| count as usize).sum()
}

/// Whether columns fit each other, and the number of queries.
pub fn check_columns(matches: &Matches, queries: usize) -> Result<(), MalformedColumns> {
    let count = matches.fingerprints.len();
    MalformedColumns::check([
        ("match_counts", matches.match_counts.len(), queries),
        ("truncated", matches.truncated.len(), queries),
        ("fingerprints", count, total(&matches.match_counts)),
        ("distances", matches.distances.len(), count),
        ("document_counts", matches.document_counts.len(), count),
        ("id_counts", matches.id_counts.len(), count),
        ("ids", matches.ids.len(), total(&matches.id_counts)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: u32, distance: u32, fingerprint: u64, ids: &[&str]) -> QueryMatch {
        QueryMatch {
            query,
            distance,
            fingerprint: Fingerprint(fingerprint),
            document_count: ids.len() as u64,
            ids: ids.iter().map(|&id| id.to_owned()).collect(),
        }
    }

    /// Columns for matches in any order.
    fn matches_from(
        mut found: Vec<QueryMatch>,
        limit: Option<NonZeroU32>,
        truncated: Vec<bool>,
    ) -> Matches {
        found.sort_unstable();
        let mut columns = MatchColumns::new(truncated, limit);
        for one in found {
            columns.push(
                one.query,
                one.distance,
                one.fingerprint,
                one.document_count,
                one.ids,
            );
        }
        columns.finish()
    }

    #[test]
    fn columns_keep_every_match_in_order() {
        let unordered = vec![
            found(2, 1, 9, &["x"]),
            found(0, 3, 5, &["a", "b"]),
            found(0, 3, 4, &[""]),
            found(0, 0, 7, &[]),
        ];
        let mut expected = unordered.clone();
        expected.sort();
        let columns = matches_from(unordered, None, vec![false; 3]);
        assert_eq!(columns.match_counts, [3, 0, 1]);
        assert_eq!(matches_into(columns, 3), Ok(expected));
    }

    #[test]
    fn the_limit_keeps_the_nearest_and_says_that_it_cut() {
        let unordered = vec![found(0, 2, 1, &["far"]), found(0, 1, 2, &["near"])];
        let columns = matches_from(unordered, NonZeroU32::new(1), vec![false, true]);
        assert_eq!(columns.distances, [1]);
        assert_eq!(columns.ids, ["near"]);
        assert_eq!(columns.truncated, [true, true]);
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let columns = matches_from(vec![found(0, 1, 2, &["a"])], None, vec![false]);
        let mut short = columns.clone();
        short.ids.clear();
        assert_eq!(matches_into(short, 1).unwrap_err().column, "ids");
        let mut long = columns.clone();
        long.id_counts[0] = u32::MAX;
        assert_eq!(matches_into(long, 1).unwrap_err().column, "ids");
        assert_eq!(matches_into(columns, 2).unwrap_err().column, "match_counts");
    }
}
