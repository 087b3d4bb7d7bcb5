//! Inserting and removing: each document to every shard that stores it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use simshard_proto::{Documents, shard::v1 as pb, shards_from};
use simshard_topology::{NodeId, Version};

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

/// How often a change is sent, at most, with versions ever higher, before it gives way to others.
const ATTEMPTS: usize = 8;

/// What the nodes made of a change.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Documents that changed.
    changed: u64,
    /// The highest version that stood against it.
    newer: Version,
}

impl Router {
    /// Inserts or removes documents; returns how many of them changed anything. Once it answers, every shard
    /// of every document has the change, durably.
    pub(crate) async fn change(
        &self,
        corpus: &OpenCorpus,
        change: Change,
        documents: Arc<Documents>,
        deadline: Deadline,
    ) -> Result<u64, RouterError> {
        let parts = self.part_documents(corpus, Arc::clone(&documents)).await?;
        let mut changed = 0;
        for _ in 0..ATTEMPTS {
            let version = self.clock.now();
            let send = Sending {
                corpus,
                change,
                version,
                documents: &documents,
                deadline,
            };
            let outcome = self.change_everywhere(&send, &parts).await?;
            changed += outcome.changed;
            if outcome.newer == Version::NONE {
                return Ok(changed);
            }
            self.clock.observe(outcome.newer);
        }
        Err(RouterError::WriteConflict)
    }

    async fn change_everywhere(
        &self,
        send: &Sending<'_>,
        parts: &BTreeMap<NodeId, Part>,
    ) -> Result<Outcome, RouterError> {
        let calls = parts
            .iter()
            .map(async |(node, part)| (node, part, self.change_on(node, send, part).await));
        let mut sum = Outcome::default();
        let mut failures = Failures::default();
        for (node, part, answer) in join_all(calls).await {
            match answer {
                Ok(outcome) => {
                    sum.changed += outcome.changed;
                    sum.newer = sum.newer.max(outcome.newer);
                }
                Err(error) => failures.note(node.clone(), part.shards, error)?,
            }
        }
        failures.check(&send.corpus.record.name)?;
        Ok(sum)
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
        send: &Sending<'_>,
        part: &Part,
    ) -> Result<Outcome, CallError> {
        let selected = send.documents.select(&part.places);
        let corpus_uid = send.corpus.record.uid.to_string();
        let shards = shards_from(part.shards);
        let fingerprints = selected.fingerprints.iter().map(|value| value.0).collect();
        let (ids, version) = (selected.ids, send.version.0);
        match send.change {
            Change::Insert => {
                let request = pb::InsertRequest {
                    corpus_uid,
                    shards,
                    fingerprints,
                    ids,
                    version,
                };
                let call = async |mut client: Client, request| client.insert(request).await;
                let answer = self.nodes.call(node, send.deadline, &request, call).await?;
                Ok(Outcome {
                    changed: answer.inserted_count,
                    newer: Version(answer.newer_version),
                })
            }
            Change::Remove => {
                let request = pb::RemoveRequest {
                    corpus_uid,
                    shards,
                    fingerprints,
                    ids,
                    version,
                };
                let call = async |mut client: Client, request| client.remove(request).await;
                let answer = self.nodes.call(node, send.deadline, &request, call).await?;
                Ok(Outcome {
                    changed: answer.removed_count,
                    newer: Version(answer.newer_version),
                })
            }
        }
    }
}

/// A change as it is sent to the nodes.
struct Sending<'a> {
    corpus: &'a OpenCorpus,
    change: Change,
    version: Version,
    documents: &'a Documents,
    deadline: Deadline,
}
