//! The backend that forgets: metadata of one process, for tests, the demo and the
//! embedded server.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use simshard_topology::CorpusUid;
use tokio::sync::watch;

use crate::corpora::Corpora;
use crate::corpus::{CorpusName, CorpusRecord};
use crate::layout::ClusterLayout;
use crate::store::{MetadataError, MetadataStore};

/// Metadata in memory, gone with the last handle. Share it as an `Arc`.
#[derive(Debug)]
pub struct MemoryStore {
    layout: watch::Sender<Arc<ClusterLayout>>,
    corpora: Mutex<Arc<Corpora>>,
}

impl MemoryStore {
    /// A store without corpora.
    pub fn new(layout: ClusterLayout) -> Self {
        Self {
            layout: watch::Sender::new(Arc::new(layout)),
            corpora: Mutex::default(),
        }
    }

    /// Replaces the layout. Processes that watch it follow: routers reach nodes at their new addresses. The shard map
    /// must stay as it is, because nodes keep the shards that they started with.
    pub fn set_layout(&self, layout: ClusterLayout) {
        self.layout.send_replace(Arc::new(layout));
    }
}

#[async_trait]
impl MetadataStore for MemoryStore {
    fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>> {
        self.layout.subscribe()
    }

    async fn corpora(&self) -> Result<Arc<Corpora>, MetadataError> {
        Ok(Arc::clone(&self.corpora.lock()))
    }

    async fn create_corpus(
        &self,
        record: CorpusRecord,
        max_corpora: usize,
    ) -> Result<CorpusRecord, MetadataError> {
        Arc::make_mut(&mut self.corpora.lock()).create(record, max_corpora)
    }

    async fn finish_creation(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        Arc::make_mut(&mut self.corpora.lock()).finish_creation(name, uid)
    }

    async fn begin_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        Arc::make_mut(&mut self.corpora.lock()).begin_deletion(name, uid)
    }

    async fn finish_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        Arc::make_mut(&mut self.corpora.lock()).finish_deletion(name, uid)
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
