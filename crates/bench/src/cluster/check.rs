//! The answers of a cluster, held against a linear scan.

use std::ops::Range;

use anyhow::{Context, ensure};
use rayon::prelude::*;
use simshard_client::v1 as pb;
use simshard_proto::matches_into;
use simshard_simhash::{Fingerprint, Match};

use super::settings::DISTANCE;
use crate::scan::linear_scan;

/// Queries whose answers are checked unless all are.
const CHECKED: usize = 50;

/// The answer to a run of queries.
pub(super) struct Answer {
    /// The place of the first of them among all queries.
    pub(super) first: usize,
    pub(super) response: pb::FindAllResponse,
}

/// The queries whose answers are checked: every `step`-th.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    step: usize,
}

impl Sample {
    /// About [`CHECKED`] queries, spread over all `queries`; or all of them.
    pub(super) fn of(queries: usize, all: bool) -> Self {
        // An odd step alternates between queries with and without a match.
        let step = if all {
            1
        } else {
            (queries / CHECKED).max(1) | 1
        };
        Self { step }
    }

    /// Whether some query of these places is in the sample.
    pub(super) fn touches(self, places: Range<usize>) -> bool {
        places.start.next_multiple_of(self.step) < places.end
    }
}

/// The queries of a search, and the stored fingerprints.
pub(super) struct Question<'a> {
    pub(super) queries: &'a [Fingerprint],
    pub(super) sample: Sample,
    /// Fingerprints that were stored before the search.
    pub(super) set: &'a [Fingerprint],
    /// Fingerprints that were inserted during the search. It may find them.
    pub(super) coming: &'a [Fingerprint],
}

impl Question<'_> {
    /// An error unless every answer of the sample is there, and right.
    pub(super) fn check(&self, answers: Vec<Answer>) -> anyhow::Result<()> {
        let mut found: Vec<(usize, Vec<Match>)> = Vec::new();
        for answer in answers {
            let places = answer.first..;
            let matches = matches_of(answer.response, &self.queries[answer.first..])?;
            let sampled = places
                .zip(matches)
                .filter(|(place, _)| place % self.sample.step == 0);
            found.extend(sampled);
        }
        let expected = self.queries.len().div_ceil(self.sample.step);
        ensure!(
            found.len() == expected,
            "{} of {expected} answers are there",
            found.len()
        );
        let wrong = found
            .par_iter()
            .find_any(|(place, found)| !self.is_right(*place, found));
        match wrong {
            None => Ok(()),
            Some((place, _)) => {
                anyhow::bail!("find_all is wrong for query {}", self.queries[*place])
            }
        }
    }

    /// Whether these are the matches of a query, in their order, each once.
    fn is_right(&self, place: usize, found: &[Match]) -> bool {
        let query = self.queries[place];
        let certain = linear_scan(self.set, query, DISTANCE);
        let possible = linear_scan(self.coming, query, DISTANCE);
        found.is_sorted_by(|a, b| a < b)
            && certain.iter().all(|one| found.contains(one))
            && found
                .iter()
                .all(|one| certain.contains(one) || possible.contains(one))
    }
}

