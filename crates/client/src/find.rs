//! What a search asks, and what it answers.

use simshard_proto::v1::{Completeness, FindAllRequest, FindFirstRequest, Matches};
use simshard_proto::{MalformedMatches, QueryMatch, matches_into};
use simshard_simhash::Fingerprint;

use crate::batch::Queries;

/// How to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FindOptions {
    /// Largest distance of a match; `None` means the corpus's.
    pub max_distance: Option<u32>,
    /// Most matches a query, the nearest; 0 means all.
    pub limit: u32,
    /// Most ids a match; 0 means all.
    pub max_ids: u32,
    /// Take what the reachable nodes hold, with a certificate, over an error.
    pub allow_partial: bool,
}

/// A stored fingerprint near a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The stored fingerprint.
    pub fingerprint: Fingerprint,
    /// Its distance from the query in bits.
    pub distance: u32,
    /// Number of documents that carry it.
    pub document_count: u64,
    /// Their ids, ascending, as many as were asked for.
    pub ids: Vec<String>,
}

/// The matches of one query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryMatches {
    /// The fingerprint that was searched for.
    pub query: Fingerprint,
    /// By distance, then fingerprint.
    pub matches: Vec<Match>,
    /// Whether the limit cut the matches.
    pub truncated: bool,
}

/// The answer to a batch of queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// One element a query, in their order.
    pub queries: Vec<QueryMatches>,
    /// Set only on a partial answer.
    pub completeness: Option<Completeness>,
}

impl Found {
    pub(crate) fn new(
        queries: &[u64],
        matches: Matches,
        completeness: Option<Completeness>,
    ) -> Result<Self, MalformedMatches> {
        let truncated = matches.truncated.clone();
        let found = matches_into(matches, queries.len())?;
        let with_query = queries.iter().zip(truncated);
        let mut answer: Vec<QueryMatches> = with_query
            .map(|(&query, truncated)| QueryMatches {
                query: Fingerprint(query),
                matches: Vec::new(),
                truncated,
            })
            .collect();
        for one in found {
            let QueryMatch {
                query,
                distance,
                fingerprint,
                document_count,
                ids,
            } = one;
            answer[query as usize].matches.push(Match {
                fingerprint,
                distance,
                document_count,
                ids,
            });
        }
        Ok(Self {
            queries: answer,
            completeness,
        })
    }

    /// Adds the answer to the queries that follow.
    pub(crate) fn append(&mut self, next: Self) {
        let before = self.queries.len();
        let after = next.queries.len();
        self.queries.extend(next.queries);
        let Some(next) = next.completeness else {
            if let Some(certificate) = &mut self.completeness {
                pad(certificate, after);
            }
            return;
        };
        let certificate = self.completeness.get_or_insert_with(|| {
            let mut complete = Completeness::default();
            pad(&mut complete, before);
            complete
        });
        join(&mut certificate.unreachable_nodes, next.unreachable_nodes);
        join(&mut certificate.missing_shards, next.missing_shards);
        certificate
            .missing_lead_groups
            .extend(next.missing_lead_groups);
        certificate
            .guaranteed_distances
            .extend(next.guaranteed_distances);
    }
}

/// Queries that are answered in full: no group is missing, and any distance
/// that can be asked for is below 64.
fn pad(certificate: &mut Completeness, queries: usize) {
    let lead_groups = &mut certificate.missing_lead_groups;
    lead_groups.resize(lead_groups.len() + queries, 0);
    let distances = &mut certificate.guaranteed_distances;
    distances.resize(distances.len() + queries, 64);
}

fn join<T: Ord>(all: &mut Vec<T>, more: Vec<T>) {
    all.extend(more);
    all.sort();
    all.dedup();
}

pub(crate) fn find_all_request(
    corpus: &str,
    queries: Queries,
    options: FindOptions,
) -> FindAllRequest {
    let (fingerprints, texts) = queries.into_columns();
    FindAllRequest {
        corpus: corpus.to_owned(),
        recipe: String::new(),
        fingerprints,
        texts,
        max_distance: options.max_distance,
        max_ids: options.max_ids,
        allow_partial: options.allow_partial,
        limit: options.limit,
    }
}

pub(crate) fn find_first_request(
    corpus: &str,
    queries: Queries,
    options: FindOptions,
) -> FindFirstRequest {
    let (fingerprints, texts) = queries.into_columns();
    FindFirstRequest {
        corpus: corpus.to_owned(),
        recipe: String::new(),
        fingerprints,
        texts,
        max_distance: options.max_distance,
        max_ids: options.max_ids,
        allow_partial: options.allow_partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: u64, completeness: Option<Completeness>) -> Found {
        let query = Fingerprint(query);
        let queries = vec![QueryMatches {
            query,
            ..QueryMatches::default()
        }];
        Found {
            queries,
            completeness,
        }
    }

    #[test]
    fn a_certificate_keeps_its_place_among_full_answers() {
        let certificate = Completeness {
            unreachable_nodes: vec!["n1".to_owned()],
            missing_shards: vec![7],
            missing_lead_groups: vec![0b10],
            guaranteed_distances: vec![2],
        };
        let mut all = found(1, None);
        all.append(found(2, Some(certificate.clone())));
        all.append(found(3, None));
        all.append(found(4, Some(certificate)));
        let joined = all.completeness.unwrap();
        assert_eq!(joined.guaranteed_distances, [64, 2, 64, 2]);
        assert_eq!(joined.missing_lead_groups, [0, 2, 0, 2]);
        assert_eq!(joined.unreachable_nodes, ["n1"]);
        assert_eq!(joined.missing_shards, [7]);
        assert_eq!(all.queries.len(), 4);
    }
}
