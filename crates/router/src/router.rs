//! Running a request: plan, fan out, merge.

mod catalog;
mod documents;
mod find;

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_cluster::{ClusterLayout, CorpusName, MetadataStore};
use simshard_proto::Reason;
use simshard_topology::{NodeId, ShardSet};

use crate::corpora::{Corpora, OpenCorpus};
use crate::error::RouterError;
use crate::nodes::{CallError, Nodes};
pub(crate) use catalog::{CorpusContents, NewCorpus};
pub(crate) use documents::Change;
pub(crate) use find::{Found, Near};

/// A router over the nodes of one layout.
#[derive(Debug)]
pub(crate) struct Router {
    store: Arc<dyn MetadataStore>,
    layout: Arc<ClusterLayout>,
    nodes: Nodes,
    corpora: Corpora,
}

impl Router {
    pub(crate) fn new(
        store: Arc<dyn MetadataStore>,
        layout: Arc<ClusterLayout>,
    ) -> Result<Self, tonic::transport::Error> {
        Ok(Self {
            nodes: Nodes::new(&layout)?,
            corpora: Corpora::new(Arc::clone(&store)),
            store,
            layout,
        })
    }

    /// The corpus of this name, if the request's recipe is its own.
    async fn corpus(
        &self,
        name: &CorpusName,
        recipe: &str,
    ) -> Result<Arc<OpenCorpus>, RouterError> {
        let corpus = self.corpora.get(name).await?;
        corpus.check_recipe(recipe)?;
        Ok(corpus)
    }

    /// The same, as the metadata store has it now.
    pub(crate) async fn reread(
        &self,
        name: &CorpusName,
        recipe: &str,
    ) -> Result<Arc<OpenCorpus>, RouterError> {
        let corpus = self.corpora.reread(name).await?;
        corpus.check_recipe(recipe)?;
        Ok(corpus)
    }

    /// Does `work` on a corpus; once more, if a node does not know it because
    /// another router has deleted and created it anew.
    pub(crate) async fn on_corpus<T, F>(
        &self,
        name: &CorpusName,
        recipe: &str,
        work: impl Fn(Arc<OpenCorpus>) -> F,
    ) -> Result<T, RouterError>
    where
        F: Future<Output = Result<T, RouterError>>,
    {
        let corpus = self.corpus(name, recipe).await?;
        let uid = corpus.record.uid;
        let outcome = work(corpus).await;
        match outcome {
            Err(error) if error.reason() == Reason::CorpusNotLoaded => {
                let corpus = self.reread(name, recipe).await?;
                if corpus.record.uid == uid {
                    return Err(error);
                }
                work(corpus).await
            }
            outcome => outcome,
        }
    }
}

/// The failures of one fan-out: nodes that did not answer, all in one error.
#[derive(Debug, Default)]
struct Failures {
    nodes: BTreeMap<NodeId, ShardSet>,
    late: bool,
}

impl Failures {
    /// Notes that a node did not answer; a refusal is an error at once.
    fn note(
        &mut self,
        node: NodeId,
        shards: ShardSet,
        error: CallError,
    ) -> Result<(), RouterError> {
        match error {
            CallError::Refused(status) => return Err(RouterError::Node { node, status }),
            CallError::Late => self.late = true,
            CallError::Unreachable => {}
        }
        self.nodes.insert(node, shards);
        Ok(())
    }

    fn check(self) -> Result<(), RouterError> {
        let Self { nodes, late } = self;
        match nodes.is_empty() {
            true => Ok(()),
            false => Err(RouterError::Unreachable { nodes, late }),
        }
    }
}