/// The matches of each query that was answered, all of bare fingerprints.
fn matches_of(
    response: pb::FindAllResponse,
    queries: &[Fingerprint],
) -> anyhow::Result<Vec<Vec<Match>>> {
    let count = response.queries.len();
    let same = queries.iter().map(|query| query.0).take(count);
    ensure!(
        same.eq(response.queries.iter().copied()),
        "other queries were answered than asked"
    );
    ensure!(response.completeness.is_none(), "an answer is partial");
    let matches = response.matches.context("an answer lacks its matches")?;
    let mut found = vec![Vec::new(); count];
    for one in matches_into(matches, count)? {
        let bare = one.document_count == 1 && one.ids == [""];
        ensure!(
            bare,
            "{} is not the one bare document that it should be",
            one.fingerprint
        );
        found[one.query as usize].push(Match {
            distance: one.distance,
            fingerprint: one.fingerprint,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: [Fingerprint; 4] = [
        Fingerprint(0),
        Fingerprint(1),
        Fingerprint(7),
        Fingerprint(0xff),
    ];
    const QUERIES: [Fingerprint; 2] = [Fingerprint(0), Fingerprint(u64::MAX)];

    /// The answer to both queries that lists these for the first and nothing for the second.
    fn answer(matches: &[(u64, u32)]) -> Answer {
        let matches = pb::Matches {
            match_counts: vec![u32::try_from(matches.len()).unwrap(), 0],
            fingerprints: matches.iter().map(|one| one.0).collect(),
            distances: matches.iter().map(|one| one.1).collect(),
            document_counts: vec![1; matches.len()],
            id_counts: vec![1; matches.len()],
            ids: vec![String::new(); matches.len()],
            truncated: vec![false; 2],
        };
        let response = pb::FindAllResponse {
            queries: QUERIES.map(|query| query.0).to_vec(),
            matches: Some(matches),
            ..pb::FindAllResponse::default()
        };
        Answer { first: 0, response }
    }

    fn check(answers: Vec<Answer>, coming: &[Fingerprint]) -> Result<(), String> {
        let question = Question {
            queries: &QUERIES,
            sample: Sample::of(2, true),
            set: &SET,
            coming,
        };
        question.check(answers).map_err(|error| error.to_string())
    }

    #[test]
    fn all_matches_in_order_are_right_and_nothing_else_is() {
        assert_eq!(check(vec![answer(&[(0, 0), (1, 1), (7, 3)])], &[]), Ok(()));
        let wrong: [&[(u64, u32)]; 6] = [
            &[(0, 0), (1, 1)],
            &[(0, 0), (1, 1), (3, 2), (7, 3)],
            &[(0, 0), (1, 1), (1, 1), (7, 3)],
            &[(1, 1), (0, 0), (7, 3)],
            &[(0, 0), (1, 2), (7, 3)],
            &[(0, 0), (1, 1), (7, 3), (0xff, 8)],
        ];
        for matches in wrong {
            let error = check(vec![answer(matches)], &[]).unwrap_err();
            assert_eq!(error, "find_all is wrong for query 0", "{matches:?}");
        }
    }

    #[test]
    fn what_came_meanwhile_may_be_found_and_need_not_be() {
        let coming = [Fingerprint(3)];
        assert_eq!(
            check(vec![answer(&[(0, 0), (1, 1), (7, 3)])], &coming),
            Ok(())
        );
        let found = answer(&[(0, 0), (1, 1), (3, 2), (7, 3)]);
        assert_eq!(check(vec![found], &coming), Ok(()));
        assert!(check(vec![answer(&[(0, 0), (1, 1), (3, 2)])], &coming).is_err());
    }

    #[test]
    fn answers_that_are_missing_partial_or_to_other_queries_are_errors() {
        let right = || answer(&[(0, 0), (1, 1), (7, 3)]);
        assert!(check(Vec::new(), &[]).is_err());
        let mut other = right();
        other.response.queries[1] = 5;
        assert!(check(vec![other], &[]).is_err());
        let mut partial = right();
        partial.response.completeness = Some(pb::Completeness::default());
        assert!(check(vec![partial], &[]).is_err());
        let mut double = right();
        if let Some(matches) = &mut double.response.matches {
            matches.document_counts[0] = 2;
        }
        assert!(check(vec![double], &[]).is_err());
    }

    #[test]
    fn a_sample_is_spread_over_queries_with_and_without_a_match() {
        let sample = Sample::of(10_000, false);
        let places = (0..10_000).filter(|&place| sample.touches(place..place + 1));
        let places: Vec<usize> = places.collect();
        assert_eq!(places.len(), 50);
        assert_eq!(places.iter().filter(|&&place| place % 2 == 0).count(), 25);
        assert!(sample.touches(1..202) && !sample.touches(1..201) && !sample.touches(5..5));
        assert!(Sample::of(10_000, true).touches(7..8));
    }
}
