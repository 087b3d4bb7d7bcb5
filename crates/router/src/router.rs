//! Running a request: plan, fan out, merge.

mod catalog;
mod corpus_streams;
mod documents;
mod find;
mod pending;
mod proof;
mod recovery;
mod rounds;
mod silence;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::{CorpusName, MetadataStore};
use simshard_topology::{NodeId, ShardSet};
use simshard_transport::Budget;
use tokio::sync::Semaphore;

use crate::clock::SystemClock;
use crate::cluster::{ClusterView, WatchedCluster};
use crate::error::{RouterError, Why};
use crate::metadata::Metadata;
use crate::nodes::CallError;
use crate::readers::Cold;
use crate::remembered::{OpenCorpus, RememberedCorpora};
pub(crate) use catalog::{CorpusContents, NewCorpus};
pub(crate) use corpus_streams::CorpusStream;
pub(crate) use documents::Change;
pub(crate) use find::{FindOutcome, Near};
pub(crate) use recovery::StoredCorpus;

/// A router over the nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Router {
    metadata: Metadata,
    cluster: WatchedCluster,
    remembered: RememberedCorpora,
    /// Most corpora that may exist.
    max_corpora: usize,
    clock: SystemClock,
    /// A permit for each stream about a whole corpus.
    corpus_streams: Arc<Semaphore>,
}

impl Router {
    pub(crate) fn new(
        store: Arc<dyn MetadataStore>,
        budget: &Budget,
        max_corpora: usize,
    ) -> Result<Self, tonic::transport::Error> {
        Ok(Self {
            cluster: WatchedCluster::new(store.watch_layout(), budget)?,
            remembered: RememberedCorpora::new(Metadata::new(Arc::clone(&store))),
            metadata: Metadata::new(store),
            max_corpora,
            clock: SystemClock::default(),
            corpus_streams: Arc::new(Semaphore::new(corpus_streams::MOST_AT_ONCE)),
        })
    }

    /// The cluster as it is now.
    pub(crate) fn cluster(&self) -> Arc<ClusterView> {
        self.cluster.view()
    }

    /// The corpus of this name as the metadata store has it now, if the
    /// request's recipe is its own.
    pub(crate) async fn reread(
        &self,
        name: &CorpusName,
        recipe: &str,
    ) -> Result<Arc<OpenCorpus>, RouterError> {
        let corpus = self.known(name, self.remembered.reread(name).await).await?;
        corpus.check_recipe(recipe)?;
        Ok(corpus)
    }

    /// A corpus that was looked for; if there is none, whether that is because the metadata is lost.
    async fn known(
        &self,
        name: &CorpusName,
        found: Result<Arc<OpenCorpus>, RouterError>,
    ) -> Result<Arc<OpenCorpus>, RouterError> {
        match found {
            Err(RouterError::CorpusNotFound(_)) => Err(self.absent(name).await),
            found => found,
        }
    }

    /// Does `work` on a corpus as it is remembered; once more, if that fails in a way that another record of the
    /// corpus explains: another router has deleted and created it anew, or a damaged record was restored.
    pub(crate) async fn on_corpus<T, F>(
        &self,
        name: &CorpusName,
        recipe: &str,
        work: impl Fn(Arc<OpenCorpus>) -> F,
    ) -> Result<T, RouterError>
    where
        F: Future<Output = Result<T, RouterError>>,
    {
        let corpus = self.known(name, self.remembered.get(name).await).await?;
        let outcome = match corpus.check_recipe(recipe) {
            Ok(()) => work(Arc::clone(&corpus)).await,
            Err(error) => Err(error),
        };
        match outcome {
            Err(error) if error.may_be_stale() => {
                let reread = self.known(name, self.remembered.reread(name).await).await?;
                if reread.record == corpus.record {
                    return Err(error);
                }
                reread.check_recipe(recipe)?;
                work(reread).await
            }
            outcome => outcome,
        }
    }
}

