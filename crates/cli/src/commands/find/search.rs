//! A search that can leave out the document that it is for.

use std::num::NonZeroU32;

use simshard_client::{Client, FindAnswer, Fingerprint, Queries, QueryMatches, SearchSpec};

use super::missing::find_error;

/// Which matches of a query are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    First,
}

/// A search in a corpus.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) client: &'a Client,
    pub(super) corpus: &'a str,
    pub(super) which: Which,
    pub(super) spec: SearchSpec,
    /// Whether the document with the id of the query is no match.
    pub(super) exclude_self: bool,
}

impl Search<'_> {
    /// The answers to queries, each for the document with the id at its place.
    pub(super) async fn run(&self, queries: Queries, ids: &[String]) -> anyhow::Result<FindAnswer> {
        if self.exclude_self {
            return self.run_excluding(queries, ids).await;
        }
        let found = match self.which {
            Which::All => self.client.find_all(self.corpus, queries, self.spec).await,
            Which::First => {
                let first = self.client.find_first(self.corpus, queries, self.spec);
                first.await
            }
        };
        found.map_err(find_error)
    }

    /// Asks for one match and one id more than are needed. Only a document that is stored with several
    /// fingerprints may need more: its matches are all asked for.
    async fn run_excluding(&self, queries: Queries, ids: &[String]) -> anyhow::Result<FindAnswer> {
        let limit = match self.which {
            Which::All => self.spec.limit,
            Which::First => Some(NonZeroU32::MIN),
        };
        let more = |number: NonZeroU32| number.saturating_add(1);
        let mut spec = SearchSpec {
            limit: limit.map(more),
            max_ids: self.spec.max_ids.map(more),
            ..self.spec
        };
        let found = self.client.find_all(self.corpus, queries, spec).await;
        let mut found = found.map_err(find_error)?;
        let mut short: Vec<usize> = Vec::new();
        for (place, (answer, id)) in found.queries.iter_mut().zip(ids).enumerate() {
            exclude(answer, id);
            let enough = limit.is_none_or(|limit| answer.matches.len() >= limit.get() as usize);
            if answer.truncated && !enough {
                short.push(place);
            }
        }
        if !short.is_empty() {
            let fingerprints: Vec<Fingerprint> = short
                .iter()
                .map(|&place| found.queries[place].query)
                .collect();
            spec.limit = None;
            let queries = Queries::Fingerprints(fingerprints);
            let again = self.client.find_all(self.corpus, queries, spec).await;
            let again = again.map_err(find_error)?;
            for (place, mut answer) in short.into_iter().zip(again.queries) {
                exclude(&mut answer, &ids[place]);
                found.queries[place] = answer;
            }
            found.unreachable_nodes.extend(again.unreachable_nodes);
        }
        for answer in &mut found.queries {
            cut(answer, limit, self.spec.max_ids);
            answer.truncated &= self.which == Which::All;
        }
        Ok(found)
    }
}

/// Leaves the document with this id out of the matches.
fn exclude(answer: &mut QueryMatches, id: &str) {
    answer.matches.retain_mut(|found| {
        let before = found.ids.len();
        found.ids.retain(|other| other != id);
        found.document_count -= (before - found.ids.len()) as u64;
        before == 0 || !found.ids.is_empty()
    });
}

/// Cuts an answer to what was asked for.
fn cut(answer: &mut QueryMatches, limit: Option<NonZeroU32>, max_ids: Option<NonZeroU32>) {
    let limit = limit.map_or(usize::MAX, |limit| limit.get() as usize);
    answer.truncated |= answer.matches.len() > limit;
    answer.matches.truncate(limit);
    let max_ids = max_ids.map_or(usize::MAX, |most| most.get() as usize);
    for found in &mut answer.matches {
        found.ids.truncate(max_ids);
    }
}
