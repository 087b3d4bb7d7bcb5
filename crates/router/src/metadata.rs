//! The metadata store as requests see it: with an end to their patience.

use std::collections::BTreeSet;
use std::sync::Arc;

use simshard_cluster::{
    ClusterLayout, Corpora, CorpusName, CorpusRecord, CorpusUid, METADATA_PATIENCE, MetadataError,
    MetadataStore, ReadingError, SharedReading,
};
use tokio::time::{Instant, timeout};

use crate::error::RouterError;

/// A metadata store.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    store: Arc<dyn MetadataStore>,
    layout: Arc<SharedReading<Arc<ClusterLayout>>>,
}

impl Metadata {
    pub(crate) fn new(store: Arc<dyn MetadataStore>) -> Self {
        let layout = Arc::default();
        Self { store, layout }
    }

    /// The layout, by a reading that began at a time or later. All who wait for one share the next.
    pub(crate) async fn layout_since(
        &self,
        since: Instant,
    ) -> Result<Arc<ClusterLayout>, ReadingError> {
        let read = || {
            let store = Arc::clone(&self.store);
            async move { store.layout().await }
        };
        self.layout.since(since, read).await
    }

    /// The layout as it is now.
    pub(crate) async fn layout_now(&self) -> Result<Arc<ClusterLayout>, RouterError> {
        in_time(self.store.layout()).await
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

    pub(crate) async fn deleted_corpora(&self) -> Result<BTreeSet<CorpusUid>, RouterError> {
        in_time(self.store.deleted_corpora()).await
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
    match timeout(METADATA_PATIENCE, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RouterError::MetadataLate(METADATA_PATIENCE)),
    }
}
