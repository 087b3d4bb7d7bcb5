//! The requests and answers of searches.

use std::collections::BTreeSet;

use simshard_proto::v1::{Completeness, FindAllRequest, FindFirstRequest, Matches};
use simshard_proto::{MalformedColumns, SearchSpec, matches_into};
use simshard_simhash::{Fingerprint, LeadGroups, Recipe};

use crate::batch::Queries;
use crate::client::Client;

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
    /// The matches that may be missing, if the answer to this query is partial.
    pub missing: Option<Missing>,
}

/// The matches that a partial answer to a query may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The lead groups that were not searched.
    pub lead_groups: LeadGroups,
    /// The distance up to which every match is listed; `None` if nothing is
    /// certain.
    pub guaranteed_distance: Option<u32>,
}

/// The answer to a batch of queries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindAnswer {
    /// One element a query, in their order.
    pub queries: Vec<QueryMatches>,
    /// The nodes that could not be reached, where the answer is partial.
    pub unreachable_nodes: BTreeSet<String>,
}

impl FindAnswer {
    pub(crate) fn new(
        queries: &[u64],
        matches: Matches,
        completeness: Option<Completeness>,
    ) -> Result<Self, MalformedColumns> {
        let truncated = matches.truncated.clone();
        let found = matches_into(matches, queries.len())?;
        let with_query = queries.iter().zip(truncated);
        let mut answer: Vec<QueryMatches> = with_query
            .map(|(&query, truncated)| QueryMatches {
                query: Fingerprint(query),
                truncated,
                ..QueryMatches::default()
            })
            .collect();
        for one in found {
            answer[one.query as usize].matches.push(Match {
                fingerprint: one.fingerprint,
                distance: one.distance,
                document_count: one.document_count,
                ids: one.ids,
            });
        }
        let completeness = completeness.unwrap_or_default();
        for (query, missing) in answer.iter_mut().zip(missing(&completeness)) {
            query.missing = missing;
        }
        Ok(Self {
            queries: answer,
            unreachable_nodes: completeness.unreachable_nodes.into_iter().collect(),
        })
    }

    /// Adds the answer to the queries that follow.
    pub(crate) fn append(&mut self, next: Self) {
        self.queries.extend(next.queries);
        self.unreachable_nodes.extend(next.unreachable_nodes);
    }
}

/// The Jaccard similarity of two documents that the distance of their fingerprints suggests: 1 - d / 32, and at least 0.
/// `None` if the recipe of their corpus suggests none, or is unknown here.
///
/// With `words-v2-N` it is the similarity of their runs of N words. With `words-v3` it is a quarter of that of their
/// words, and three quarters of that of their runs of 2 words. [`Client::recipe`] asks for the recipe of a corpus.
#[must_use]
pub fn similarity(distance: u32, recipe: &str) -> Option<f64> {
    recipe.parse::<Recipe>().ok()?.similarity(distance)
}

/// For each query, what may be missing; nothing where no lead group is.
fn missing(certificate: &Completeness) -> impl Iterator<Item = Option<Missing>> {
    let groups = certificate.missing_lead_groups.iter();
    let certain = groups.zip(&certificate.guaranteed_distances);
    certain.map(|(&groups, &distance)| {
        (groups != 0).then_some(Missing {
            lead_groups: LeadGroups(groups),
            guaranteed_distance: u32::try_from(distance).ok(),
        })
    })
}

impl Client {
    pub(crate) fn find_all_request(
        &self,
        corpus: &str,
        queries: Queries,
        spec: SearchSpec,
    ) -> FindAllRequest {
        let (fingerprints, texts) = queries.into_columns();
        FindAllRequest {
            corpus: corpus.to_owned(),
            recipe: self.recipe.clone(),
            fingerprints,
            texts,
            ..spec.into()
        }
    }

    pub(crate) fn find_first_request(
        &self,
        corpus: &str,
        queries: Queries,
        spec: SearchSpec,
    ) -> FindFirstRequest {
        let (fingerprints, texts) = queries.into_columns();
        FindFirstRequest {
            corpus: corpus.to_owned(),
            recipe: self.recipe.clone(),
            fingerprints,
            texts,
            ..spec.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_tells_of_the_queries_that_lack_something() {
        let matches = Matches {
            match_counts: vec![0; 3],
            truncated: vec![false; 3],
            ..Matches::default()
        };
        let completeness = Completeness {
            unreachable_nodes: vec!["n1".to_owned()],
            missing_shards: vec![7],
            missing_lead_groups: vec![0b10, 0, 0b1111],
            guaranteed_distances: vec![2, 3, -1],
        };
        let found = FindAnswer::new(&[5, 6, 7], matches, Some(completeness)).unwrap();
        let missing: Vec<Option<Missing>> =
            found.queries.iter().map(|query| query.missing).collect();
        let lacking = |groups, guaranteed_distance| {
            let lead_groups = LeadGroups(groups);
            Some(Missing {
                lead_groups,
                guaranteed_distance,
            })
        };
        assert_eq!(
            missing,
            [lacking(0b10, Some(2)), None, lacking(0b1111, None)]
        );
        assert!(found.unreachable_nodes.contains("n1"));
    }

    #[test]
    fn a_similarity_follows_from_a_distance_and_the_name_of_a_recipe() {
        for recipe in ["words-v3", "words-v2", "words-v2-3"] {
            assert_eq!(similarity(3, recipe), Some(0.90625), "{recipe}");
        }
        for recipe in ["words-v1", "leonsim-4", "features", "words-v2-2", ""] {
            assert_eq!(similarity(3, recipe), None, "{recipe}");
        }
    }
}
