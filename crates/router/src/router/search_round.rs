//! One round of a search: every node of the plan is asked.

use std::future::ready;

use prost::bytes::Bytes;
use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::v1::Matches;
use simshard_proto::{MAX_MESSAGE_BYTES, Reason, limit_from, matches_from_bytes, shards_from};
use simshard_simhash::LeadGroups;
use simshard_topology::{NodeId, ShardSet};
use simshard_transport::{Taken, WorkKind};
use tonic::Status;

use super::Failures;
use super::find::QueryBatch;
use super::silence::{AskedNode, unless_lost};
use crate::cluster::{ClusterView, WatchedCluster};
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::{CallError, call_all};
use crate::offload::offload;
use crate::plan::{NodePart, QueryPlan};
use crate::readers::{Avoided, Readers, others};
use crate::remembered::OpenCorpus;

/// Nodes that a request asks at once: their answers are in memory together.
const AT_ONCE: usize = 16;

/// One round of a search.
pub(super) struct SearchRound<'a> {
    pub(super) watched: &'a WatchedCluster,
    pub(super) cluster: &'a ClusterView,
    pub(super) readers: &'a Readers,
    /// What is known against replicas.
    pub(super) avoided: &'a Avoided,
    pub(super) corpus: &'a OpenCorpus,
    pub(super) near: &'a QueryBatch,
    pub(super) plan: &'a QueryPlan,
    pub(super) deadline: Deadline,
}

/// What came of a round.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Of the nodes that gave one, each with the place of its request.
    pub(super) answers: Vec<(usize, Matches)>,
    /// The memory that they take.
    pub(super) memory: Vec<Taken>,
    /// The nodes that gave none.
    pub(super) failures: Failures,
}

impl Answers {
    /// Those of a round that counts for nothing.
    pub(super) fn lost(failures: Failures) -> Self {
        Self {
            failures,
            ..Self::default()
        }
    }
}

impl SearchRound<'_> {
    /// Asks every node of the plan.
    pub(super) async fn answers(&self) -> Result<Answers, RouterError> {
        let requests = &self.plan.requests;
        let mut round = Answers::default();
        let mut bytes = 0;
        let calls = requests
            .iter()
            .map(|(groups, node, part)| self.answer_in_time(node, *groups, part));
        call_all(calls, AT_ONCE, self.deadline, |place, answer| {
            let (_, node, part) = &requests[place];
            match answer {
                Ok((matches, size, taken)) => {
                    bytes += size;
                    round.answers.push((place, matches));
                    round.memory.push(taken);
                }
                Err(CallError::Refused(status))
                    if is_spared(
                        &self.cluster.layout,
                        self.avoided,
                        node,
                        part.shards,
                        &status,
                    ) =>
                {
                    if Reason::of(&status) == Some(Reason::StorageFailed) {
                        let nodes = &self.cluster.nodes;
                        nodes.note_damage(node, part.shards, status.message());
                    }
                    round.failures.damaged(node.clone(), part.shards);
                }
                Err(error) => round.failures.note(node.clone(), part.shards, error)?,
            }
            if bytes > most_bytes(self.near) {
                return Err(RouterError::AnswerTooLarge);
            }
            Ok(())
        })
        .await?;
        Ok(round)
    }

    /// The answer of one node, unless others may answer for it sooner.
    async fn answer_in_time(
        &self,
        node: &NodeId,
        groups: LeadGroups,
        part: &NodePart,
    ) -> Result<(Matches, usize, Taken), CallError> {
        let answer = self.answer_of(node, groups, part);
        if !self.cluster.layout.map().is_replicated() {
            return answer.await;
        }
        let around = AskedNode {
            watched: self.watched,
            cluster: self.cluster,
            avoided: self.avoided,
            node,
            shards: part.shards,
        };
        unless_lost(&around, answer).await
    }

    /// The answer of one node, its [`size`], and the memory that it takes.
    async fn answer_of(
        &self,
        node: &NodeId,
        groups: LeadGroups,
        part: &NodePart,
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
        let kind = WorkKind::Search(part.places.len());
        let answer = cluster.nodes.work(node, self.deadline, kind, work).await?;
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

/// Whether a node refuses as it cannot read shards, or lacks the corpus and does not reach the metadata, where others
/// answer.
fn is_spared(
    layout: &ClusterLayout,
    avoided: &Avoided,
    node: &NodeId,
    shards: ShardSet,
    status: &Status,
) -> bool {
    let reasons = [Reason::StorageFailed, Reason::MetadataFailed].map(Some);
    let is_its_own = reasons.contains(&Reason::of(status));
    let has_other = |shard| others(layout, node, shard, avoided).next().is_some();
    is_its_own && shards.iter().all(has_other)
}

/// The matches of an answer, and their [`size`].
async fn decoded(bytes: Bytes) -> Result<(Matches, usize), CallError> {
    let decoded = offload(bytes.len() / 64, move || {
        let matches = matches_from_bytes(bytes).map_err(|_| CallError::nonsense())?;
        let size = size(&matches);
        Ok((matches, size))
    });
    // Without an outcome, the runtime is going down.
    decoded.await.unwrap_or(Err(CallError::Unreachable))
}

/// Bytes of an answer, about, from below.
fn size(matches: &Matches) -> usize {
    let ids: usize = matches.ids.iter().map(String::len).sum();
    ids + 10 * matches.fingerprints.len()
}

/// Most bytes of all answers together. Where a limit may still cut them, they
/// are allowed to be more than fit the merged answer.
fn most_bytes(near: &QueryBatch) -> usize {
    match near.spec.limit {
        None => MAX_MESSAGE_BYTES,
        Some(_) => 8 * MAX_MESSAGE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use prost::Message;
    use simshard_cluster::Node;

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
    #[test]
    fn what_fails_one_replica_alone_fails_no_search_while_others_answer() {
        let node = |number| NodeId::new(&format!("n{number}")).unwrap();
        let layout = |replicas| {
            let nodes = (1..=2).map(|number| Node {
                id: node(number),
                address: format!("http://127.0.0.1:{}", 7000 + number),
            });
            ClusterLayout::planned(nodes.collect(), replicas).unwrap()
        };
        let (one, two) = (layout(1), layout(2));
        let first = node(1);
        let refuses = |layout: &ClusterLayout, avoided: &Avoided, reason: Reason| {
            let shards = layout.map().shards_of(&first);
            is_spared(layout, avoided, &first, shards, &reason.status("no", []))
        };
        let nothing = Avoided::default();
        assert!(refuses(&two, &nothing, Reason::StorageFailed));
        assert!(refuses(&two, &nothing, Reason::MetadataFailed));
        assert!(!refuses(&one, &nothing, Reason::MetadataFailed));
        assert!(!refuses(&two, &nothing, Reason::Internal));
        assert!(!refuses(&one, &nothing, Reason::StorageFailed));
        let damaged = Avoided {
            damaged: [(node(2), ShardSet::ALL)].into(),
            ..Avoided::default()
        };
        assert!(!refuses(&two, &damaged, Reason::StorageFailed));
    }
}
