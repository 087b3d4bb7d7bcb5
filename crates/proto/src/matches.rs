//! The columns of a [`Matches`] message, to and from one value a match.

use simshard_simhash::Fingerprint;

use crate::v1::Matches;

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

/// Columns for matches in any order, at most `limit` a query (0: all), the
/// nearest first. `truncated` says for which queries matches are missing
/// already.
#[must_use]
pub fn matches_from(mut found: Vec<QueryMatch>, limit: u32, truncated: Vec<bool>) -> Matches {
    found.sort_unstable();
    let mut matches = Matches {
        match_counts: vec![0; truncated.len()],
        truncated,
        ..Matches::default()
    };
    for one in found {
        let query = one.query as usize;
        if limit != 0 && matches.match_counts[query] == limit {
            matches.truncated[query] = true;
            continue;
        }
        matches.match_counts[query] += 1;
        matches.fingerprints.push(one.fingerprint.0);
        matches.distances.push(one.distance);
        matches.document_counts.push(one.document_count);
        matches.id_counts.push(one.ids.len() as u32);
        matches.ids.extend(one.ids);
    }
    matches
}

/// One value a match, in the order of the columns, for `queries` queries.
///
/// # Errors
/// If the columns do not fit each other.
pub fn matches_into(matches: Matches, queries: usize) -> Result<Vec<QueryMatch>, MalformedColumns> {
    check_columns(&matches, queries)?;
    let mut found = Vec::with_capacity(matches.fingerprints.len());
    let mut ids = matches.ids.into_iter();
    for (query, &count) in (0..).zip(&matches.match_counts) {
        for _ in 0..count {
            let place = found.len();
            found.push(QueryMatch {
                query,
                distance: matches.distances[place],
                fingerprint: Fingerprint(matches.fingerprints[place]),
                document_count: matches.document_counts[place],
                ids: ids
                    .by_ref()
                    .take(matches.id_counts[place] as usize)
                    .collect(),
            });
        }
    }
    Ok(found)
}

fn check_columns(matches: &Matches, queries: usize) -> Result<(), MalformedColumns> {
    let total = |counts: &[u32]| counts.iter().map(|&count| count as usize).sum::<usize>();
    let count = matches.fingerprints.len();
    for (column, found, expected) in [
        ("match_counts", matches.match_counts.len(), queries),
        ("truncated", matches.truncated.len(), queries),
        ("fingerprints", count, total(&matches.match_counts)),
        ("distances", matches.distances.len(), count),
        ("document_counts", matches.document_counts.len(), count),
        ("id_counts", matches.id_counts.len(), count),
        ("ids", matches.ids.len(), total(&matches.id_counts)),
    ] {
        if found != expected {
            return Err(MalformedColumns {
                column,
                found,
                expected,
            });
        }
    }
    Ok(())
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
        let columns = matches_from(unordered, 0, vec![false; 3]);
        assert_eq!(columns.match_counts, [3, 0, 1]);
        assert_eq!(matches_into(columns, 3), Ok(expected));
    }

    #[test]
    fn the_limit_keeps_the_nearest_and_says_that_it_cut() {
        let unordered = vec![found(0, 2, 1, &["far"]), found(0, 1, 2, &["near"])];
        let columns = matches_from(unordered, 1, vec![false, true]);
        assert_eq!(columns.distances, [1]);
        assert_eq!(columns.ids, ["near"]);
        assert_eq!(columns.truncated, [true, true]);
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let columns = matches_from(vec![found(0, 1, 2, &["a"])], 0, vec![false]);
        let mut short = columns.clone();
        short.ids.clear();
        assert_eq!(matches_into(short, 1).unwrap_err().column, "ids");
        let mut long = columns.clone();
        long.id_counts[0] = u32::MAX;
        assert_eq!(matches_into(long, 1).unwrap_err().column, "ids");
        assert_eq!(matches_into(columns, 2).unwrap_err().column, "match_counts");
    }
}
