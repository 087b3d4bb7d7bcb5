//! The metadata store as requests see it: with an end to their patience.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{
    ClusterLayout, Corpora, CorpusName, CorpusRecord, CorpusUid, MetadataError, MetadataStore,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::error::RouterError;

/// A store that takes longer has failed: another process may hold its lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// A metadata store.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    store: Arc<dyn MetadataStore>,
    last: Arc<Mutex<Option<Reading>>>,
}

/// A reading of the layout: when it began, and what it found.
type Reading = (Instant, Arc<ClusterLayout>);

impl Metadata {
    pub(crate) fn new(store: Arc<dyn MetadataStore>) -> Self {
        let last = Arc::default();
        Self { store, last }
    }

    /// The layout, by a reading that began at a time or later. All who wait for one share the next.
    pub(crate) async fn layout_since(
        &self,
        since: Instant,
    ) -> Result<Arc<ClusterLayout>, RouterError> {
        let mut last = self.last.lock().await;
        if let Some((begun, layout)) = &*last
            && *begun >= since
        {
            return Ok(Arc::clone(layout));
        }
        let begun = Instant::now();
        let layout = in_time(self.store.layout()).await?;
        *last = Some((begun, Arc::clone(&layout)));
        Ok(layout)
    }

    /// Whether nodes make what they lack by themselves, as [`MetadataStore::names_stores`].
    pub(crate) fn names_stores(&self) -> bool {
        self.store.names_stores()
    }

    /// Whether the metadata was lost once, and the cluster has begun anew: its stores may hold corpora without a record.
    pub(crate) fn has_begun_anew(&self) -> bool {
        let layout = Arc::clone(&self.store.watch_layout().borrow());
        let records = layout.records();
        records.is_some_and(|records| {
            let mut records = records.values();
            records.any(|record| record.epoch.generation > 0)
        })
    }

    pub(crate) async fn corpora(&self) -> Result<Arc<Corpora>, RouterError> {
        in_time(self.store.corpora()).await
    }

    pub(crate) async fn corpus(
        &self,
        name: &CorpusName,
    ) -> Result<Option<CorpusRecord>, RouterError> {
        in_time(self.store.corpus(name)).await
    }

    pub(crate) async fn create_corpus(
        &self,
        record: CorpusRecord,
        max_corpora: usize,
    ) -> Result<CorpusRecord, RouterError> {
        in_time(self.store.create_corpus(record, max_corpora)).await
    }

    pub(crate) async fn finish_creation(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), RouterError> {
        in_time(self.store.finish_creation(name, uid)).await
    }

    pub(crate) async fn begin_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), RouterError> {
        in_time(self.store.begin_deletion(name, uid)).await
    }

    pub(crate) async fn finish_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), RouterError> {
        in_time(self.store.finish_deletion(name, uid)).await
    }
}

async fn in_time<T>(
    answer: impl Future<Output = Result<T, MetadataError>>,
) -> Result<T, RouterError> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RouterError::MetadataLate(PATIENCE)),
    }
}
