//! Finding: ask the needed shards, plan again around nodes that are lost.
//!
//! # Invariants
//! - FI1: a search waits only for the nodes that it needs, whatever other requests wait for.
//! - FI2: a search that can go around a lost node does so at the latest at half of the time that it has left.

use std::collections::BTreeSet;
use std::future::ready;
use std::num::NonZeroU32;
use std::sync::Arc;

use prost::bytes::Bytes;
use simshard_cluster::{CorpusRecord, CorpusState};
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::v1::{Completeness, Matches};
use simshard_proto::{MAX_MESSAGE_BYTES, SearchSpec, limit_from, matches_from_bytes, shards_from};
use simshard_simhash::{Fingerprint, LeadGroups};
use simshard_topology::NodeId;
use simshard_transport::Taken;
use tracing::warn;

use super::proof::Claim;
use super::rounds::Rounds;
use super::silence::unless_silent;
use super::{Failures, Router};
use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::merge::{Merge, certificate};
use crate::nodes::{CallError, Load, call_all};
use crate::offload::offload;
use crate::plan::{Part, QueryPlan, plan_queries};
use crate::readers::Readers;
use crate::remembered::OpenCorpus;

/// Nodes that a request asks at once: their answers are in memory together.
const AT_ONCE: usize = 16;

/// A batch of queries.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    pub(crate) queries: Arc<[Fingerprint]>,
    /// Of the request, or else of the corpus.
    pub(crate) max_distance: u32,
    pub(crate) spec: SearchSpec,
}

/// The answer to a batch of queries.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindOutcome {
    pub(crate) matches: Matches,
    /// Set where something may be missing.
    pub(crate) completeness: Option<Completeness>,
}

impl Router {
    /// Finds the matches of every query.
    ///
    /// Each round asks the nodes that were not lost in the rounds before, so
    /// there are at most as many rounds as nodes, and those of [`Rounds`].
    pub(crate) async fn find(
        &self,
        corpus: &OpenCorpus,
        near: &Near,
        deadline: Deadline,
    ) -> Result<FindOutcome, RouterError> {
        let mut lost = Failures::default();
        let mut rounds = Rounds::new();
        let mut is_patient = false;
        loop {
            if !lost.down().is_empty() {
                self.warn_of(corpus, &lost).await?;
            }
            let down = lost.down();
            let cluster = self.cluster.view();
            let readers = cluster.readers(&down, &lost.cold);
            let plan = plan(&readers, corpus, near, down.clone()).await?;
            if !plan.unreachable.is_empty() && !lost.silent.is_empty() {
                // No other node can answer.
                lost.silent.clear();
                is_patient = true;
                continue;
            }
            if !plan.unreachable.is_empty() && !near.spec.allow_partial {
                lost.nodes = plan.unreachable;
                return Err(lost.error(&corpus.record.name));
            }
            let others = cluster.layout.nodes().len() > lost.nodes.len() + 1;
            let copies = cluster.layout.map().has_copies();
            let is_not_last = others && (copies || may_go_around(corpus, near));
            let asked = Asked {
                cluster: &cluster,
                readers: &readers,
                down: &down,
                corpus,
                near,
                plan: &plan,
                is_patient: is_patient || !copies,
                deadline: if is_not_last {
                    deadline.half()
                } else {
                    deadline
                },
            };
            let (answers, _memory, failures) = self.proven(&asked).await?;
            if failures.is_empty() {
                return complete(corpus, near, plan, answers).await;
            }
            let is_again = !failures.stale.is_empty() || !failures.cold.is_empty();
            lost.extend(failures);
            if is_again {
                let has_another = rounds.another(&self.cluster, &cluster, deadline).await;
                let goes_on = has_another || near.spec.allow_partial && lost.give_up_cold();
                if !goes_on {
                    return Err(lost.error(&corpus.record.name));
                }
                lost.stale.clear();
            }
        }
    }

    /// The answers of one round, and the failures, those of its proof included.
    async fn proven(
        &self,
        asked: &Asked<'_>,
    ) -> Result<(Vec<(usize, Matches)>, Vec<Taken>, Failures), RouterError> {
        let proof = self.prove(Claim {
            cluster: asked.cluster,
            readers: asked.readers,
            shards: asked.plan.shards(),
            down: asked.down,
            readers_confirm: true,
            deadline: asked.deadline,
        });
        let (answers, unproven) = tokio::join!(asked.answers(), proof);
        let (answers, memory, mut failures) = answers?;
        if !unproven.nodes.is_empty() {
            return Err(unproven.error(&asked.corpus.record.name));
        }
        failures.extend(unproven);
        Ok((answers, memory, failures))
    }

