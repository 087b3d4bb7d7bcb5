//! The engine of a node. It checks ownership, hands changes to the storage, sorts work by shard, and runs it on threads
//! of its own (`threads`), away from the async ones. Only a search that is sure to be quick runs where it is asked for.
//!
//! # Invariants
//! - N1: a request that names a shard the node does not own changes and
//!   answers nothing. Nor does one that was planned with another map, or for another layout of the corpus.
//! - N8: of a request that was planned by records of shards, the node does nothing in a shard of which it has another
//!   record. A change takes place in the others, and anything else is refused.
//! - N2: what a request writes to a shard is visible to every search that
//!   starts after the request was answered.
//! - N3: a search that runs on an async thread takes few steps and has few hits. It reads no file and does not wait for
//!   a shard that is being changed.

mod apply;
pub(crate) mod change;
mod checks;
mod copies;
mod disk;
mod find;
mod heat;
mod look_up;
mod on_demand;
pub(crate) mod pace;
mod pages;
mod pairs;
mod scan;
mod tables;
mod threads;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use simshard_cluster::CorpusUid;
use simshard_simhash::{Fingerprint, Layout};
use simshard_storage::{Failure, OpenError, Store, Writer};
use simshard_topology::replication::{Epoch, Role, ShardEpochs, ShardRecord, StoreId};
use simshard_topology::{MapDigest, ShardId, ShardSet};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::corpora::{NodeCorpora, NodeCorpus};
use crate::error::NodeError;
use crate::shard::ShardCounts;
use crate::target::Target;
pub(crate) use apply::ChangeOutcome;
use apply::{Applier, Ticket};
pub(crate) use copies::{Cell, ComparedRanges, CopyItem, CopyRequest, own_elements};
pub(crate) use find::NearQuery;
use heat::{Heat, Warmer, Warming};
pub(crate) use on_demand::CorpusRecords;
use pace::CopyPace;
pub(crate) use pairs::PairQuery;
pub(crate) use threads::{Class, Threads};

/// Shards that a node scrubs at once. The memory that each takes is bounded by its request.
const MOST_SCRUBS: usize = 4;

/// The shards of one node, and the threads that work on them.
#[derive(Debug)]
pub(crate) struct Engine {
    store: Arc<Store>,
    writer: Writer<Ticket>,
    corpora: Arc<NodeCorpora>,
    /// The map that gives the node its shards.
    map: MapDigest,
    /// Where the node learns of corpora that it lacks, if it has registered itself.
    corpus_records: Option<CorpusRecords>,
    threads: Arc<Threads>,
    /// Which shards can be searched.
    heat: Arc<Heat>,
    failed: watch::Receiver<Option<Failure>>,
    /// Tells of records of shards that were applied.
    installs: watch::Receiver<()>,
    max_answer_bytes: usize,
    /// A permit for each join in flight.
    joins: Arc<Semaphore>,
    /// A permit for each shard that is being copied from here.
    copies: Arc<Semaphore>,
    /// How fast copies go.
    copy_pace: CopyPace,
    /// A permit for each shard that another node compares with its own replica.
    comparisons: Arc<Semaphore>,
    /// A permit for each shard that this node scrubs.
    scrubs: Arc<Semaphore>,
    /// Held while records or copies of shards are in the queue of the log.
    entering: tokio::sync::Mutex<()>,
}

/// The shards that are to have tables. A store that has registered itself holds nothing before its first record.
fn hot_of(store: &Store, is_registered: bool) -> ShardSet {
    if is_registered && !store.has_records() {
        ShardSet::EMPTY
    } else {
        store.hot()
    }
}

