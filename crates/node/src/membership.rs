//! What a node that has registered itself does beside serving.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, MetadataStore};
use simshard_transport::Dialer;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use crate::ServeError;
use crate::engine::Engine;
use crate::floors::Floors;
use crate::installing::install_all;
use crate::peers::{Peers, Takeover};
use crate::reconcile::keep_reconciled;
use crate::registration::{Registration, RegistrationError};

/// How long a node that is to stop may take to leave its shards.
const LEAVING_TIMEOUT: Duration = Duration::from_secs(5);

/// A node's place among the stores of a cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    registration: Registration,
    peers: Arc<Peers>,
    floors: Arc<Floors>,
    engine: Arc<Engine>,
    /// The layout, as the metadata has it.
    followed: watch::Receiver<Arc<ClusterLayout>>,
}

impl Membership {
    pub(crate) fn new(
        registration: Registration,
        takeover: Takeover,
        dialer: Dialer,
        engine: Arc<Engine>,
        followed: watch::Receiver<Arc<ClusterLayout>>,
    ) -> Self {
        let (store, incarnation) = registration.start();
        let peers = Arc::new(Peers::new(store, incarnation, takeover, dialer));
        let keys = Arc::clone(registration.keys());
        let floors = Floors::new(
            Arc::clone(&peers),
            keys,
            Arc::clone(&engine),
            followed.clone(),
        );
        Self {
            registration,
            peers,
            floors: Arc::new(floors),
            engine,
            followed,
        }
    }

    /// What this node knows of the others.
    pub(crate) fn peers(&self) -> Arc<Peers> {
        Arc::clone(&self.peers)
    }

    /// The floors of the shards that this node looks after.
    pub(crate) fn floors(&self) -> Arc<Floors> {
        Arc::clone(&self.floors)
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
    pub(crate) async fn keep(&self, metadata: &dyn MetadataStore) -> ServeError {
        let (engine, followed) = (&self.engine, &self.followed);
        let others = self
            .peers
            .keep(self.registration.keys(), engine, followed.clone());
        let floors = self.floors.thaw_forgotten();
        let registered = self.registration.keep_registered(followed.clone());
        let corpora = keep_reconciled(engine, metadata, self.peers.agreed());
        let reported = |shard, store| self.peers.reported_epoch(shard, store);
        let read = async || metadata.layout().await.ok();
        let told = self.peers.told();
        tokio::select! {
            problem = install_all(engine, reported, told, read, followed.clone()) => ServeError::Records(problem),
            problem = self.registration.keep_published(|| engine.synced()) => problem.into(),
            problem = registered => problem.into(),
            // None of these ends the node.
            never = async { tokio::join!(others, corpora, floors); pending().await } => never,
        }
    }

    /// Leaves the shards that go on without this node, before it stops. Then no change waits for it meanwhile. If the
    /// metadata does not answer, the node stops without that.
    pub(crate) async fn leave_shards(&self) {
        let holds_replicas = {
            let layout = self.followed.borrow();
            layout.map().is_replicated()
        };
        if holds_replicas
            && timeout(LEAVING_TIMEOUT, self.peers.leave_shards())
                .await
                .is_err()
        {
            warn!("the shards of this node do not go on without it yet: changes may wait for it");
        }
    }

    /// Publishes the end of the log, which is closed.
    pub(crate) async fn publish_end(&self, synced: u64) {
        self.registration.publish_last(synced).await;
    }
}
