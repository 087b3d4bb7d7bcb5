//! Creating, describing, listing and deleting corpora.

use std::time::SystemTime;

use futures_util::future::join_all;
use simshard_cluster::{CorpusName, CorpusRecord, CorpusUid, MetadataError, Node};
use simshard_proto::shard::v1 as pb;
use simshard_simhash::{Layout, Recipe};
use simshard_topology::ShardSet;
use tonic::{Response, Status};

use super::{Failures, Router};
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::{CallError, Client};

/// A corpus to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewCorpus {
    pub(crate) name: CorpusName,
    pub(crate) layout: Layout,
    pub(crate) recipe: Recipe,
}

/// What the nodes hold of a corpus: `None` where one did not answer.
pub(crate) type CorpusContents = Vec<(Node, Option<pb::DescribeCorpusResponse>)>;

impl Router {
    /// Makes an empty corpus on every node, then makes it known.
    pub(crate) async fn create(
        &self,
        new: NewCorpus,
        deadline: Deadline,
    ) -> Result<CorpusRecord, RouterError> {
        if self.store.corpus(&new.name).await?.is_some() {
            return Err(RouterError::CorpusExists(new.name));
        }
        let record = CorpusRecord {
            name: new.name.clone(),
            uid: CorpusUid::random(),
            blocks: new.layout.blocks(),
            distance: new.layout.distance(),
            recipe: new.recipe.name().to_owned(),
            create_time: SystemTime::now(),
        };
        let request = pb::CreateCorpusRequest {
            corpus_uid: record.uid.to_string(),
            blocks: record.blocks,
            distance: record.distance,
        };
        let create = async |mut client: Client, request| client.create_corpus(request).await;
        let created = self.on_every_node(deadline, &request, create).await;
        let outcome = match created {
            Ok(()) => self.make_known(record.clone()).await,
            Err(error) => Err(error),
        };
        // Nobody will ever use what the nodes made, unless the store may know it:
        // after any other failure of the store, it might.
        if matches!(&outcome, Err(error) if !matches!(error, RouterError::Metadata(_))) {
            let _ = self.drop_from_nodes(record.uid, deadline).await;
        }
        outcome.map(|()| record)
    }

    async fn make_known(&self, record: CorpusRecord) -> Result<(), RouterError> {
        let name = record.name.clone();
        let created = self.store.create_corpus(record).await;
        created.map_err(|error| {
            // Another router may have been faster.
            match matches!(error, MetadataError::AlreadyExists { .. }) {
                true => RouterError::CorpusExists(name),
                false => error.into(),
            }
        })
    }

    /// Deletes a corpus: its documents first, so that nothing is left behind if
    /// a node is unreachable; then it can be tried again.
    pub(crate) async fn delete(
        &self,
        name: &CorpusName,
        deadline: Deadline,
    ) -> Result<(), RouterError> {
        let corpus = self.corpora.reread(name).await?;
        self.drop_from_nodes(corpus.record.uid, deadline).await?;
        let deleted = self.store.delete_corpus(name, &corpus.record.uid).await;
        // Whatever came of it, what is remembered is no longer right.
        let _ = self.corpora.reread(name).await;
        match deleted {
            Err(MetadataError::NotFound { .. }) => Err(RouterError::CorpusNotFound(name.clone())),
            other => Ok(other?),
        }
    }

    /// All corpora, by name.
    pub(crate) async fn list(&self) -> Result<Vec<CorpusRecord>, RouterError> {
        Ok(self.store.corpora().await?)
    }

    /// What each node holds of a corpus, by node name.
    pub(crate) async fn contents(
        &self,
        corpus: &OpenCorpus,
        deadline: Deadline,
    ) -> Result<CorpusContents, RouterError> {
        let request = pb::DescribeCorpusRequest {
            corpus_uid: corpus.record.uid.to_string(),
        };
        let describe = async |mut client: Client, request| client.describe_corpus(request).await;
        let calls = self.layout.nodes().iter().map(async |node| {
            let answer = self
                .nodes
                .call(&node.id, deadline, &request, describe)
                .await;
            (node.clone(), answer)
        });
        let mut contents = CorpusContents::new();
        for (node, answer) in join_all(calls).await {
            match answer {
                Ok(answer) => contents.push((node, Some(answer))),
                Err(CallError::Refused(status)) => {
                    return Err(RouterError::Node {
                        node: node.id,
                        status,
                    });
                }
                Err(CallError::Late | CallError::Unreachable) => contents.push((node, None)),
            }
        }
        contents.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        Ok(contents)
    }

    /// The shards that the map gives a node.
    pub(crate) fn shards_of(&self, node: &Node) -> ShardSet {
        self.layout.map().shards_of(&node.id)
    }

    async fn drop_from_nodes(&self, uid: CorpusUid, deadline: Deadline) -> Result<(), RouterError> {
        let request = pb::DeleteCorpusRequest {
            corpus_uid: uid.to_string(),
        };
        let delete = async |mut client: Client, request| client.delete_corpus(request).await;
        self.on_every_node(deadline, &request, delete).await
    }

    async fn on_every_node<M, A, F>(
        &self,
        deadline: Deadline,
        request: &M,
        method: impl Fn(Client, M) -> F,
    ) -> Result<(), RouterError>
    where
        M: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let method = &method;
        let calls = self.layout.nodes().iter().map(async |node| {
            let answer = self.nodes.call(&node.id, deadline, request, method).await;
            (node, answer)
        });
        let mut failures = Failures::default();
        for (node, answer) in join_all(calls).await {
            if let Err(error) = answer {
                failures.note(node.id.clone(), self.shards_of(node), error)?;
            }
        }
        failures.check()
    }
}