impl Engine {
    /// An engine over what is stored: loads the tables of every corpus, then takes changes. A shard that cannot be read
    /// stays without tables (HC3), if there are records of shards: without them, it would seem to be empty.
    pub(crate) fn start(
        store: Store,
        map: MapDigest,
        corpus_records: Option<CorpusRecords>,
        threads: Arc<Threads>,
        max_answer_bytes: usize,
    ) -> Result<Self, OpenError> {
        let store = Arc::new(store);
        let hot = hot_of(&store, corpus_records.is_some());
        let (corpora, unread) = threads.install(|| NodeCorpora::load(&store, hot));
        let mut damaged = ShardSet::EMPTY;
        for (shard, error) in unread {
            if !store.has_records() {
                return Err(error.into());
            }
            heat::log_damage(shard, &error);
            damaged.insert(shard);
            corpora.clear(shard);
        }
        let corpora = Arc::new(corpora);
        let heat = Arc::new(Heat::new(hot, damaged));
        let (failing, failed) = watch::channel(None);
        let (installing, installs) = watch::channel(());
        let warming = Warming {
            store: Arc::clone(&store),
            corpora: Arc::clone(&corpora),
            heat: Arc::clone(&heat),
            built: installing.clone(),
        };
        let applier = Applier {
            heat: Arc::clone(&heat),
            warmer: Warmer::start(warming, threads.number()).map_err(OpenError::Threads)?,
            store: Arc::clone(&store),
            corpora: Arc::clone(&corpora),
            threads: Arc::clone(&threads),
            failed: failing,
            installed: installing,
        };
        let writer = Writer::start(&store, applier)?;
        Ok(Self {
            store,
            writer,
            corpora,
            map,
            corpus_records,
            threads,
            heat,
            failed,
            installs,
            max_answer_bytes,
            joins: Arc::new(Semaphore::new(pairs::MOST_JOINS)),
            copies: Arc::new(Semaphore::new(copies::MOST_AT_ONCE)),
            copy_pace: CopyPace::default(),
            comparisons: Arc::new(Semaphore::new(copies::MOST_AT_ONCE)),
            scrubs: Arc::new(Semaphore::new(MOST_SCRUBS)),
            entering: tokio::sync::Mutex::default(),
        })
    }

    /// How often the node was given work by requests.
    pub(crate) fn work_given(&self) -> u64 {
        self.threads.given()
    }

    /// How fast copies go, to this node and from it.
    pub(crate) const fn copy_pace(&self) -> &CopyPace {
        &self.copy_pace
    }

