//! What a node that has registered itself does beside serving.

use std::future::pending;
use std::sync::Arc;

use simshard_cluster::{ClusterLayout, MetadataStore};
use tokio::sync::watch;

use crate::ServeError;
use crate::engine::Engine;
use crate::floors::{self, FloorPace};
use crate::installing::install_all;
use crate::peers::{Peers, Takeover};
use crate::reconcile::keep_reconciled;
use crate::registration::{Registration, RegistrationError};

/// A node's place among the stores of a cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    registration: Registration,
    peers: Arc<Peers>,
    floors: Option<FloorPace>,
}

impl Membership {
    pub(crate) fn new(
        registration: Registration,
        takeover: Takeover,
        floors: Option<FloorPace>,
    ) -> Self {
        let (store, incarnation) = registration.start();
        Self {
            peers: Arc::new(Peers::new(store, incarnation, takeover)),
            registration,
            floors,
        }
    }

    /// What this node knows of the others.
    pub(crate) fn peers(&self) -> Arc<Peers> {
        Arc::clone(&self.peers)
    }

    /// Checks that no copy of the node was started, as far as it has heard.
    ///
    /// # Errors
    /// If one was.
    pub(crate) fn check(&self) -> Result<(), RegistrationError> {
        self.registration.check().map(|_| ())
    }

    /// Keeps in touch with the other stores, installs records, keeps the corpora as the metadata has them, and publishes
    /// how far the log is on disk. Returns why the node cannot go on.
    pub(crate) async fn keep(
        &self,
        engine: &Arc<Engine>,
        metadata: &dyn MetadataStore,
        followed: watch::Receiver<Arc<ClusterLayout>>,
    ) -> ServeError {
        let others = self
            .peers
            .keep(self.registration.keys(), engine, followed.clone());
        let keys = &**self.registration.keys();
        let floors = floors::run(self.floors, &self.peers, keys, engine, followed.clone());
        let registered = self.registration.keep_registered(followed.clone());
        let corpora = keep_reconciled(engine, metadata, self.peers.agreed());
        let reported = |shard, store| self.peers.reported_epoch(shard, store);
        let read = async || metadata.layout().await.ok();
        let told = self.peers.told();
        tokio::select! {
            problem = install_all(engine, reported, told, read, followed) => ServeError::Records(problem),
            problem = self.registration.keep_published(|| engine.synced()) => problem.into(),
            problem = registered => problem.into(),
            // None of these ends the node.
            never = async { tokio::join!(others, corpora, floors); pending().await } => never,
        }
    }

    /// Publishes the end of the log, which is closed.
    pub(crate) async fn leave(&self, synced: u64) {
        self.registration.publish_last(synced).await;
    }
}
