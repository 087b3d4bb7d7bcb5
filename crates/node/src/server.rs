//! A node's life: open what is stored, serve it, drain.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, MetadataError, MetadataStore};
use simshard_proto::shard::v1::shard_service_server::ShardServiceServer;
use simshard_proto::{MAX_MESSAGE_BYTES, MAX_SHARD_REQUEST_BYTES, SHARD_SERVICE_DESCRIPTORS};
use simshard_runtime::observed::Observed;
use simshard_storage::{Claim, Failure, Holding, InstallFailure, OpenError, Options, Store};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{MapDigest, NodeId, ShardSet};
use simshard_transport::{self as transport, Budget, Dialer, Interface, Security, Tls};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::engine::{CorpusRecords, Engine, Threads};
use crate::grpc::ShardGrpc;
use crate::membership::Membership;
use crate::metrics::Nodes;
use crate::peers::Takeover;
use crate::reconcile::reconcile;
use crate::registration::{Registration, RegistrationError};
use crate::work_watch::watch;

/// The stream of a router's work: it refuses items that find no room one by one.
const WORK_PATH: &str = "/simshard.shard.v1.ShardService/Work";

/// The configuration of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Its name in the cluster's layout.
    pub node: NodeId,
    /// The directory that holds its documents; `None` keeps them in memory only.
    pub data: Option<PathBuf>,
    /// How that directory is used.
    pub storage: Options,
    /// Threads for each class of work: small searches, large ones, and changes.
    pub threads: usize,
    /// Bytes that requests in flight may use together.
    pub in_flight_bytes: usize,
    /// How long requests in flight may take after a shutdown began.
    pub drain: Duration,
    /// When the node takes shards that it never held, if it has registered itself.
    pub takeover: Takeover,
    /// The metrics of the process, and whether it is ready.
    pub observed: Observed,
    /// The certificates of the cluster: without them, it is reached by all, and reaches others as they are.
    pub certificates: Option<Tls>,
}

/// Why a node could not serve, or serves no longer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The layout cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The layout does not name this node.
    #[error("the cluster layout has no node {node}: it lists {known}")]
    UnknownNode {
        /// The node asked for.
        node: NodeId,
        /// The nodes there are.
        known: String,
    },
    /// No threads for the engine.
    #[error("cannot start the engine's threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The storage failed while the node served.
    #[error(
        "the storage failed, and the node with it: {0}; check the disk, then start the node again"
    )]
    Storage(Failure),
    /// The metadata has records of shards that may not follow those that are installed.
    #[error("the node cannot follow the metadata, and ends: {0}")]
    Records(InstallFailure),
    /// The directory is not that of the store that ran last.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// Starting was cut off.
    #[error("the node was stopped while it started")]
    Stopped,
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] transport::ServeError),
}

/// A node with all that is stored loaded: ready to serve.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    /// The layout, as the metadata has it.
    followed: watch::Receiver<Arc<ClusterLayout>>,
    engine: Arc<Engine>,
    metadata: Arc<dyn MetadataStore>,
    /// Of a node that has registered itself.
    membership: Option<Membership>,
}

impl Node {
    /// Opens what is stored and loads it.
    ///
    /// # Errors
    /// If the node has no place in the layout, or what is stored cannot be opened.
    pub async fn open(
        config: NodeConfig,
        metadata: Arc<dyn MetadataStore>,
    ) -> Result<Self, ServeError> {
        // Not read anew: the metadata may be away now.
        let followed = metadata.watch_layout();
        let layout = Arc::clone(&followed.borrow());
        let is_registered = metadata.names_stores();
        if !is_registered {
            check_named(&config.node, &layout)?;
        }
        let start = Start {
            // Records may give a node that has registered any shard while it runs.
            shards: if is_registered {
                ShardSet::ALL
            } else {
                layout.map().shards_of(&config.node)
            },
            map: layout.map().digest(),
            records: layout.records().cloned(),
            corpora: is_registered.then(|| CorpusRecords::new(Arc::clone(&metadata))),
        };
        let engine = start.engine(&config).await?;
        reconcile(&engine, &*metadata).await;
        Ok(Self {
            config,
            followed,
            engine,
            metadata,
            membership: None,
        })
    }

    /// Lets it publish how far its log is on disk, and end when another process runs on a copy of its directory.
    #[must_use]
    pub fn registered(mut self, registration: Registration) -> Self {
        let followed = self.followed.clone();
        let engine = Arc::clone(&self.engine);
        let takeover = self.config.takeover;
        let dialer = Dialer::new(self.config.certificates.clone());
        self.membership = Some(Membership::new(
            registration,
            takeover,
            dialer,
            engine,
            followed,
        ));
        self
    }

    /// Claims a data directory, which is made if there is none, for a node whose shards are not known yet.
    ///
    /// # Errors
    /// If the directory is in use, damaged or of another format.
    pub async fn claim(data: PathBuf) -> Result<Claim, ServeError> {
        let claim = tokio::task::spawn_blocking(move || Store::claim(&data)).await;
        Ok(claim.map_err(|_| ServeError::Stopped)??)
    }

