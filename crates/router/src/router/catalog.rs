//! Creating, describing, listing and deleting corpora.
//!
//! # Invariants
//! - RC1: whatever corpus a node with shards holds has a record. A router writes it before a node makes the corpus, and
//!   removes it after all these nodes have dropped the corpus for good. A node that was away drops it before it is in
//!   sync again (AG1).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use simshard_cluster::{Corpora, CorpusName, CorpusRecord, CorpusState, Node, random_corpus_uid};
use simshard_proto::shard::v1 as pb;
use simshard_proto::v1::NodeState;
use simshard_proto::{Reason, shards_into};
use simshard_simhash::{Layout, Recipe};
use simshard_topology::ShardSet;
use tokio::time::{Instant, timeout};
use tonic::{Response, Status};

use super::silence::unless_silent;
use super::{Failures, Router};
use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::{CallError, Client};
use crate::readers::Avoided;
use crate::remembered::OpenCorpus;

/// How long nodes may take to say that they serve a corpus.
const SERVING_TIMEOUT: Duration = Duration::from_secs(2);

/// How long nodes that register themselves have to make a corpus before its creation is answered.
const MAKING_TIMEOUT: Duration = Duration::from_secs(1);

/// A corpus to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewCorpus {
    pub(crate) name: CorpusName,
    pub(crate) layout: Layout,
    pub(crate) recipe: Recipe,
}

/// What each node holds of a corpus, or why that is not known.
pub(crate) type CorpusContents = Vec<(Node, Result<pb::DescribeCorpusResponse, NodeState>)>;

impl Router {
    /// Makes an empty corpus, or completes its creation. Goes on to its end even if the client does not wait.
    pub(crate) async fn create(
        self: &Arc<Self>,
        new: NewCorpus,
        deadline: Deadline,
    ) -> Result<CorpusRecord, RouterError> {
        let router = Arc::clone(self);
        let creation = tokio::spawn(async move { router.create_now(new, deadline).await });
        creation.await.unwrap_or_else(|ended| Err(ended.into()))
    }

    /// The record comes first, so that no node ever holds a corpus that has none.
    async fn create_now(
        &self,
        new: NewCorpus,
        deadline: Deadline,
    ) -> Result<CorpusRecord, RouterError> {
        let record = self.begin_creation(new, deadline).await?;
        // This router may remember an earlier corpus of that name.
        self.remembered.forget(&record.name);
        let made = async {
            // Nodes that register themselves make what they lack.
            if !self.metadata.names_stores() {
                self.create_on_nodes(&record, deadline).await?;
            }
            let finished = self.metadata.finish_creation(&record.name, &record.uid);
            finished.await
        };
        if let Err(problem) = made.await {
            return Err(self.not_created(&record, problem).await);
        }
        if self.metadata.names_stores() {
            // So those need no metadata for it that do not reach it. If any is away, it makes the corpus later.
            let made = self.create_on_nodes(&record, deadline);
            let _made_or_not = timeout(MAKING_TIMEOUT, made).await;
        }
        Ok(CorpusRecord {
            state: CorpusState::Live,
            ..record
        })
    }

    /// The record of a creation: a new one, or that of a creation with the same configuration that was cut short.
    async fn begin_creation(
        &self,
        new: NewCorpus,
        deadline: Deadline,
    ) -> Result<CorpusRecord, RouterError> {
        let corpora = self.metadata.corpora().await?;
        // The store decides, but nodes need not be asked where the name is taken for certain.
        let taken = corpora.get(&new.name);
        if let Some(taken) = taken.filter(|record| record.state != CorpusState::Creating) {
            return Err(RouterError::taken(new.name, taken.state));
        }
        self.check_no_loss(corpora, deadline).await?;
        if Instant::now() >= deadline.instant() {
            return Err(RouterError::Late);
        }
        let record = CorpusRecord {
            name: new.name,
            uid: random_corpus_uid(),
            blocks: new.layout.blocks(),
            distance: new.layout.distance(),
            recipe: new.recipe.to_string(),
            create_time: SystemTime::now(),
            state: CorpusState::Creating,
        };
        self.metadata.create_corpus(record, self.max_corpora).await
    }

    /// Why a creation that had begun is not complete: the problem, unless another call completed it, or deleted the
    /// corpus.
    async fn not_created(&self, record: &CorpusRecord, problem: RouterError) -> RouterError {
        let corpus = record.name.clone();
        match self.metadata.corpus(&corpus).await {
            Ok(None) => RouterError::CorpusNotFound(corpus),
            Ok(Some(now)) if now.state != CorpusState::Creating => {
                RouterError::taken(corpus, now.state)
            }
            Ok(Some(_)) | Err(_) => RouterError::Unfinished {
                corpus,
                state: CorpusState::Creating,
                problem: Box::new(problem),
            },
        }
    }

