//! Putting the answers of the nodes together. Pure.
//!
//! No match is reported twice (see `plan`), so merging is concatenating.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use simshard_proto::v1::{Completeness, Matches};
use simshard_proto::{MalformedColumns, MatchColumns, check_columns, shards_from};
use simshard_simhash::{Fingerprint, Layout, LeadGroups};
use simshard_topology::{NodeId, ShardSet};

/// The answers of the nodes so far.
#[derive(Debug)]
pub(crate) struct Merge {
    limit: Option<NonZeroU32>,
    answers: Vec<Matches>,
    matches: Vec<Place>,
    truncated: Vec<bool>,
}

/// A match, and where the rest of it stands; ordered by query, distance, fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    query: u32,
    distance: u32,
    fingerprint: u64,
    answer: u32,
    /// Its place in the columns of the answer.
    at: u32,
    /// The place of its first id.
    ids: u32,
}

impl Merge {
    /// No answers yet to `queries` queries, of each of which at most `limit`
    /// matches are wanted.
    pub(crate) fn new(queries: usize, limit: Option<NonZeroU32>) -> Self {
        Self {
            limit,
            answers: Vec::new(),
            matches: Vec::new(),
            truncated: vec![false; queries],
        }
    }

    /// Adds a node's answer about the queries at `places`.
    pub(crate) fn add(&mut self, places: &[u32], answer: Matches) -> Result<(), MalformedColumns> {
        check_columns(&answer, places.len())?;
        for (&place, &cut) in places.iter().zip(&answer.truncated) {
            self.truncated[place as usize] |= cut;
        }
        let (mut at, mut ids) = (0, 0);
        for (&query, &count) in places.iter().zip(&answer.match_counts) {
            for _ in 0..count {
                self.matches.push(Place {
                    query,
                    distance: answer.distances[at as usize],
                    fingerprint: answer.fingerprints[at as usize],
                    answer: self.answers.len() as u32,
                    at,
                    ids,
                });
                ids += answer.id_counts[at as usize];
                at += 1;
            }
        }
        self.answers.push(answer);
        Ok(())
    }

    /// The matches of all queries.
    pub(crate) fn finish(mut self) -> Matches {
        self.matches.sort_unstable();
        let mut columns = MatchColumns::new(self.truncated, self.limit);
        for place in self.matches {
            let answer = &mut self.answers[place.answer as usize];
            let (at, first) = (place.at as usize, place.ids as usize);
            let ids = first..first + answer.id_counts[at] as usize;
            columns.push(
                place.query,
                place.distance,
                Fingerprint(place.fingerprint),
                answer.document_counts[at],
                answer.ids[ids].iter_mut().map(std::mem::take),
            );
        }
        columns.finish()
    }
}

/// The guarantee of an answer although some lead groups were not searched.
pub(crate) fn certificate(
    layout: Layout,
    max_distance: u32,
    missing: &[LeadGroups],
    unreachable: &BTreeMap<NodeId, ShardSet>,
) -> Completeness {
    let guaranteed = |missing: &LeadGroups| {
        let searched = LeadGroups::all(layout).difference(*missing);
        let reach = searched.guaranteed_distance();
        reach.map_or(-1, |reach| reach.min(max_distance) as i32)
    };
    let shards: ShardSet = unreachable.values().flat_map(ShardSet::iter).collect();
    Completeness {
        unreachable_nodes: unreachable.keys().map(NodeId::to_string).collect(),
        missing_shards: shards_from(shards),
        missing_lead_groups: missing.iter().map(|groups| groups.0).collect(),
        guaranteed_distances: missing.iter().map(guaranteed).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(counts: &[u32], values: &[(u32, u64)], truncated: bool) -> Matches {
        Matches {
            match_counts: counts.to_vec(),
            fingerprints: values.iter().map(|&(_, value)| value).collect(),
            distances: values.iter().map(|&(distance, _)| distance).collect(),
            document_counts: vec![1; values.len()],
            id_counts: vec![1; values.len()],
            ids: values.iter().map(|(_, value)| value.to_string()).collect(),
            truncated: vec![truncated; counts.len()],
        }
    }

    #[test]
    fn answers_about_different_queries_find_their_places() {
        let mut merge = Merge::new(4, None);
        merge
            .add(&[1, 3], answer(&[1, 1], &[(2, 20), (1, 30)], false))
            .unwrap();
        merge
            .add(&[0, 3], answer(&[0, 1], &[(0, 31)], false))
            .unwrap();
        let merged = merge.finish();
        assert_eq!(merged.match_counts, [0, 1, 0, 2]);
        assert_eq!(merged.ids, ["20", "31", "30"]);
        assert_eq!(merged.truncated, [false; 4]);
    }

    #[test]
    fn the_limit_holds_over_all_nodes() {
        let mut merge = Merge::new(2, NonZeroU32::new(1));
        merge
            .add(&[0, 1], answer(&[1, 1], &[(2, 20), (1, 1)], false))
            .unwrap();
        merge.add(&[0], answer(&[1], &[(1, 21)], false)).unwrap();
        let merged = merge.finish();
        assert_eq!(merged.fingerprints, [21, 1]);
        assert_eq!(merged.truncated, [true, false]);
    }

    #[test]
    fn nonsense_from_a_node_is_refused() {
        let mut merge = Merge::new(2, None);
        assert!(
            merge
                .add(&[0], answer(&[1, 1], &[(2, 20), (1, 1)], false))
                .is_err()
        );
    }

    #[test]
    fn the_certificate_counts_the_groups_that_answered() {
        let layout = Layout::new(5, 3).unwrap();
        let missing = [0b0000, 0b0001, 0b0111, 0b1111].map(LeadGroups);
        let certificate = certificate(layout, 2, &missing, &BTreeMap::new());
        assert_eq!(certificate.guaranteed_distances, [2, 2, 0, -1]);
        assert_eq!(certificate.missing_lead_groups, [0, 1, 7, 15]);
    }
}