    /// Logs which nodes are lost to a search; fails where going around them makes no sense, as the corpus is another.
    async fn warn_of(&self, corpus: &OpenCorpus, lost: &Failures) -> Result<(), RouterError> {
        if let Some(node) = &lost.not_loaded
            && self.is_replaced(corpus).await?
        {
            return Err(RouterError::NotLoaded {
                node: node.clone(),
                corpus: corpus.record.name.clone(),
            });
        }
        let nodes = lost.down();
        let nodes: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
        warn!(
            nodes = nodes.join(","),
            late = lost.late,
            "nodes are lost to a search"
        );
        Ok(())
    }

    /// Whether the corpus that is remembered is deleted, or about to be, and perhaps
    /// created anew: then nodes that do not hold it have not lost it.
    async fn is_replaced(&self, corpus: &OpenCorpus) -> Result<bool, RouterError> {
        let record = self.metadata.corpus(&corpus.record.name).await?;
        let is_it = |record: CorpusRecord| {
            record.uid == corpus.record.uid && record.state == CorpusState::Live
        };
        Ok(!record.is_some_and(is_it))
    }
}

async fn plan(
    readers: &Arc<Readers>,
    corpus: &OpenCorpus,
    near: &Near,
    down: BTreeSet<NodeId>,
) -> Result<QueryPlan, RouterError> {
    let tables = Arc::clone(corpus.tables());
    let readers = Arc::clone(readers);
    let queries = Arc::clone(&near.queries);
    let max_distance = near.max_distance;
    offload(near.queries.len(), move || {
        plan_queries(&tables, &readers, &queries, max_distance, &down)
    })
    .await
}

/// Whether a lost node may be gone around, so that a round should leave time for another.
fn may_go_around(corpus: &OpenCorpus, near: &Near) -> bool {
    near.spec.allow_partial || near.max_distance < corpus.layout().distance()
}

/// One round of a search.
struct Asked<'a> {
    cluster: &'a ClusterView,
    readers: &'a Readers,
    /// Nodes that are not asked.
    down: &'a BTreeSet<NodeId>,
    corpus: &'a OpenCorpus,
    near: &'a Near,
    plan: &'a QueryPlan,
    /// Whether nodes that give no sign of life are waited for.
    is_patient: bool,
    deadline: Deadline,
}

impl Asked<'_> {
    /// Asks every node of the plan: the answers of those that gave one, each with the place of its request, and the
    /// memory that they take.
    async fn answers(&self) -> Result<(Vec<(usize, Matches)>, Vec<Taken>, Failures), RouterError> {
        let requests = &self.plan.requests;
        let mut answers = Vec::with_capacity(requests.len());
        let mut memory = Vec::with_capacity(requests.len());
        let mut lost = Failures::default();
        let mut bytes = 0;
        let calls = requests
            .iter()
            .map(|(groups, node, part)| self.answer_in_time(node, *groups, part));
        call_all(calls, AT_ONCE, self.deadline, |place, answer| {
            let (_, node, part) = &requests[place];
            match answer {
                Ok((matches, size, taken)) => {
                    bytes += size;
                    answers.push((place, matches));
                    memory.push(taken);
                }
                Err(error) => lost.note(node.clone(), part.shards, error)?,
            }
            if bytes > most_bytes(self.near) {
                return Err(RouterError::AnswerTooLarge);
            }
            Ok(())
        })
        .await?;
        Ok((answers, memory, lost))
    }

    /// The answer of one node, unless it gives no sign of life.
    async fn answer_in_time(
        &self,
        node: &NodeId,
        groups: LeadGroups,
        part: &Part,
    ) -> Result<(Matches, usize, Taken), CallError> {
        let answer = self.answer_of(node, groups, part);
        if self.is_patient {
            answer.await
        } else {
            unless_silent(self.cluster, node, answer).await
        }
    }

    /// The answer of one node, its [`size`], and the memory that it takes.
    async fn answer_of(
        &self,
        node: &NodeId,
        groups: LeadGroups,
        part: &Part,
    ) -> Result<(Matches, usize, Taken), CallError> {
        let &Self { cluster, near, .. } = self;
        let work = || {
            let query = |&place: &u32| near.queries[place as usize].0;
            ready(Ok(Work::from(pb::FindAll {
                target: Some(cluster.target(&self.corpus.record, part.shards)),
                shards: shards_from(part.shards),
                active_lead_groups: groups.0,
                max_distance: near.max_distance,
                limit: limit_from(near.spec.limit),
                max_ids: limit_from(near.spec.max_ids),
                fingerprints: part.places.iter().map(query).collect(),
            })))
        };
        let load = Load::Queries(part.places.len());
        let answer = cluster.nodes.work(node, self.deadline, load, work).await?;
        match answer.outcome {
            Outcome::Matches(bytes) => {
                let (matches, size) = decoded(bytes).await?;
                Ok((matches, size, answer.memory))
            }
            Outcome::Changed(_) | Outcome::Confirmed(_) | Outcome::Status(_) => {
                Err(CallError::nonsense())
            }
        }
    }
}

