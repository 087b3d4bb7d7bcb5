//! Corpora that the metadata has and the node lacks: made empty when a request is the first to need them.
//!
//! # Invariants
//! - OD1: the node makes a corpus on demand only where no directory can have been lost, and after a reading of the
//!   metadata that began after the request came says that the corpus is live.

use std::sync::Arc;
use std::time::{Duration, Instant};

use simshard_cluster::{Corpora, CorpusState, MetadataError, MetadataStore};
use simshard_simhash::Layout;
use simshard_storage::Operation;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Engine;
use crate::error::NodeError;
use crate::target::Target;

/// A store that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The records of corpora, read on demand.
#[derive(Debug)]
pub(crate) struct CorpusRecords {
    store: Arc<dyn MetadataStore>,
    last: Mutex<Option<Reading>>,
}

/// What the store said.
#[derive(Clone, Debug)]
struct Reading {
    begun: Instant,
    corpora: Result<Arc<Corpora>, NodeError>,
}

impl CorpusRecords {
    pub(crate) fn new(store: Arc<dyn MetadataStore>) -> Self {
        let last = Mutex::default();
        Self { store, last }
    }

    /// The corpora, by a reading that began at a time or later. All who wait for one share the next.
    async fn read(
        &self,
        last: &mut Option<Reading>,
        since: Instant,
    ) -> Result<Arc<Corpora>, NodeError> {
        if let Some(reading) = last.as_ref().filter(|reading| reading.begun >= since) {
            return reading.corpora.clone();
        }
        let begun = Instant::now();
        let corpora = match timeout(PATIENCE, self.store.corpora()).await {
            Ok(corpora) => corpora.map_err(NodeError::from),
            Err(_elapsed) => Err(NodeError::MetadataLate(PATIENCE)),
        };
        *last = Some(Reading {
            begun,
            corpora: corpora.clone(),
        });
        corpora
    }
}

impl From<MetadataError> for NodeError {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(Arc::new(error))
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
        // One after the other, so that of many requests for a corpus one makes it.
        let mut last = records.last.lock().await;
        if self.corpora.get(uid).is_ok() {
            return Ok(());
        }
        let corpora = records.read(&mut last, since).await?;
        let record = corpora.of_uid(uid);
        let live = record.filter(|record| record.state == CorpusState::Live);
        let record = live.ok_or(NodeError::CorpusNotLoaded(uid))?;
        let layout = Layout::new(record.blocks, record.distance)?;
        // One that was dropped meanwhile stays dropped.
        self.commit(Operation::CreateCorpus { uid, layout }).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures_util::FutureExt;
    use simshard_cluster::{ClusterLayout, CorpusName, CorpusRecord, CorpusUid};
    use tokio::sync::{Notify, watch};

    use super::*;

    /// A store whose readings wait to be let go. It counts them.
    #[derive(Debug, Default)]
    struct Slow {
        begun: watch::Sender<usize>,
        go: Notify,
    }

    #[async_trait]
    impl MetadataStore for Slow {
        fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>> {
            unreachable!()
        }

        async fn corpora(&self) -> Result<Arc<Corpora>, MetadataError> {
            self.begun.send_modify(|begun| *begun += 1);
            self.go.notified().await;
            Ok(Arc::default())
        }

        async fn create_corpus(
            &self,
            _: CorpusRecord,
            _: usize,
        ) -> Result<CorpusRecord, MetadataError> {
            unreachable!()
        }

        async fn finish_creation(
            &self,
            _: &CorpusName,
            _: &CorpusUid,
        ) -> Result<(), MetadataError> {
            unreachable!()
        }

        async fn begin_deletion(&self, _: &CorpusName, _: &CorpusUid) -> Result<(), MetadataError> {
            unreachable!()
        }

        async fn finish_deletion(
            &self,
            _: &CorpusName,
            _: &CorpusUid,
        ) -> Result<(), MetadataError> {
            unreachable!()
        }
    }

    /// OD1.
    #[tokio::test]
    async fn those_who_wait_share_the_next_reading_and_not_one_that_began_before() {
        let store = Arc::new(Slow::default());
        let records = CorpusRecords::new(Arc::<Slow>::clone(&store));
        let begun = || *store.begun.borrow();
        let read = async || {
            let since = Instant::now();
            let mut last = records.last.lock().await;
            records.read(&mut last, since).await
        };
        let mut readings = [(); 3].map(|()| Box::pin(read()));
        let [first, second, third] = &mut readings;
        assert!(first.now_or_never().is_none());
        for later in [&mut *second, third] {
            assert!(later.now_or_never().is_none());
        }
        assert_eq!(begun(), 1);
        store.go.notify_one();
        first.await.unwrap();
        assert!(second.now_or_never().is_none());
        assert_eq!(begun(), 2);
        store.go.notify_one();
        second.await.unwrap();
        third.await.unwrap();
        assert_eq!(begun(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_answer_has_failed() {
        let records = CorpusRecords::new(Arc::new(Slow::default()));
        let failed = records.read(&mut None, Instant::now()).await.unwrap_err();
        assert!(matches!(failed, NodeError::MetadataLate(_)), "{failed}");
    }
}
