//! Corpora that the metadata has and the node lacks: made empty when a request is the first to need them.
//!
//! # Invariants
//! - OD1: the node makes a corpus on demand only where no directory can have been lost. A reading of the metadata that
//!   began after the request came must also say that the corpus is live.

use std::sync::Arc;

use simshard_cluster::{
    Corpora, CorpusRecord, CorpusState, MetadataError, MetadataStore, ReadingError, SharedReading,
};
use simshard_simhash::Layout;
use simshard_storage::Operation;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Engine;
use crate::error::NodeError;
use crate::target::Target;

/// The records of corpora, read on demand.
#[derive(Debug)]
pub(crate) struct CorpusRecords {
    store: Arc<dyn MetadataStore>,
    corpora: SharedReading<Arc<Corpora>>,
    /// Held by the request that makes a corpus.
    making: Mutex<()>,
}

impl CorpusRecords {
    pub(crate) fn new(store: Arc<dyn MetadataStore>) -> Self {
        Self {
            store,
            corpora: SharedReading::default(),
            making: Mutex::default(),
        }
    }

    /// The corpora, by a reading that began at a time or later. All who wait for one share the next.
    async fn read(&self, since: Instant) -> Result<Arc<Corpora>, ReadingError> {
        let read = || {
            let store = Arc::clone(&self.store);
            async move { store.corpora().await }
        };
        self.corpora.since(since, read).await
    }
}

impl From<MetadataError> for NodeError {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(Arc::new(error))
    }
}

impl From<ReadingError> for NodeError {
    fn from(error: ReadingError) -> Self {
        match error {
            ReadingError::Failed(error) => Self::Metadata(error),
            ReadingError::Late(patience) => Self::MetadataLate(patience),
        }
    }
}

impl Engine {
    /// Makes the corpus of a request if the metadata has it.
    pub(super) async fn make_on_demand(&self, target: &Target) -> Result<(), NodeError> {
        let uid = target.corpus;
        let Some(records) = &self.corpus_records else {
            return Err(NodeError::CorpusNotLoaded(uid));
        };
        let since = Instant::now();
        let corpora = match records.read(since).await {
            Ok(corpora) => corpora,
            // A router may have made it meanwhile.
            Err(_) if self.corpora.get(uid).is_ok() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // One after the other, so that of many requests for a corpus one makes it.
        let _one_at_a_time = records.making.lock().await;
        if self.corpora.get(uid).is_ok() {
            return Ok(());
        }
        let record = corpora.of_uid(uid);
        let live = record.filter(|record| record.state == CorpusState::Live);
        self.make_recorded(live.ok_or(NodeError::CorpusNotLoaded(uid))?)
            .await
    }

    /// Makes the corpus of a record, empty. One that was dropped meanwhile stays dropped.
    pub(crate) async fn make_recorded(&self, record: &CorpusRecord) -> Result<(), NodeError> {
        let uid = record.uid;
        let layout = Layout::new(record.blocks, record.distance)?;
        self.commit(Operation::CreateCorpus { uid, layout }).await?;
        Ok(())
    }
}
