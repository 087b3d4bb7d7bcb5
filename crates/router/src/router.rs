//! Running a request: plan, fan out, merge.

mod catalog;
mod change;
mod corpus_streams;
mod failures;
mod find;
mod pending;
mod proof;
mod recovery;
mod rounds;
mod search_round;
mod silence;

use std::sync::Arc;

use simshard_cluster::{CorpusName, MetadataStore};
use simshard_transport::Dialer;
use tokio::sync::Semaphore;

use crate::clock::SystemClock;
use crate::cluster::{ClusterView, WatchedCluster};
use crate::error::RouterError;
use crate::metadata::Metadata;
use crate::nodes::Access;
use crate::remembered::{OpenCorpus, RememberedCorpora};
pub(crate) use catalog::{CorpusContents, NewCorpus};
pub(crate) use change::Change;
pub(crate) use corpus_streams::CorpusStream;
use failures::Failures;
pub(crate) use find::{FindOutcome, QueryBatch};
pub(crate) use recovery::StoredCorpus;
use tonic::Status;

/// A router over the nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Router {
    /// How nodes are reached.
    dialer: Dialer,
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
        access: Access,
        max_corpora: usize,
    ) -> Result<Self, Status> {
        Ok(Self {
            dialer: access.dialer.clone(),
            cluster: WatchedCluster::new(store.watch_layout(), access)?,
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

    /// The corpus of this name as the metadata store has it now, if the request's recipe is its own. While the store is
    /// away, the corpus as it is remembered.
    pub(crate) async fn newest(
        &self,
        name: &CorpusName,
        recipe: &str,
    ) -> Result<Arc<OpenCorpus>, RouterError> {
        let corpus = self.known(name, self.remembered.newest(name).await).await?;
        corpus.check_recipe(recipe)?;
        Ok(corpus)
    }

    /// The outcome of a look for a corpus. If there is none, the error says whether the metadata is lost.
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

    /// Does `work` on a corpus as it is remembered. Does it once more if it fails in a way that another record of the
    /// corpus explains. Another router has deleted and created the corpus anew then, or a damaged record was restored.
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
