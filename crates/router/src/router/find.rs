//! Finding: ask the needed shards, plan again around nodes that are lost.
//!
//! # Invariants
//! - FI1: a search waits only for the nodes that it needs, whatever other requests wait for.
//! - FI2: a search that can go around a lost node does so at the latest at half of the time that it has left.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;

use simshard_cluster::{CorpusRecord, CorpusState};
use simshard_proto::SearchSpec;
use simshard_proto::v1::{Completeness, Matches};
use simshard_simhash::Fingerprint;
use simshard_topology::NodeId;
use simshard_transport::Taken;
use tracing::debug;

use super::proof::Claim;
use super::rounds::Rounds;
use super::search_round::{Answers, SearchRound};
use super::{Failures, Router};
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::merge::{Merge, certificate};
use crate::offload::offload;
use crate::plan::{QueryPlan, plan_queries};
use crate::readers::Readers;
use crate::remembered::OpenCorpus;

/// A batch of queries.
#[derive(Clone, Debug)]
pub(crate) struct QueryBatch {
    pub(crate) queries: Arc<[Fingerprint]>,
    /// Of the request, or else of the corpus.
    pub(crate) max_distance: u32,
    pub(crate) spec: SearchSpec,
}

/// The answer to a batch of queries.
#[derive(Debug)]
pub(crate) struct FindOutcome {
    pub(crate) matches: Matches,
    /// Set where something may be missing.
    pub(crate) completeness: Option<Completeness>,
    /// What the answers of nodes take, which counts until the response is made.
    _memory: Vec<Taken>,
}

impl Router {
    /// Finds the matches of every query.
    ///
    /// Each round asks the nodes that were not lost in the rounds before, and goes around silent ones where it can. So
    /// there are at most as many rounds as nodes, those of [`Rounds`], and those that silence ends.
    pub(crate) async fn find(
        &self,
        corpus: &OpenCorpus,
        near: &QueryBatch,
        deadline: Deadline,
    ) -> Result<FindOutcome, RouterError> {
        let mut lost = Failures::default();
        let mut rounds = Rounds::new();
        loop {
            self.check_loaded(corpus, &lost).await?;
            let cluster = self.cluster.view();
            let is_replicated = cluster.layout.map().is_replicated();
            let avoided = lost.avoided(cluster.nodes.silent());
            let readers = cluster.readers(&avoided);
            let plan = plan(&readers, corpus, near, lost.down()).await?;
            if !plan.unreachable.is_empty() && !near.spec.allow_partial {
                lost.nodes = plan.unreachable;
                return Err(lost.error(&corpus.record.name));
            }
            let others = cluster.layout.nodes().len() > lost.nodes.len() + 1;
            let is_not_last = others && (is_replicated || may_go_around(corpus, near));
            let asked = SearchRound {
                watched: &self.cluster,
                cluster: &cluster,
                readers: &readers,
                avoided: &avoided,
                corpus,
                near,
                plan: &plan,
                deadline: if is_not_last {
                    deadline.half()
                } else {
                    deadline
                },
            };
            let Answers {
                answers,
                memory,
                failures,
            } = self.proven(&asked).await?;
            if failures.is_empty() {
                return complete(corpus, near, plan, answers, memory).await;
            }
            debug!(?failures, "a round of a search is lost");
            let is_again = failures.may_pass();
            lost.extend(failures);
            if is_again && !rounds.another(self, &cluster, deadline).await {
                let is_partial = near.spec.allow_partial && lost.give_up_cold();
                if !is_partial {
                    return Err(lost.error(&corpus.record.name));
                }
            }
        }
    }

    /// The answers of one round, proven. A round that is lost needs no proof: the next one has its own.
    async fn proven(&self, asked: &SearchRound<'_>) -> Result<Answers, RouterError> {
        let mut proof = pin!(self.prove(Claim {
            cluster: asked.cluster,
            readers: asked.readers,
            corpus: asked.corpus.record.uid,
            shards: asked.plan.shards(),
            down: &asked.avoided.down,
            readers_confirm: true,
            deadline: asked.deadline,
        }));
        let mut answers = pin!(asked.answers());
        let (answers, unproven) = tokio::select! {
            biased;
            answers = &mut answers => {
                let answers = answers?;
                if !answers.failures.is_empty() {
                    return Ok(answers);
                }
                (answers, proof.await)
            }
            unproven = &mut proof => {
                if unproven.is_stale_only() {
                    return Ok(Answers::lost(unproven));
                }
                (answers.await?, unproven)
            }
        };
        if !answers.failures.is_empty() {
            return Ok(answers);
        }
        if !unproven.nodes.is_empty() {
            return Err(unproven.error(&asked.corpus.record.name));
        }
        if !unproven.is_empty() {
            return Ok(Answers::lost(unproven));
        }
        Ok(answers)
    }

    /// Fails where going around nodes makes no sense, as the corpus is another.
    async fn check_loaded(&self, corpus: &OpenCorpus, lost: &Failures) -> Result<(), RouterError> {
        if let Some(node) = &lost.not_loaded
            && self.is_replaced(corpus).await?
        {
            return Err(RouterError::NotLoaded {
                node: node.clone(),
                corpus: corpus.record.name.clone(),
            });
        }
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
    near: &QueryBatch,
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
fn may_go_around(corpus: &OpenCorpus, near: &QueryBatch) -> bool {
    near.spec.allow_partial || near.max_distance < corpus.layout().distance()
}

/// The answers of all nodes in one, and what may be missing.
async fn complete(
    corpus: &OpenCorpus,
    near: &QueryBatch,
    plan: QueryPlan,
    answers: Vec<(usize, Matches)>,
    memory: Vec<Taken>,
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
            _memory: memory,
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
    use simshard_cluster::{CorpusName, random_corpus_uid};
    use simshard_transport::Budget;

    use super::*;

    /// Merging, and making rows, take about as much memory again.
    #[tokio::test]
    async fn what_nodes_answered_counts_until_the_response_is_made() {
        let record = CorpusRecord {
            name: CorpusName::new("c").unwrap(),
            uid: random_corpus_uid(),
            blocks: 5,
            distance: 3,
            recipe: "words-v3".to_owned(),
            create_time: std::time::SystemTime::UNIX_EPOCH,
            state: CorpusState::Live,
        };
        let corpus = OpenCorpus::new(record).unwrap();
        let near = QueryBatch {
            queries: [Fingerprint(7)].into(),
            max_distance: 3,
            spec: SearchSpec::default(),
        };
        let budget = Budget::new(100);
        let memory = vec![budget.take(10)];
        let plan = QueryPlan::default();
        let found = complete(&corpus, &near, plan, Vec::new(), memory).await;
        assert!(budget.try_take(95).is_none());
        drop(found.unwrap());
        assert!(budget.try_take(95).is_some());
    }
}
