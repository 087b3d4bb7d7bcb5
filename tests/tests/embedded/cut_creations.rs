//! The metadata store fails, or another router deletes the corpus, while it is created.

use std::sync::Arc;

use parking_lot::Mutex;
use simshard_client::v1::CorpusState;
use simshard_client::{ClientError, Documents, Fingerprint, Queries, Reason, v1};
use simshard_cluster::{
    ClusterLayout, Corpora, CorpusName, CorpusRecord, CorpusUid, MemoryStore, MetadataError,
    MetadataStore,
};
use simshard_testkit::TestCluster;
use tokio::sync::watch;

use crate::own_router::OwnRouter;

/// What goes wrong once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// The last step fails.
    Fails,
    /// The last step is done, and reported as failed.
    SeemsToFail,
    /// Another router begins to delete the corpus once the creation has begun.
    IsDeleted,
}

/// A store with one trouble.
#[derive(Debug)]
struct Troubled {
    store: MemoryStore,
    trouble: Mutex<Option<Trouble>>,
}

impl Troubled {
    /// Whether this trouble comes now.
    fn comes(&self, trouble: Trouble) -> bool {
        let mut next = self.trouble.lock();
        next.take_if(|next| *next == trouble).is_some()
    }
}

#[tonic::async_trait]
impl MetadataStore for Troubled {
    fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>> {
        self.store.watch_layout()
    }

    async fn corpora(&self) -> Result<Arc<Corpora>, MetadataError> {
        self.store.corpora().await
    }

    async fn create_corpus(
        &self,
        record: CorpusRecord,
        max: usize,
    ) -> Result<CorpusRecord, MetadataError> {
        let record = self.store.create_corpus(record, max).await?;
        if self.comes(Trouble::IsDeleted) {
            let deletion = self.store.begin_deletion(&record.name, &record.uid);
            deletion.await?;
        }
        Ok(record)
    }

    async fn finish_creation(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        if self.comes(Trouble::Fails) {
            return Err(MetadataError::Stopping);
        }
        self.store.finish_creation(name, uid).await?;
        if self.comes(Trouble::SeemsToFail) {
            return Err(MetadataError::Stopping);
        }
        Ok(())
    }

    async fn begin_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        self.store.begin_deletion(name, uid).await
    }

    async fn finish_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        self.store.finish_deletion(name, uid).await
    }
}

async fn create(router: &OwnRouter) -> Result<v1::Corpus, ClientError> {
    let corpus = v1::CreateCorpusRequest {
        name: "c".to_owned(),
        ..Default::default()
    };
    router.client.create_corpus(corpus).await
}

/// What a creation in trouble says, of the corpus and for what reason.
async fn trouble(
    cluster: &TestCluster,
    trouble: Trouble,
) -> (OwnRouter, Option<CorpusState>, Reason) {
    let store = Troubled {
        store: MemoryStore::new(cluster.layout().clone()),
        trouble: Mutex::new(Some(trouble)),
    };
    let router = OwnRouter::start(Arc::new(store)).await;
    let error = create(&router).await.unwrap_err();
    (router, error.corpus_state(), error.reason().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_in_trouble_says_what_became_of_it() {
    let cluster = TestCluster::start(2).await;
    let (router, state, reason) = trouble(&cluster, Trouble::Fails).await;
    let creating = Some(CorpusState::Creating);
    assert_eq!((state, reason), (creating, Reason::MetadataFailed));
    create(&router).await.unwrap();
    let documents = Documents {
        keys: Queries::Fingerprints(vec![Fingerprint(7)]),
        ids: vec![],
    };
    assert_eq!(router.client.insert("c", documents).await.unwrap(), 1);
    router.client.delete_corpus("c").await.unwrap();

    let (router, state, reason) = trouble(&cluster, Trouble::SeemsToFail).await;
    assert_eq!((state, reason), (None, Reason::CorpusExists));
    router.client.delete_corpus("c").await.unwrap();

    let (router, state, reason) = trouble(&cluster, Trouble::IsDeleted).await;
    let deleting = Some(CorpusState::Deleting);
    assert_eq!((state, reason), (deleting, Reason::CorpusExists));
    router.client.delete_corpus("c").await.unwrap();
    create(&router).await.unwrap();
    cluster.stop().await;
}