    async fn create_on_nodes(
        &self,
        record: &CorpusRecord,
        deadline: Deadline,
    ) -> Result<(), RouterError> {
        let request = |cluster: &ClusterView, node: &Node| pb::CreateCorpusRequest {
            target: Some(cluster.target_of_all(record)),
            node: node.id.to_string(),
        };
        let create = async |mut client: Client, request| client.create_corpus(request).await;
        let cluster = self.cluster.view();
        self.on_every_node(&cluster, &record.name, deadline, request, create)
            .await
    }

    /// Deletes a corpus, or completes its deletion. Goes on to its end even if the client does not wait.
    pub(crate) async fn delete(
        self: &Arc<Self>,
        name: &CorpusName,
        deadline: Deadline,
    ) -> Result<(), RouterError> {
        let (router, name) = (Arc::clone(self), name.clone());
        let deletion = tokio::spawn(async move { router.delete_now(&name, deadline).await });
        deletion.await.unwrap_or_else(|ended| Err(ended.into()))
    }

    async fn delete_now(&self, name: &CorpusName, deadline: Deadline) -> Result<(), RouterError> {
        let Some(record) = self.metadata.corpus(name).await? else {
            return Err(self.absent(name).await);
        };
        match record.state {
            CorpusState::Creating | CorpusState::Live if !self.metadata.names_stores() => {
                self.check_all_answer(&record, deadline).await?;
            }
            CorpusState::Creating | CorpusState::Live | CorpusState::Deleting => {}
        }
        let begun = self.metadata.begin_deletion(name, &record.uid).await;
        // Whatever came of it, what is remembered may no longer be right.
        self.remembered.forget(name);
        begun?;
        let gone = self.delete_begun(&record, deadline).await;
        gone.map_err(|problem| RouterError::Unfinished {
            corpus: name.clone(),
            state: CorpusState::Deleting,
            problem: Box::new(problem),
        })
    }

    /// Refuses to begin a deletion that cannot be completed now: a corpus is unusable until its deletion is complete.
    async fn check_all_answer(
        &self,
        record: &CorpusRecord,
        deadline: Deadline,
    ) -> Result<(), RouterError> {
        let corpus = OpenCorpus::new(record.clone())?;
        let mut silent = Failures::default();
        for (node, answer) in self.contents(&corpus, deadline).await? {
            if matches!(
                answer,
                Err(NodeState::Unreachable | NodeState::OtherRecords)
            ) {
                let shards = self.cluster.view().shards_of(&node);
                silent.nodes.insert(node.id, shards);
            }
        }
        silent.check(&corpus.record.name)
    }

    /// Frees the name once every node with shards has dropped the corpus for good. Other routers may remember its uid, and
    /// such a node that still held it would take their documents.
    async fn delete_begun(
        &self,
        record: &CorpusRecord,
        deadline: Deadline,
    ) -> Result<(), RouterError> {
        self.drop_from_nodes(record, deadline).await?;
        let finished = self.metadata.finish_deletion(&record.name, &record.uid);
        match finished.await {
            // Another router was faster.
            Err(RouterError::CorpusNotFound(_)) => Ok(()),
            outcome => outcome,
        }
    }

    /// All corpora, by name.
    pub(crate) async fn list(&self) -> Result<Arc<Corpora>, RouterError> {
        self.known_corpora().await
    }

    /// What each node holds of a corpus, by node name.
    pub(crate) async fn contents(
        &self,
        corpus: &OpenCorpus,
        deadline: Deadline,
    ) -> Result<CorpusContents, RouterError> {
        let cluster = self.cluster.view();
        self.contents_by(&cluster, corpus, deadline).await
    }

    /// The same, by the cluster as it was seen. Where a node is not the only one, it must give signs of life.
    async fn contents_by(
        &self,
        cluster: &ClusterView,
        corpus: &OpenCorpus,
        deadline: Deadline,
    ) -> Result<CorpusContents, RouterError> {
        let is_replicated = cluster.layout.map().is_replicated();
        let describe = async |mut client: Client, request| client.describe_corpus(request).await;
        let calls = cluster.layout.nodes().iter().map(async |node| {
            let request = pb::DescribeCorpusRequest {
                target: Some(cluster.target_of_all(&corpus.record)),
                node: node.id.to_string(),
            };
            let nodes = &cluster.nodes;
            let answer = nodes.call(&node.id, deadline, &request, describe);
            let answer = if is_replicated {
                unless_silent(cluster, &node.id, answer).await
            } else {
                answer.await
            };
            (node.clone(), answer)
        });
        let mut contents = CorpusContents::new();
        for (node, answer) in join_all(calls).await {
            let answer = match answer.map_err(|error| state_of(error, is_replicated)) {
                Ok(answer) => Ok(answer),
                Err(Ok(state)) => Err(state),
                Err(Err(status)) => {
                    return Err(RouterError::Node {
                        node: node.id,
                        status,
                    });
                }
            };
            contents.push((node, answer));
        }
        contents.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        Ok(contents)
    }