/// The matches of an answer, and their [`size`].
async fn decoded(bytes: Bytes) -> Result<(Matches, usize), CallError> {
    let decoded = offload(bytes.len() / 64, move || {
        let matches = matches_from_bytes(bytes).map_err(|_| CallError::nonsense())?;
        let size = size(&matches);
        Ok((matches, size))
    });
    decoded.await.unwrap_or(Err(CallError::Unreachable))
}

/// Bytes of an answer, about, from below.
fn size(matches: &Matches) -> usize {
    let ids: usize = matches.ids.iter().map(String::len).sum();
    ids + 10 * matches.fingerprints.len()
}

/// Most bytes of all answers together. Where a limit may still cut them, they
/// are allowed to be more than fit the merged answer.
fn most_bytes(near: &Near) -> usize {
    match near.spec.limit {
        None => MAX_MESSAGE_BYTES,
        Some(_) => 8 * MAX_MESSAGE_BYTES,
    }
}

/// The answers of all nodes in one, and what may be missing.
async fn complete(
    corpus: &OpenCorpus,
    near: &Near,
    plan: QueryPlan,
    answers: Vec<(usize, Matches)>,
) -> Result<FindOutcome, RouterError> {
    let (layout, max_distance) = (corpus.layout(), near.max_distance);
    let (queries, limit) = (near.queries.len(), near.spec.limit);
    let rows = answers
        .iter()
        .map(|(_, matches)| matches.fingerprints.len());
    let rows: usize = rows.sum();
    offload(queries.max(rows), move || {
        let is_complete = plan.missing.is_empty();
        Ok(FindOutcome {
            matches: merged(queries, limit, &plan, answers)?,
            completeness: (!is_complete)
                .then(|| certificate(layout, max_distance, &plan.missing, &plan.unreachable)),
        })
    })
    .await?
}

/// The answers of nodes in one.
fn merged(
    queries: usize,
    limit: Option<NonZeroU32>,
    plan: &QueryPlan,
    answers: Vec<(usize, Matches)>,
) -> Result<Matches, RouterError> {
    let mut merge = Merge::new(queries, limit);
    for (place, matches) in answers {
        let (_, node, part) = &plan.requests[place];
        merge.add(&part.places, matches).map_err(|problem| {
            let node = node.clone();
            RouterError::Malformed { node, problem }
        })?;
    }
    Ok(merge.finish())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use prost::Message;

    use super::*;
    use crate::offload::while_offloaded_work_waits;

    #[test]
    fn a_large_answer_is_decoded_elsewhere_and_a_small_one_at_once() {
        while_offloaded_work_waits(async || {
            let answer = |ids| Matches {
                ids: vec!["i".repeat(1000); ids],
                ..Matches::default()
            };
            let bytes = |ids| Bytes::from(answer(ids).encode_to_vec());
            let decoded_at_once = |ids| decoded(bytes(ids)).now_or_never();
            let (matches, size) = decoded_at_once(10).unwrap().unwrap();
            assert_eq!((matches, size), (answer(10), 10_000));
            assert!(decoded_at_once(100).is_none());
        });
    }
}
