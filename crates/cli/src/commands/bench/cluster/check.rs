//! The answers of a cluster, held against a linear scan.

use std::ops::Range;

use anyhow::{Context, ensure};
use rayon::prelude::*;
use simshard_client::v1 as pb;
use simshard_proto::matches_into;
use simshard_simhash::{Fingerprint, Match};

use super::super::engine::linear_scan;
use super::DISTANCE;

/// Queries whose answers are checked unless all are.
const CHECKED: usize = 50;

/// The answer to a run of queries.
pub(super) struct Answer {
    /// The place of the first of them among all queries.
    pub(super) first: usize,
    pub(super) response: pb::FindAllResponse,
}

/// The queries whose answers are checked: every so many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    step: usize,
}

impl Sample {
    /// A sample that is spread over so many queries, or all of them.
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

/// What was asked, and what was stored.
pub(super) struct Question<'a> {
    pub(super) queries: &'a [Fingerprint],
    pub(super) sample: Sample,
    /// What was stored all the time.
    pub(super) set: &'a [Fingerprint],
    /// What came meanwhile: it may be found.
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
