//! The engine of a node: checks ownership, sorts work by shard, and runs it on
//! threads of its own, away from the async ones.
//!
//! # Invariants
//! - N1: a request that names a shard the node does not own changes and
//!   answers nothing.
//! - N2: what a request writes to a shard is visible to every search that
//!   starts after the request was answered.

mod change;
mod find;

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use simshard_cluster::CorpusUid;
use simshard_simhash::{Fingerprint, Layout};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::corpora::{NodeCorpora, NodeCorpus};
use crate::error::NodeError;
use crate::shard::ShardCounts;
pub(crate) use find::NearQuery;

/// The shards of one node, and the threads that work on them.
#[derive(Debug)]
pub(crate) struct Engine {
    owned: ShardSet,
    corpora: NodeCorpora,
    pool: ThreadPool,
    max_answer_bytes: usize,
}

impl Engine {
    /// An engine without corpora, for the shards that the map gives this node.
    pub(crate) fn new(
        owned: ShardSet,
        threads: usize,
        max_answer_bytes: usize,
    ) -> Result<Self, ThreadPoolBuildError> {
        // A panic on these threads ends the process: better than to go on with
        // tables that are half changed.
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("shards-{number}"))
            .build()?;
        Ok(Self {
            owned,
            corpora: NodeCorpora::default(),
            pool,
            max_answer_bytes,
        })
    }

    /// Makes an empty corpus; the same layout again changes nothing.
    pub(crate) async fn create_corpus(
        self: &Arc<Self>,
        uid: CorpusUid,
        blocks: u32,
        distance: u32,
    ) -> Result<(), NodeError> {
        let layout = Layout::new(blocks, distance)?;
        self.run(move |engine, _| {
            let corpus = NodeCorpus::new(layout, engine.owned);
            engine.corpora.insert(uid, corpus)
        })
        .await
    }

    /// Drops a corpus, if there is one.
    pub(crate) async fn delete_corpus(self: &Arc<Self>, uid: CorpusUid) -> Result<(), NodeError> {
        self.run(move |engine, _| {
            // Freeing it takes long: no lock is held meanwhile.
            drop(engine.corpora.remove(uid));
            Ok(())
        })
        .await
    }

    /// What the node holds of a corpus, shard by shard.
    pub(crate) async fn counts(
        self: &Arc<Self>,
        uid: CorpusUid,
    ) -> Result<Vec<(ShardId, ShardCounts)>, NodeError> {
        let corpus = self.corpora.get(uid)?;
        self.run(move |_, _| {
            let shards = corpus.shards();
            Ok(shards.map(|(id, shard)| (id, shard.counts())).collect())
        })
        .await
    }

    fn check_owned(&self, shards: ShardSet) -> Result<(), NodeError> {
        let foreign = shards.difference(&self.owned);
        match foreign.is_empty() {
            true => Ok(()),
            false => Err(NodeError::NotOwner(foreign)),
        }
    }

    /// Runs work on the engine's threads. It can look whether anybody still
    /// waits for its outcome.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Wanted) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let wanted = Wanted::default();
        let _until_dropped = wanted.clone().0.drop_guard();
        let (sender, receiver) = oneshot::channel();
        let engine = Arc::clone(self);
        self.pool.spawn(move || {
            if !wanted.is_over() {
                let _ = sender.send(work(&engine, &wanted));
            }
        });
        receiver.await.unwrap_or(Err(NodeError::Stopping))
    }
}

/// Whether somebody waits for the outcome of work: no longer, once the request
/// was cancelled or its deadline has passed.
#[derive(Clone, Debug, Default)]
struct Wanted(CancellationToken);

impl Wanted {
    fn is_over(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// For each shard meant that has any, the places of its fingerprints.
fn group_by_shard(
    meant: ShardSet,
    fingerprints: &[Fingerprint],
    shards_of: impl Fn(Fingerprint) -> ShardSet,
) -> Vec<(ShardId, Vec<u32>)> {
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); ShardId::COUNT];
    for (place, &fingerprint) in (0..).zip(fingerprints) {
        for shard in shards_of(fingerprint).intersection(&meant).iter() {
            places[shard.index()].push(place);
        }
    }
    let grouped = ShardId::all().zip(places);
    grouped.filter(|(_, places)| !places.is_empty()).collect()
}