    /// Waits until the storage has failed for good: nothing can be acknowledged any more.
    pub(crate) async fn failure(&self) -> Failure {
        let mut failed = self.failed.clone();
        loop {
            if let Some(failure) = failed.borrow_and_update().clone() {
                return failure;
            }
            if failed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The last record of the log that is on disk and applied.
    pub(crate) fn synced(&self) -> u64 {
        self.store.synced()
    }

    /// Finishes the changes in flight; takes none any more. Answers how the storage failed, if it did, even now.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        self.writer.close();
        let failed = self.failed.borrow().clone();
        failed.map_or(Ok(()), Err)
    }

    /// The counts of a corpus on this node, shard by shard.
    pub(crate) async fn counts(
        self: &Arc<Self>,
        target: Target,
    ) -> Result<Vec<(ShardId, ShardCounts)>, NodeError> {
        let corpus = self.open(&target, ShardSet::EMPTY).await?;
        self.run(Class::Small, None, move |engine, _| {
            let held = if engine.follows_records() && !engine.store.has_records() {
                ShardSet::EMPTY
            } else {
                engine.store.answered().intersection(&engine.heat.built())
            };
            let counts = corpus.counts().filter(|(shard, _)| held.contains(*shard));
            Ok(counts.collect())
        })
        .await
    }

    /// The documents stored in each shard that the node searches, over all corpora. Shards without any are left out.
    pub(crate) async fn document_counts(
        self: &Arc<Self>,
    ) -> Result<BTreeMap<ShardId, u64>, NodeError> {
        self.run(Class::Small, None, |engine, _| {
            let built = engine.heat.built();
            let mut counts = BTreeMap::<ShardId, u64>::new();
            for (_, corpus) in engine.corpora.all_but(&HashSet::new()) {
                for (shard, of_corpus) in
                    corpus.counts().filter(|(shard, _)| built.contains(*shard))
                {
                    *counts.entry(shard).or_default() += of_corpus.documents;
                }
            }
            counts.retain(|_, documents| *documents > 0);
            Ok(counts)
        })
        .await
    }

    /// The corpora that the node holds, but for those left out, by uid: each with its layout, and how many documents are
    /// at home here.
    pub(crate) async fn list(
        self: &Arc<Self>,
        map: MapDigest,
        left_out: HashSet<CorpusUid>,
    ) -> Result<Vec<(CorpusUid, Layout, u64)>, NodeError> {
        self.check_map(map)?;
        self.run(Class::Small, None, move |engine, _| {
            // Where counts of nodes are added up, the first replica counts. Tables that are not made yet count nothing.
            let counted = engine.store.leads();
            let count = |(uid, corpus): (CorpusUid, Arc<NodeCorpus>)| {
                let counts = corpus
                    .counts()
                    .filter(|(shard, _)| counted.contains(*shard));
                let documents = counts.map(|(_, counts)| counts.home_documents);
                (uid, corpus.layout(), documents.sum())
            };
            let corpora = engine.corpora.all_but(&left_out);
            Ok(corpora.into_iter().map(count).collect())
        })
        .await
    }

    /// The corpora that the node holds.
    pub(crate) fn uids(&self) -> Vec<CorpusUid> {
        let corpora = self.corpora.all_but(&HashSet::new());
        corpora.into_iter().map(|(uid, _)| uid).collect()
    }

    /// Those of these shards of which a store has a later record; all if the node has another store, or has dropped the
    /// corpus that is read. A replica that was left out may not know of its deletion.
    pub(crate) fn unconfirmed(
        &self,
        store: StoreId,
        epochs: &[(ShardId, Epoch)],
        read: Option<CorpusUid>,
    ) -> ShardSet {
        if read.is_some_and(|corpus| self.store.has_dropped(corpus)) {
            return epochs.iter().map(|(shard, _)| *shard).collect();
        }
        self.store.unconfirmed(store, epochs)
    }

    /// What the store does for each shard.
    pub(crate) fn roles(&self) -> Vec<(ShardId, Arc<ShardRecord>, Role)> {
        self.store.roles()
    }

    /// The shards that are to have tables by the records applied so far, and have not yet.
    pub(crate) fn unbuilt(&self) -> ShardSet {
        let hot = hot_of(&self.store, self.corpus_records.is_some());
        hot.difference(&self.heat.built())
    }

    /// The shards with a segment that was found damaged.
    pub(crate) fn damaged(&self) -> ShardSet {
        self.store.damaged()
    }

    /// The store itself.
    pub(crate) const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Waits until there is room for one more scrub.
    pub(crate) async fn scrub_permit(&self) -> Result<OwnedSemaphorePermit, NodeError> {
        let permit = Arc::clone(&self.scrubs).acquire_owned().await;
        permit.map_err(|_| NodeError::Stopping)
    }

    /// The epoch of the record of a shard that is on disk.
    pub(crate) fn report(&self, shard: ShardId) -> Epoch {
        self.store.report(shard)
    }

    /// The epochs of all records that are on disk, and a number that is another one when they are.
    pub(crate) fn reports(&self) -> (u64, ShardEpochs) {
        self.store.reports()
    }

    /// Runs work on the threads of its class. The work can ask whether its outcome is still wanted:
    /// not after `deadline`, and not once the caller has dropped this future.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        class: Class,
        deadline: Option<Instant>,
        work: impl FnOnce(&Self, &Cancellation) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let abandoned = CancellationToken::new();
        let _until_dropped = abandoned.clone().drop_guard();
        let cancellation = Cancellation {
            abandoned,
            deadline,
        };
        let turn = self.threads.turn(class).await;
        let (sender, receiver) = oneshot::channel();
        let engine = Arc::clone(self);
        self.threads.spawn(class, move || {
            let outcome = if cancellation.is_over() {
                Err(NodeError::Abandoned)
            } else {
                work(&engine, &cancellation)
            };
            // The last owner joins the threads when it drops the engine, so it must not be one of them.
            drop(engine);
            drop(turn);
            let _ = sender.send(outcome);
        });
        receiver.await.unwrap_or(Err(NodeError::Stopping))
    }
}

/// Whether a caller waits for the outcome of work: no longer, once the request was cancelled or its deadline has passed.
#[derive(Debug)]
struct Cancellation {
    abandoned: CancellationToken,
    deadline: Option<Instant>,
}

impl Cancellation {
    fn is_over(&self) -> bool {
        self.abandoned.is_cancelled() || is_past(self.deadline)
    }
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// For each shard meant that has any, the places of its fingerprints. `shards_of` may name a shard repeatedly.
fn group_by_shard<I: Iterator<Item = u8>>(
    meant: ShardSet,
    fingerprints: &[Fingerprint],
    shards_of: impl Fn(Fingerprint) -> I,
) -> Vec<(ShardId, Vec<u32>)> {
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); ShardId::COUNT];
    for (place, &fingerprint) in (0..).zip(fingerprints) {
        for shard in shards_of(fingerprint) {
            let places = &mut places[usize::from(shard)];
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
    }
    let grouped = ShardId::all().zip(places);
    grouped
        .filter(|(shard, places)| !places.is_empty() && meant.contains(*shard))
        .collect()
}

#[cfg(test)]
mod tests;