/// The failures of one fan-out: nodes that did not answer, all in one error.
#[derive(Debug, Default)]
struct Failures {
    /// The nodes, and the shards of theirs that were asked for.
    nodes: BTreeMap<NodeId, ShardSet>,
    /// Nodes that have other records of shards: these may be asked again.
    stale: BTreeMap<NodeId, ShardSet>,
    /// Nodes that have no tables of shards: others may.
    cold: Cold,
    /// Nodes that gave no sign of life, where others may answer: these may be waited for.
    silent: BTreeSet<NodeId>,
    /// Whether time ran out for one.
    late: bool,
    /// One that does not hold the corpus.
    not_loaded: Option<NodeId>,
}

impl Failures {
    /// Notes that a node did not do its part; a refusal is an error at once.
    fn note(
        &mut self,
        node: NodeId,
        shards: ShardSet,
        error: CallError,
    ) -> Result<(), RouterError> {
        match error {
            CallError::Refused(status) => return Err(RouterError::Node { node, status }),
            CallError::NoMemory => return Err(RouterError::NoMemory),
            CallError::NotLoaded => self.not_loaded = Some(node.clone()),
            CallError::Late => self.late = true,
            CallError::Unreachable => {}
            CallError::Silent => {
                self.silent.insert(node);
                return Ok(());
            }
            CallError::WrongEpoch => {
                self.refused(node, shards);
                return Ok(());
            }
            CallError::Cold(shards) => {
                self.cold.insert(node, shards);
                return Ok(());
            }
        }
        self.nodes.insert(node, shards);
        Ok(())
    }

    /// Notes that a node has other records of shards.
    fn refused(&mut self, node: NodeId, shards: ShardSet) {
        let refused = self.stale.entry(node).or_default();
        *refused = refused.union(&shards);
    }

    fn is_empty(&self) -> bool {
        self.nodes.is_empty()
            && self.stale.is_empty()
            && self.cold.is_empty()
            && self.silent.is_empty()
    }

    /// Counts the nodes without tables as lost, their other shards included. Answers whether there are any.
    fn give_up_cold(&mut self) -> bool {
        let has_cold = !self.cold.is_empty();
        self.nodes.append(&mut self.cold);
        has_cold
    }

    /// The nodes that another round does not ask.
    fn down(&self) -> BTreeSet<NodeId> {
        let lost = self.nodes.keys().chain(&self.silent);
        lost.cloned().collect()
    }

    /// Adds those of another fan-out.
    fn extend(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        self.stale.extend(other.stale);
        for (node, shards) in other.cold {
            let cold = self.cold.entry(node).or_default();
            *cold = cold.union(&shards);
        }
        self.silent.extend(other.silent);
        self.late |= other.late;
        self.not_loaded = self.not_loaded.take().or(other.not_loaded);
    }

    /// The error that they amount to, for a request about a corpus.
    fn error(self, corpus: &CorpusName) -> RouterError {
        match self.not_loaded {
            Some(node) => RouterError::NotLoaded {
                node,
                corpus: corpus.clone(),
            },
            None => self.unreachable(),
        }
    }

    fn unreachable(self) -> RouterError {
        let Self {
            nodes,
            stale,
            cold,
            late,
            ..
        } = self;
        let why = if late {
            Why::Late
        } else if nodes.is_empty() && stale.is_empty() {
            Why::Cold
        } else if nodes.is_empty() {
            Why::WrongEpoch
        } else {
            Why::Lost
        };
        let nodes = cold.into_iter().chain(stale).chain(nodes).collect();
        RouterError::Unreachable { nodes, why }
    }

    /// The error that they amount to, for a request about all corpora.
    fn check_all(self) -> Result<(), RouterError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.unreachable())
    }

    fn check(self, corpus: &CorpusName) -> Result<(), RouterError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.error(corpus))
    }
}