    /// Serves the node's shards on `listener` until `shutdown`, then lets requests in flight finish.
    ///
    /// # Errors
    /// If the transport fails, or the storage.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError> {
        let Self {
            config,
            followed,
            engine,
            metadata,
            membership,
        } = self;
        let membership = membership.as_ref();
        membership.map(Membership::check).transpose()?;
        say_serving(&config.node, &followed.borrow());
        Nodes::show(&config.observed, config.node.clone(), &engine);
        let stopping = CancellationToken::new();
        let grpc = ShardGrpc {
            engine: Arc::clone(&engine),
            node: config.node.clone(),
            dialer: Dialer::new(config.certificates.clone()),
            peers: membership.map(Membership::peers),
            floors: membership.map(Membership::floors),
            layout: followed.clone(),
            stopping: stopping.clone(),
            watch: Arc::new(watch(&config.observed, &config.node)),
        };
        let served = transport::serve(
            service(grpc),
            Interface {
                admits_itself: Some(WORK_PATH),
                security: Security::by_certificates(config.certificates),
                ..Interface::new(SHARD_SERVICE_DESCRIPTORS, config.observed)
            },
            listener,
            Budget::new(config.in_flight_bytes),
            readiness(membership),
            &stopping,
            config.drain,
        );
        let leaving = async {
            leave(membership, &shutdown, &stopping).await;
            pending::<()>().await;
        };
        tokio::select! {
            failure = engine.failure() => return Err(ServeError::Storage(failure)),
            problem = stay_member(membership, &*metadata) => return Err(problem),
            served = served => served?,
            () = leaving => {}
        }
        let closing = Arc::clone(&engine);
        let closed = tokio::task::spawn_blocking(move || closing.close()).await;
        closed
            .map_err(|_| ServeError::Stopped)?
            .map_err(ServeError::Storage)?;
        if let Some(membership) = membership {
            membership.publish_end(engine.synced()).await;
        }
        Ok(())
    }
}

fn say_serving(node: &NodeId, layout: &ClusterLayout) {
    let map = layout.map();
    info!(%node, shards = %map.shards_of(node), map = %map.digest(), "node serves");
}

fn service(grpc: ShardGrpc) -> ShardServiceServer<ShardGrpc> {
    ShardServiceServer::new(grpc)
        .max_decoding_message_size(MAX_SHARD_REQUEST_BYTES)
        .max_encoding_message_size(usize::MAX)
}

/// Once the node is to stop, it leaves its shards, and then no request is taken any more.
async fn leave(
    membership: Option<&Membership>,
    shutdown: &CancellationToken,
    stopping: &CancellationToken,
) {
    shutdown.cancelled().await;
    if let Some(membership) = membership {
        membership.leave_shards().await;
    }
    stopping.cancel();
}

fn check_named(node: &NodeId, layout: &ClusterLayout) -> Result<(), ServeError> {
    if layout.node(node).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = layout.nodes().iter().map(|node| node.id.as_str()).collect();
    Err(ServeError::UnknownNode {
        node: node.clone(),
        known: names.join(", "),
    })
}

/// Whether the node holds all that it should. One that has not registered itself does.
fn readiness(membership: Option<&Membership>) -> watch::Receiver<bool> {
    membership.map_or_else(
        || watch::channel(true).1,
        |membership| membership.peers().ready(),
    )
}

/// Does what a node that has registered itself does beside serving. Returns why it cannot go on.
async fn stay_member(membership: Option<&Membership>, metadata: &dyn MetadataStore) -> ServeError {
    match membership {
        Some(membership) => membership.keep(metadata).await,
        None => pending().await,
    }
}

/// What a node knows of the cluster when it starts.
struct Start {
    shards: ShardSet,
    map: MapDigest,
    /// `None` if the metadata has no such records.
    records: Option<ShardRecords>,
    /// `None` if the node's directory may have been lost.
    corpora: Option<CorpusRecords>,
}

impl Start {
    /// Opens what is stored and loads it, away from the async threads.
    async fn engine(self, config: &NodeConfig) -> Result<Arc<Engine>, ServeError> {
        let NodeConfig {
            data,
            storage,
            threads,
            ..
        } = config.clone();
        let holding = Holding {
            shards: self.shards,
            records: self.records,
        };
        let start = move || {
            let threads = Arc::new(Threads::start(threads)?);
            let store = match data {
                None => Store::in_memory(self.shards),
                Some(directory) => threads.install(|| Store::open(&directory, holding, storage))?,
            };
            let engine = Engine::start(store, self.map, self.corpora, threads, MAX_MESSAGE_BYTES)?;
            Ok(Arc::new(engine))
        };
        let started = tokio::task::spawn_blocking(start).await;
        started.map_err(|_| ServeError::Stopped)?
    }
}

#[cfg(test)]
mod tests {
    use tonic::server::NamedService;

    use super::*;

    #[test]
    fn the_stream_of_work_has_the_path_of_its_method() {
        let service = <ShardServiceServer<ShardGrpc> as NamedService>::NAME;
        assert_eq!(WORK_PATH, format!("/{service}/Work"));
    }
}