    /// The nodes that do not serve a corpus now, and the shards that the others do not serve.
    pub(super) async fn not_serving(
        &self,
        cluster: &ClusterView,
        corpus: &OpenCorpus,
    ) -> Result<Avoided, RouterError> {
        let mut avoided = Avoided::default();
        let looked = self.contents_by(cluster, corpus, Deadline::within(SERVING_TIMEOUT));
        for (node, answer) in looked.await? {
            match answer.map(|answer| shards_into(&answer.shards)) {
                Ok(Ok(served)) => {
                    let others = ShardSet::ALL.difference(&served);
                    avoided.cold.insert(node.id, others);
                }
                Ok(Err(_)) | Err(_) => drop(avoided.down.insert(node.id)),
            }
        }
        Ok(avoided)
    }

    async fn drop_from_nodes(
        &self,
        record: &CorpusRecord,
        deadline: Deadline,
    ) -> Result<(), RouterError> {
        let request = |cluster: &ClusterView, node: &Node| pb::DeleteCorpusRequest {
            target: Some(cluster.target_of_all(record)),
            node: node.id.to_string(),
        };
        let delete = async |mut client: Client, request| client.delete_corpus(request).await;
        // Who holds a shard now may have come to it since the last news. Who comes later looks at the record first.
        let layout = self.metadata.layout_now().await?;
        let cluster = self.cluster.view_of(&layout);
        self.on_every_node(&cluster, &record.name, deadline, request, delete)
            .await
    }

    async fn on_every_node<M, A, F>(
        &self,
        cluster: &ClusterView,
        name: &CorpusName,
        deadline: Deadline,
        request: impl Fn(&ClusterView, &Node) -> M,
        method: impl Fn(Client, M) -> F,
    ) -> Result<(), RouterError>
    where
        M: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let (request, method) = (&request, &method);
        let calls = cluster.layout.nodes().iter().map(async |node| {
            let request = request(cluster, node);
            let answer = cluster.nodes.call(&node.id, deadline, &request, method);
            let answer = tokio::select! {
                biased;
                answer = answer => Some(answer),
                // It takes no part any more, and begins its shards anew before it does again.
                () = self.cluster.left(&node.id, cluster.shards_of(node)) => None,
            };
            (node, answer)
        });
        let mut failures = Failures::default();
        for (node, answer) in join_all(calls).await {
            if let Some(Err(error)) = answer {
                failures.note(node.id.clone(), cluster.shards_of(node), error)?;
            }
        }
        failures.check(name)
    }
}

/// What is said of a node that does not tell what it holds of a corpus; its refusal if that is for the client.
fn state_of(error: CallError, is_replicated: bool) -> Result<NodeState, Box<Status>> {
    match error {
        CallError::NotLoaded => Ok(NodeState::CorpusNotLoaded),
        CallError::Refused(status)
            if is_replicated && Reason::of(&status) == Some(Reason::MetadataFailed) =>
        {
            Ok(NodeState::CorpusNotLoaded)
        }
        CallError::Late
        | CallError::Silent
        | CallError::Unreachable
        | CallError::NoMemory
        | CallError::Cold(_) => Ok(NodeState::Unreachable),
        CallError::WrongEpoch => Ok(NodeState::OtherRecords),
        CallError::Refused(status) => Err(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that answers, and lacks news of the metadata or has more, is not to be started.
    #[test]
    fn a_node_with_other_records_is_told_from_one_that_does_not_answer() {
        let said = |reason: Reason| {
            let error = CallError::from(reason.status("no", []));
            state_of(error, true).unwrap()
        };
        assert_eq!(said(Reason::WrongEpoch), NodeState::OtherRecords);
        assert_eq!(said(Reason::Stopping), NodeState::Unreachable);
        assert_eq!(said(Reason::CorpusNotLoaded), NodeState::CorpusNotLoaded);
        assert_eq!(said(Reason::MetadataFailed), NodeState::CorpusNotLoaded);
        let silent = state_of(CallError::Silent, true).unwrap();
        assert_eq!(silent, NodeState::Unreachable);
        let failed = CallError::from(Reason::MetadataFailed.status("no", []));
        let refused = state_of(failed, false).unwrap_err();
        assert_eq!(refused.message(), "no");
    }
}
