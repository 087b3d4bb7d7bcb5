//! The corpora that a node holds, and the shards of each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rayon::prelude::*;
use simshard_cluster::CorpusUid;
use simshard_simhash::{Layout, Tables};
use simshard_storage::{Corpus, ReadError, Store};
use simshard_topology::{ShardId, ShardSet};

use crate::error::NodeError;
use crate::shard::{Loader, Shard};

/// One corpus on this node: a lock a shard, so that shards change independently.
#[derive(Debug)]
pub(crate) struct NodeCorpus {
    pub(crate) tables: Arc<Tables>,
    /// The owned shards, by id.
    shards: Vec<(ShardId, RwLock<Shard>)>,
    /// Whether some shard is not bare.
    has_ids: AtomicBool,
}

impl NodeCorpus {
    /// Empty shards.
    pub(crate) fn new(layout: Layout, owned: ShardSet) -> Self {
        let tables = Arc::new(Tables::new(layout));
        let shard = |id| (id, RwLock::new(Shard::new(id, Arc::clone(&tables))));
        let shards = owned.iter().map(shard).collect();
        Self {
            tables,
            shards,
            has_ids: AtomicBool::new(false),
        }
    }

    /// The shards as they are stored.
    fn load(store: &Store, corpus: &Corpus) -> Result<Self, ReadError> {
        let tables = Arc::new(Tables::new(corpus.layout));
        let owned: Vec<ShardId> = store.shards().iter().collect();
        let load = |id: ShardId| {
            let mut loader = Loader::new(id, Arc::clone(&tables));
            store.scan(id, corpus.uid, |fingerprint, document| {
                loader.push(fingerprint, document);
            })?;
            Ok((id, RwLock::new(loader.finish())))
        };
        let shards = owned.into_par_iter().map(load).collect::<Result<_, _>>()?;
        let corpus = Self {
            tables,
            shards,
            has_ids: AtomicBool::new(false),
        };
        for (_, shard) in corpus.shards() {
            corpus.note_ids(&shard);
        }
        Ok(corpus)
    }

    /// Whether all documents that a search can find are bare fingerprints: each fingerprint has one, with the empty
    /// id.
    pub(crate) fn is_bare(&self) -> bool {
        !self.has_ids.load(Ordering::Relaxed)
    }

    /// Takes note of a shard that has documents with ids, under the lock under which they came.
    pub(crate) fn note_ids(&self, shard: &Shard) {
        if !shard.is_bare() {
            self.has_ids.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = (ShardId, RwLockReadGuard<'_, Shard>)> {
        self.shards.iter().map(|(id, shard)| (*id, read(shard)))
    }

    /// A shard to read; `None` if the node does not own it.
    pub(crate) fn read(&self, id: ShardId) -> Option<RwLockReadGuard<'_, Shard>> {
        self.shard(id).map(read)
    }

    /// A shard to read, if nobody changes it or waits to; `None` as well if the node does not own it.
    pub(crate) fn try_read(&self, id: ShardId) -> Option<RwLockReadGuard<'_, Shard>> {
        self.shard(id)?.try_read().ok()
    }

    /// A shard to change; `None` if the node does not own it.
    pub(crate) fn write(&self, id: ShardId) -> Option<RwLockWriteGuard<'_, Shard>> {
        let shard = self.shard(id)?;
        Some(shard.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn shard(&self, id: ShardId) -> Option<&RwLock<Shard>> {
        let place = self.shards.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.shards[place].1)
    }
}

/// A panic under a lock ends the process (see `Engine`), so none is ever poisoned.
fn read(shard: &RwLock<Shard>) -> RwLockReadGuard<'_, Shard> {
    shard.read().unwrap_or_else(PoisonError::into_inner)
}

/// All corpora of a node, by uid.
#[derive(Debug, Default)]
pub(crate) struct NodeCorpora {
    by_uid: Mutex<HashMap<CorpusUid, Arc<NodeCorpus>>>,
}

impl NodeCorpora {
    /// All corpora that are stored, on the threads of the current pool.
    pub(crate) fn load(store: &Store) -> Result<Self, ReadError> {
        let mut by_uid = HashMap::new();
        for corpus in store.corpora() {
            let loaded = NodeCorpus::load(store, &corpus)?;
            by_uid.insert(corpus.uid, Arc::new(loaded));
        }
        let by_uid = Mutex::new(by_uid);
        Ok(Self { by_uid })
    }

    /// Adds an empty corpus; one with the same layout that is there already stays.
    pub(crate) fn insert(&self, uid: CorpusUid, corpus: NodeCorpus) -> Result<(), NodeError> {
        let layout = corpus.tables.layout();
        let mut by_uid = self.by_uid();
        let there = by_uid.entry(uid).or_insert_with(|| Arc::new(corpus));
        let held = there.tables.layout();
        match held == layout {
            true => Ok(()),
            false => Err(NodeError::CorpusDiffers {
                uid,
                held,
                blocks: layout.blocks(),
                distance: layout.distance(),
            }),
        }
    }

    /// All corpora, by uid.
    pub(crate) fn all(&self) -> Vec<(CorpusUid, Arc<NodeCorpus>)> {
        let by_uid = self.by_uid();
        let mut all: Vec<_> = by_uid
            .iter()
            .map(|(uid, corpus)| (*uid, Arc::clone(corpus)))
            .collect();
        all.sort_unstable_by_key(|(uid, _)| *uid);
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_uid().is_empty()
    }

    /// Takes a corpus out, if there is one.
    pub(crate) fn remove(&self, uid: CorpusUid) -> Option<Arc<NodeCorpus>> {
        self.by_uid().remove(&uid)
    }

    pub(crate) fn get(&self, uid: CorpusUid) -> Result<Arc<NodeCorpus>, NodeError> {
        let by_uid = self.by_uid();
        let corpus = by_uid.get(&uid).ok_or(NodeError::CorpusNotLoaded(uid))?;
        Ok(Arc::clone(corpus))
    }

    fn by_uid(&self) -> MutexGuard<'_, HashMap<CorpusUid, Arc<NodeCorpus>>> {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
