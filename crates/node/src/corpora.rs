//! The corpora that a node holds, and the shards of each.
//!
//! # Invariants
//! - N6: a corpus without changes takes less than a kilobyte, whatever its layout is and however often it is searched.
//!   A shard without documents takes 16 bytes until the first one comes.
//! - N7: what asks for a shard that the node does not own gets an error, never an empty shard.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use rayon::prelude::*;
use simshard_cluster::CorpusUid;
use simshard_simhash::{Fingerprint, Layout, Tables};
use simshard_storage::{Corpus, ReadError, Store};
use simshard_topology::{ShardId, ShardSet};

use crate::error::NodeError;
use crate::shard::{Loader, Shard, ShardCounts};

/// One corpus on this node: a lock a shard, so that shards change independently.
///
/// Removing all documents frees neither the tables nor the shards, only dropping the corpus does.
#[derive(Debug)]
pub(crate) struct NodeCorpus {
    layout: Layout,
    owned: ShardSet,
    /// Made by the first change.
    contents: OnceLock<Contents>,
    /// Whether some shard is not bare.
    has_ids: AtomicBool,
}

#[derive(Debug)]
struct Contents {
    tables: Arc<Tables>,
    /// By id, each made by its first document.
    shards: Box<[OnceLock<Box<RwLock<Shard>>>; ShardId::COUNT]>,
}

impl NodeCorpus {
    /// A corpus without documents.
    pub(crate) const fn new(layout: Layout, owned: ShardSet) -> Self {
        Self {
            layout,
            owned,
            contents: OnceLock::new(),
            has_ids: AtomicBool::new(false),
        }
    }

    /// The corpus with these shards as they are stored, and why some could not be read.
    fn load(store: &Store, corpus: &Corpus, shards: ShardSet) -> (Self, Vec<(ShardId, ReadError)>) {
        let loaded = Self::new(corpus.layout, store.shards());
        let shards: Vec<ShardId> = shards.iter().collect();
        let load = |id: ShardId| {
            let scan = |visit: &mut Visit<'_>| store.scan(id, corpus.uid, visit);
            Some((id, loaded.load_shard(id, scan).err()?))
        };
        let unread = shards.into_par_iter().filter_map(load).collect();
        (loaded, unread)
    }

    /// Makes a shard of what `scan` visits, in place of what it was. It must not be changed meanwhile.
    pub(crate) fn load_shard(
        &self,
        id: ShardId,
        scan: impl FnOnce(&mut Visit<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut loader = None;
        scan(&mut |fingerprint, document| {
            let new = || Loader::new(id, Arc::clone(self.tables_for_change()));
            loader.get_or_insert_with(new).push(fingerprint, document);
        })?;
        if let Some(loader) = loader {
            let made = loader.finish();
            let mut shard = self.write(id)?;
            *shard = made;
            self.note_ids(&shard);
        } else {
            self.clear(id);
        }
        Ok(())
    }

    /// Throws away what is in memory of a shard.
    fn clear(&self, id: ShardId) {
        if let Some(shard) = self.made(id) {
            *shard.write() = Shard::new(id, Arc::clone(self.tables_for_change()));
        }
    }

    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }

    /// The tables; `None` before the first change, when no search can find anything.
    pub(crate) fn tables(&self) -> Option<&Arc<Tables>> {
        self.contents.get().map(|contents| &contents.tables)
    }

    /// The tables, made if there are none yet.
    pub(crate) fn tables_for_change(&self) -> &Arc<Tables> {
        &self.contents().tables
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

    /// The counts of each owned shard.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (ShardId, ShardCounts)> {
        let counts = |id| self.made(id).map(|shard| shard.read().counts());
        self.owned
            .iter()
            .map(move |id| (id, counts(id).unwrap_or_default()))
    }

