//! Inserting and removing: each document to every shard that stores it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use simshard_proto::{Documents, shard::v1 as pb, shards_from};
use simshard_topology::NodeId;

use super::{Failures, Router};
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::{CallError, Client};
use crate::offload::offload;
use crate::plan::{Part, plan_documents};

/// What is done with documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    Remove,
}

impl Router {
    /// Inserts or removes documents; returns how many of them changed anything.
    /// Once it answers, every shard of every document has it.
    pub(crate) async fn change(
        &self,
        corpus: &OpenCorpus,
        change: Change,
        documents: Arc<Documents>,
        deadline: Deadline,
    ) -> Result<u64, RouterError> {
        let parts = self.part_documents(corpus, Arc::clone(&documents)).await?;
        let calls = parts.into_iter().map(async |(node, part)| {
            let shards = part.shards;
            let answer = self
                .change_on(&node, corpus, change, &part, &documents, deadline)
                .await;
            (node, shards, answer)
        });
        let mut changed = 0;
        let mut failures = Failures::default();
        for (node, shards, answer) in join_all(calls).await {
            match answer {
                Ok(count) => changed += count,
                Err(error) => failures.note(node, shards, error)?,
            }
        }
        failures.check(&corpus.record.name)?;
        Ok(changed)
    }

    async fn part_documents(
        &self,
        corpus: &OpenCorpus,
        documents: Arc<Documents>,
    ) -> Result<BTreeMap<NodeId, Part>, RouterError> {
        let tables = Arc::clone(&corpus.tables);
        let layout = Arc::clone(&self.layout);
        offload(documents.len(), move || {
            plan_documents(&tables, layout.map(), &documents.fingerprints)
        })
        .await
    }

    async fn change_on(
        &self,
        node: &NodeId,
        corpus: &OpenCorpus,
        change: Change,
        part: &Part,
        documents: &Documents,
        deadline: Deadline,
    ) -> Result<u64, CallError> {
        let selected = documents.select(&part.places);
        let corpus_uid = corpus.record.uid.to_string();
        let shards = shards_from(part.shards);
        let fingerprints = selected.fingerprints.iter().map(|value| value.0).collect();
        let ids = selected.ids;
        match change {
            Change::Insert => {
                let request = pb::InsertRequest {
                    corpus_uid,
                    shards,
                    fingerprints,
                    ids,
                };
                let call = async |mut client: Client, request| client.insert(request).await;
                let answer = self.nodes.call(node, deadline, &request, call).await?;
                Ok(answer.inserted_count)
            }
            Change::Remove => {
                let request = pb::RemoveRequest {
                    corpus_uid,
                    shards,
                    fingerprints,
                    ids,
                };
                let call = async |mut client: Client, request| client.remove(request).await;
                let answer = self.nodes.call(node, deadline, &request, call).await?;
                Ok(answer.removed_count)
            }
        }
    }
}
