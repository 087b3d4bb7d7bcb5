//! Finding: ask the needed shards, plan again around nodes that are lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use simshard_proto::v1::{Completeness, Matches};
use simshard_proto::{shard::v1 as pb, shards_from};
use simshard_simhash::{Fingerprint, LeadGroups};
use simshard_topology::NodeId;
use tracing::warn;

use super::{Failures, Router};
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::merge::{Merge, certificate};
use crate::nodes::{CallError, Client};
use crate::offload::offload;
use crate::plan::{Part, QueryPlan, plan_queries};

/// A batch of queries.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    pub(crate) queries: Arc<[Fingerprint]>,
    pub(crate) max_distance: u32,
    /// Most matches a query; 0 means all.
    pub(crate) limit: u32,
    /// Most ids a match; 0 means all.
    pub(crate) max_ids: u32,
    pub(crate) allow_partial: bool,
}

/// The answer to a batch of queries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) matches: Matches,
    /// Set where something may be missing.
    pub(crate) completeness: Option<Completeness>,
}

impl Router {
    /// Finds the matches of every query.
    ///
    /// Each round asks the nodes that were not lost in the rounds before, so
    /// there are at most as many rounds as nodes.
    pub(crate) async fn find(
        &self,
        corpus: &OpenCorpus,
        near: &Near,
        deadline: Deadline,
    ) -> Result<Found, RouterError> {
        let mut down = BTreeSet::new();
        let mut late = false;
        loop {
            let plan = self.plan(corpus, near, down.clone()).await?;
            if !plan.unreachable.is_empty() && !near.allow_partial {
                let nodes = plan.unreachable;
                return Err(RouterError::Unreachable { nodes, late });
            }
            // Where lost nodes can be gone around, that needs time too.
            let avoidable = near.max_distance < corpus.layout().distance();
            let round = match near.allow_partial || avoidable {
                true => deadline.half(),
                false => deadline,
            };
            let (merge, lost) = self.ask(corpus, near, &plan, round).await?;
            if lost.nodes.is_empty() {
                return finish(corpus, near, plan, merge).await;
            }
            warn!(nodes = ?lost.nodes.keys(), late = lost.late, "nodes are lost to a search");
            late |= lost.late;
            down.extend(lost.nodes.into_keys());
        }
    }

    async fn plan(
        &self,
        corpus: &OpenCorpus,
        near: &Near,
        down: BTreeSet<NodeId>,
    ) -> Result<QueryPlan, RouterError> {
        let tables = Arc::clone(&corpus.tables);
        let layout = Arc::clone(&self.layout);
        let queries = Arc::clone(&near.queries);
        let max_distance = near.max_distance;
        offload(near.queries.len(), move || {
            plan_queries(&tables, layout.map(), &queries, max_distance, &down)
        })
        .await
    }

    /// Asks every node of a plan; the answers of those that gave one.
    async fn ask(
        &self,
        corpus: &OpenCorpus,
        near: &Near,
        plan: &QueryPlan,
        deadline: Deadline,
    ) -> Result<(Merge, Failures), RouterError> {
        let calls = plan.requests.iter().map(async |(groups, node, part)| {
            let answer = self
                .find_on(node, corpus, near, *groups, part, deadline)
                .await;
            (node, part, answer)
        });
        let mut merge = Merge::new(near.queries.len(), near.limit);
        let mut lost = Failures::default();
        for (node, part, answer) in join_all(calls).await {
            match answer {
                Ok(matches) => merge.add(&part.places, matches).map_err(|problem| {
                    let node = node.clone();
                    RouterError::Malformed { node, problem }
                })?,
                Err(error) => lost.note(node.clone(), part.shards, error)?,
            }
        }
        Ok((merge, lost))
    }

    async fn find_on(
        &self,
        node: &NodeId,
        corpus: &OpenCorpus,
        near: &Near,
        groups: LeadGroups,
        part: &Part,
        deadline: Deadline,
    ) -> Result<Matches, CallError> {
        let query = |&place: &u32| near.queries[place as usize].0;
        let request = pb::FindAllRequest {
            corpus_uid: corpus.record.uid.to_string(),
            shards: shards_from(part.shards),
            active_lead_groups: groups.0,
            max_distance: near.max_distance,
            limit: near.limit,
            max_ids: near.max_ids,
            fingerprints: part.places.iter().map(query).collect(),
        };
        let call = async |mut client: Client, request| client.find_all(request).await;
        let answer = self.nodes.call(node, deadline, &request, call).await?;
        Ok(answer.matches.unwrap_or_default())
    }
}

async fn finish(
    corpus: &OpenCorpus,
    near: &Near,
    plan: QueryPlan,
    merge: Merge,
) -> Result<Found, RouterError> {
    let matches = offload(near.queries.len(), move || merge.finish()).await?;
    let completeness = (!plan.missing.is_empty()).then(|| {
        certificate(
            corpus.layout(),
            near.max_distance,
            &plan.missing,
            &plan.unreachable,
        )
    });
    Ok(Found {
        matches,
        completeness,
    })
}