    /// A shard to read; `None` if it never had a document.
    ///
    /// # Errors
    /// If the node does not own it: an absent shard is never answered for as if it were empty (N7).
    pub(crate) fn read(
        &self,
        id: ShardId,
    ) -> Result<Option<RwLockReadGuard<'_, Shard>>, ReadError> {
        Ok(self.shard(id)?.map(RwLock::read))
    }

    /// A shard to change, made if there is none yet.
    ///
    /// # Errors
    /// If the node does not own it.
    pub(crate) fn write(&self, id: ShardId) -> Result<RwLockWriteGuard<'_, Shard>, ReadError> {
        self.check_owned(id)?;
        let Contents { tables, shards } = self.contents();
        let new = || Box::new(RwLock::new(Shard::new(id, Arc::clone(tables))));
        let shard = shards[usize::from(id.0)].get_or_init(new);
        Ok(shard.write())
    }

    /// A shard; `None` if it never had a document.
    ///
    /// # Errors
    /// If the node does not own it.
    pub(crate) fn shard(&self, id: ShardId) -> Result<Option<&RwLock<Shard>>, ReadError> {
        self.check_owned(id)?;
        Ok(self.made(id))
    }

    fn check_owned(&self, id: ShardId) -> Result<(), ReadError> {
        if self.owned.contains(id) {
            Ok(())
        } else {
            Err(ReadError::ShardAbsent(id))
        }
    }

    fn made(&self, id: ShardId) -> Option<&RwLock<Shard>> {
        let shard = self.contents.get()?.shards[usize::from(id.0)].get()?;
        Some(shard)
    }

    fn contents(&self) -> &Contents {
        self.contents.get_or_init(|| Contents {
            tables: Tables::shared(self.layout),
            shards: Box::new([const { OnceLock::new() }; ShardId::COUNT]),
        })
    }
}

/// Takes the live documents of a shard, by fingerprint, then id.
pub(crate) type Visit<'a> = dyn FnMut(Fingerprint, &str) + 'a;

/// The shards that could not be read, and why.
pub(crate) type Unread = BTreeMap<ShardId, ReadError>;

/// All corpora of a node, by uid.
#[derive(Debug, Default)]
pub(crate) struct NodeCorpora {
    by_uid: Mutex<HashMap<CorpusUid, Arc<NodeCorpus>>>,
}

impl NodeCorpora {
    /// All corpora that are stored, with the tables of these shards, on the threads of the current pool. Answers also
    /// the shards that could not be read, and why.
    pub(crate) fn load(store: &Store, shards: ShardSet) -> (Self, Unread) {
        let (mut by_uid, mut unread) = (HashMap::new(), Unread::new());
        for corpus in store.corpora() {
            let (loaded, errors) = NodeCorpus::load(store, &corpus, shards);
            by_uid.insert(corpus.uid, Arc::new(loaded));
            for (shard, error) in errors {
                unread.entry(shard).or_insert(error);
            }
        }
        let by_uid = Mutex::new(by_uid);
        (Self { by_uid }, unread)
    }

    /// Throws away what is in memory of a shard, in all corpora.
    pub(crate) fn clear(&self, shard: ShardId) {
        for (_, corpus) in self.all_but(&HashSet::new()) {
            corpus.clear(shard);
        }
    }

    /// Adds an empty corpus; one with the same layout that is there already stays.
    pub(crate) fn insert(&self, uid: CorpusUid, corpus: NodeCorpus) -> Result<(), NodeError> {
        let layout = corpus.layout;
        let mut by_uid = self.by_uid.lock();
        let there = by_uid.entry(uid).or_insert_with(|| Arc::new(corpus));
        let held = there.layout;
        if held == layout {
            Ok(())
        } else {
            Err(NodeError::CorpusDiffers {
                uid,
                held,
                blocks: layout.blocks(),
                distance: layout.distance(),
            })
        }
    }

    /// All corpora but for those left out, by uid.
    pub(crate) fn all_but(
        &self,
        left_out: &HashSet<CorpusUid>,
    ) -> Vec<(CorpusUid, Arc<NodeCorpus>)> {
        let by_uid = self.by_uid.lock();
        let mut all: Vec<_> = by_uid
            .iter()
            .filter(|(uid, _)| !left_out.contains(uid))
            .map(|(uid, corpus)| (*uid, Arc::clone(corpus)))
            .collect();
        all.sort_unstable_by_key(|(uid, _)| *uid);
        all
    }

    /// Takes a corpus out, if there is one.
    pub(crate) fn remove(&self, uid: CorpusUid) -> Option<Arc<NodeCorpus>> {
        self.by_uid.lock().remove(&uid)
    }

    pub(crate) fn get(&self, uid: CorpusUid) -> Result<Arc<NodeCorpus>, NodeError> {
        let by_uid = self.by_uid.lock();
        let corpus = by_uid.get(&uid).ok_or(NodeError::CorpusNotLoaded(uid))?;
        Ok(Arc::clone(corpus))
    }
}
