//! Inserting and removing: each document to every shard that stores it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_request::Work;
use simshard_proto::shard::v1::work_response::Outcome;
use simshard_proto::{Documents, bits_into, shards_from};
use simshard_topology::{NodeId, Version};

use super::{Failures, Router};
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::CallError;
use crate::offload::offload;
use crate::plan::{Part, plan_documents};

/// What is done with documents.
pub(crate) use simshard_proto::shard::v1::ChangeKind as Change;

/// How often a change is sent, at most, with versions ever higher, before it gives way to others.
const ATTEMPTS: usize = 8;

impl Router {
    /// Inserts or removes documents; returns which of them changed anything. Once it answers, every shard of
    /// every document has the change, durably.
    pub(super) async fn change_alone(
        &self,
        corpus: &OpenCorpus,
        change: Change,
        documents: Arc<Documents>,
        deadline: Deadline,
    ) -> Result<Vec<bool>, RouterError> {
        let parts = self.part_documents(corpus, Arc::clone(&documents)).await?;
        let mut changed = vec![false; documents.len()];
        for _ in 0..ATTEMPTS {
            let version = self.clock.now();
            let send = Sending {
                corpus,
                change,
                version,
                documents: &documents,
                deadline,
            };
            let newer = self.change_everywhere(&send, &parts, &mut changed).await?;
            if newer == Version::NONE {
                return Ok(changed);
            }
            self.clock.observe(newer);
        }
        Err(RouterError::WriteConflict)
    }

    /// Has every node change its part, and notes which documents changed; returns the highest version that stood
    /// against it.
    async fn change_everywhere(
        &self,
        send: &Sending<'_>,
        parts: &BTreeMap<NodeId, Part>,
        changed: &mut [bool],
    ) -> Result<Version, RouterError> {
        let calls = parts
            .iter()
            .map(async |(node, part)| (node, part, self.change_on(node, send, part).await));
        let mut newer = Version::NONE;
        let mut failures = Failures::default();
        for (node, part, answer) in join_all(calls).await {
            match answer {
                Ok(answer) => {
                    newer = newer.max(Version(answer.newer_version));
                    for place in bits_into(part.places.len(), &answer.documents) {
                        changed[part.places[place] as usize] = true;
                    }
                }
                Err(error) => failures.note(node.clone(), part.shards, error)?,
            }
        }
        failures.check(&send.corpus.record.name)?;
        Ok(newer)
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
    ) -> Result<pb::Changed, CallError> {
        let work = || {
            let selected = send.documents.select(&part.places);
            Work::Change(pb::Change {
                corpus_uid: send.corpus.record.uid.to_string(),
                kind: send.change.into(),
                shards: shards_from(part.shards),
                fingerprints: selected.fingerprints.iter().map(|value| value.0).collect(),
                ids: selected.ids,
                version: send.version.0,
            })
        };
        let items = part.places.len();
        match self.nodes.work(node, send.deadline, items, work).await? {
            Outcome::Changed(changed) => Ok(changed),
            Outcome::Matches(_) | Outcome::Status(_) => Err(CallError::nonsense()),
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
