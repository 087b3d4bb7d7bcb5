//! An operator gives a record to a corpus whose creation goes on: what the failed creation cleans up is not that.

use std::sync::Arc;

use simshard_client::{Documents, Fingerprint, Queries, v1};
use simshard_cluster::{
    ClusterLayout, Corpora, CorpusName, CorpusRecord, CorpusUid, MemoryStore, MetadataError,
    MetadataStore,
};
use simshard_testkit::TestCluster;
use tokio::sync::watch;

use crate::own_router::OwnRouter;

/// A store in which each new corpus gets the name `recovered` just before it gets its own.
#[derive(Debug)]
struct Recovering(MemoryStore);

#[tonic::async_trait]
impl MetadataStore for Recovering {
    async fn layout(&self) -> Result<Arc<ClusterLayout>, MetadataError> {
        self.0.layout().await
    }

    fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>> {
        self.0.watch_layout()
    }

    async fn corpora(&self) -> Result<Arc<Corpora>, MetadataError> {
        self.0.corpora().await
    }

    async fn create_corpus(&self, record: CorpusRecord, max: usize) -> Result<(), MetadataError> {
        let recovered = CorpusRecord {
            name: CorpusName::new("recovered").unwrap(),
            ..record.clone()
        };
        self.0.create_corpus(recovered, max).await?;
        self.0.create_corpus(record, max).await
    }

    async fn begin_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        self.0.begin_deletion(name, uid).await
    }

    async fn finish_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        self.0.finish_deletion(name, uid).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_creation_drops_no_corpus_that_an_operator_recovered() {
    let cluster = TestCluster::start(2).await;
    let store = Arc::new(Recovering(MemoryStore::new(cluster.layout().clone())));
    let router = OwnRouter::start(store).await;
    let client = &router.client;
    let corpus = v1::CreateCorpusRequest {
        name: "c".to_owned(),
        ..Default::default()
    };
    client.create_corpus(corpus).await.unwrap_err();

    // A corpus that is dropped takes nothing.
    for number in 0..500 {
        let documents = Documents {
            keys: Queries::Fingerprints(vec![Fingerprint(number << 55)]),
            ids: vec![],
        };
        assert_eq!(client.insert("recovered", documents).await.unwrap(), 1);
    }
    router.stop().await;
    cluster.stop().await;
}
