//! The corpora that a node holds, and the shards of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use simshard_cluster::CorpusUid;
use simshard_simhash::{Layout, Tables};
use simshard_topology::{ShardId, ShardSet};

use crate::error::NodeError;
use crate::shard::Shard;

/// One corpus on this node: a lock a shard, so that shards change independently.
#[derive(Debug)]
pub(crate) struct NodeCorpus {
    pub(crate) tables: Arc<Tables>,
    /// The owned shards, by id.
    shards: Vec<(ShardId, RwLock<Shard>)>,
}

impl NodeCorpus {
    fn new(layout: Layout, owned: ShardSet) -> Self {
        let tables = Arc::new(Tables::new(layout));
        let shard = |id| (id, RwLock::new(Shard::new(id, Arc::clone(&tables))));
        let shards = owned.iter().map(shard).collect();
        Self { tables, shards }
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = (ShardId, RwLockReadGuard<'_, Shard>)> {
        self.shards.iter().map(|(id, shard)| (*id, read(shard)))
    }

    /// A shard to read; `None` if the node does not own it.
    pub(crate) fn read(&self, id: ShardId) -> Option<RwLockReadGuard<'_, Shard>> {
        self.shard(id).map(read)
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
    /// Makes an empty corpus; the same layout again changes nothing.
    pub(crate) fn create(
        &self,
        uid: CorpusUid,
        layout: Layout,
        owned: ShardSet,
    ) -> Result<(), NodeError> {
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(corpus) = by_uid.get(&uid) {
            return match corpus.tables.layout() == layout {
                true => Ok(()),
                false => Err(NodeError::LayoutConflict(uid)),
            };
        }
        by_uid.insert(uid, Arc::new(NodeCorpus::new(layout, owned)));
        Ok(())
    }

    /// Drops a corpus, if there is one.
    pub(crate) fn delete(&self, uid: CorpusUid) {
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        by_uid.remove(&uid);
    }

    pub(crate) fn get(&self, uid: CorpusUid) -> Result<Arc<NodeCorpus>, NodeError> {
        let by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        let corpus = by_uid.get(&uid).ok_or(NodeError::CorpusNotLoaded(uid))?;
        Ok(Arc::clone(corpus))
    }
}
