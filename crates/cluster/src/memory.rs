//! The backend that forgets: metadata of one process, for tests, the demo and the
//! embedded server.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use simshard_topology::CorpusUid;
use tokio::sync::watch;

use crate::corpus::{CorpusName, CorpusRecord};
use crate::layout::ClusterLayout;
use crate::store::{MetadataError, MetadataStore};

/// Metadata in memory, gone with the last handle. Share it as an `Arc`.
#[derive(Debug)]
pub struct MemoryStore {
    layout: watch::Sender<Arc<ClusterLayout>>,
    corpora: Mutex<BTreeMap<CorpusName, CorpusRecord>>,
}

impl MemoryStore {
    /// A store without corpora.
    pub fn new(layout: ClusterLayout) -> Self {
        Self {
            layout: watch::Sender::new(Arc::new(layout)),
            corpora: Mutex::default(),
        }
    }

    fn corpora_guard(&self) -> MutexGuard<'_, BTreeMap<CorpusName, CorpusRecord>> {
        // Every change is a single map operation, so a panic elsewhere while the
        // lock was held cannot have left the map half-changed.
        self.corpora.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl MetadataStore for MemoryStore {
    async fn layout(&self) -> Result<Arc<ClusterLayout>, MetadataError> {
        Ok(Arc::clone(&self.layout.borrow()))
    }

    fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>> {
        self.layout.subscribe()
    }

    async fn corpora(&self) -> Result<Vec<CorpusRecord>, MetadataError> {
        Ok(self.corpora_guard().values().cloned().collect())
    }

    async fn corpus(&self, name: &CorpusName) -> Result<Option<CorpusRecord>, MetadataError> {
        Ok(self.corpora_guard().get(name).cloned())
    }

    async fn create_corpus(&self, record: CorpusRecord) -> Result<(), MetadataError> {
        match self.corpora_guard().entry(record.name.clone()) {
            Entry::Vacant(free) => {
                free.insert(record);
                Ok(())
            }
            Entry::Occupied(taken) => Err(MetadataError::AlreadyExists {
                name: record.name,
                uid: taken.get().uid,
            }),
        }
    }

    async fn delete_corpus(&self, name: &CorpusName, uid: &CorpusUid) -> Result<(), MetadataError> {
        let mut corpora = self.corpora_guard();
        if corpora.get(name).is_some_and(|record| record.uid == *uid) {
            corpora.remove(name);
            return Ok(());
        }
        Err(MetadataError::NotFound {
            name: name.clone(),
            uid: *uid,
        })
    }
}

#[cfg(test)]
mod tests {
    use simshard_topology::NodeId;

    use super::*;
    use crate::layout::Node;

    #[tokio::test]
    async fn a_watch_ends_with_its_store() {
        let node = Node {
            id: NodeId::new("n1").unwrap(),
            address: "http://127.0.0.1:7470".to_owned(),
        };
        let store = MemoryStore::new(ClusterLayout::planned(vec![node], 1).unwrap());
        let mut watch = store.watch_layout();
        drop(store);
        assert!(watch.changed().await.is_err());
    }
}
