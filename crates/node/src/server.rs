//! A node's life: open what is stored, serve it, drain.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, METADATA_PATIENCE, MetadataError, MetadataStore};
use simshard_proto::shard::v1::shard_service_server::ShardServiceServer;
use simshard_proto::{MAX_MESSAGE_BYTES, MAX_SHARD_REQUEST_BYTES, SHARD_SERVICE_DESCRIPTORS};
use simshard_storage::{Claim, Failure, Holding, InstallFailure, OpenError, Options, Store};
use simshard_topology::replication::{Epoch, InstallError, ShardRecords, StoreId};
use simshard_topology::{MapDigest, NodeId, ShardId, ShardSet};
use simshard_transport::{self as transport, Budget, Interface};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::engine::{CorpusRecords, Engine, Threads};
use crate::grpc::ShardGrpc;
use crate::peers::{Peers, Takeover};
use crate::reconcile::{keep_reconciled, reconcile};
use crate::registration::{Registration, RegistrationError};

/// The stream of a router's work: it refuses items that find no room one by one.
const WORK_PATH: &str = "/simshard.shard.v1.ShardService/Work";

/// How often records that wait for reports of other nodes are looked at again.
const REPORTS_INTERVAL: Duration = Duration::from_millis(100);

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
    #[error("the storage failed, and the node with it: {0}")]
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
    layout: Arc<ClusterLayout>,
    /// As the metadata has it, for the records of shards.
    followed: watch::Receiver<Arc<ClusterLayout>>,
    engine: Arc<Engine>,
    metadata: Arc<dyn MetadataStore>,
    /// Of a node that has registered itself.
    registration: Option<Registration>,
}

impl Node {
    /// Opens what is stored and loads it.
    ///
    /// # Errors
    /// If the node has no place in the layout, or what is stored cannot be opened.
    pub async fn open(
        config: NodeConfig,
        store: Arc<dyn MetadataStore>,
    ) -> Result<Self, ServeError> {
        // Not read anew: the metadata may be away now.
        let followed = store.watch_layout();
        let layout = Arc::clone(&followed.borrow());
        let is_registered = store.names_stores();
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
            corpora: is_registered.then(|| CorpusRecords::new(Arc::clone(&store))),
        };
        let engine = start.engine(&config).await?;
        reconcile(&engine, &*store).await;
        Ok(Self {
            config,
            layout,
            followed,
            engine,
            metadata: store,
            registration: None,
        })
    }

    /// Lets it publish how far its log is on disk, and end when another process runs on a copy of its directory.
    #[must_use]
    pub fn registered(mut self, registration: Registration) -> Self {
        self.registration = Some(registration);
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
            layout,
            followed,
            engine,
            metadata,
            registration,
        } = self;
        let peers = registration.as_ref().map(|registration| {
            let (store, incarnation) = registration.start();
            Arc::new(Peers::new(store, incarnation, config.takeover))
        });
        if let Some(registration) = &registration {
            registration.check()?;
        }
        let map = layout.map();
        info!(node = %config.node, shards = %map.shards_of(&config.node), map = %map.digest(), "node serves");
        let service = ShardServiceServer::new(ShardGrpc {
            engine: Arc::clone(&engine),
            node: config.node.clone(),
            peers: peers.clone(),
            stopping: shutdown.clone(),
        })
        .max_decoding_message_size(MAX_SHARD_REQUEST_BYTES)
        .max_encoding_message_size(usize::MAX);
        let served = transport::serve(
            service,
            Interface {
                descriptors: SHARD_SERVICE_DESCRIPTORS,
                admits_itself: Some(WORK_PATH),
            },
            listener,
            Budget::new(config.in_flight_bytes),
            readiness(peers.as_ref()),
            &shutdown,
            config.drain,
        );
        tokio::select! {
            failure = engine.failure() => return Err(ServeError::Storage(failure)),
            () = agree(&engine, &*metadata, peers.as_ref()) => {}
            () = keep_peers(&engine, registration.as_ref(), peers.as_ref(), followed.clone()) => {}
            problem = install_all(&engine, peers.as_ref(), &*metadata, followed) => return Err(ServeError::Records(problem)),
            problem = keep_published(&engine, registration.as_ref()) => return Err(problem.into()),
            served = served => served?,
        }
        let closing = Arc::clone(&engine);
        let closed = tokio::task::spawn_blocking(move || closing.close()).await;
        closed
            .map_err(|_| ServeError::Stopped)?
            .map_err(ServeError::Storage)?;
        if let Some(registration) = registration {
            registration.publish_last(engine.synced()).await;
        }
        Ok(())
    }
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

/// Publishes how far the log is on disk. Returns why the node cannot go on.
async fn keep_published(engine: &Engine, registration: Option<&Registration>) -> RegistrationError {
    match registration {
        Some(registration) => registration.keep_published(|| engine.synced()).await,
        None => pending().await,
    }
}

/// Whether the node holds all that it should. One without peers does.
fn readiness(peers: Option<&Arc<Peers>>) -> watch::Receiver<bool> {
    peers.map_or_else(|| watch::channel(true).1, |peers| peers.ready())
}

/// Keeps the corpora of a node that has registered itself as the metadata has them.
async fn agree(engine: &Engine, metadata: &dyn MetadataStore, peers: Option<&Arc<Peers>>) {
    match peers {
        Some(peers) => keep_reconciled(engine, metadata, peers.agreed()).await,
        None => pending().await,
    }
}

/// Keeps in touch with the other stores of the node's shards, if it has registered itself.
async fn keep_peers(
    engine: &Arc<Engine>,
    registration: Option<&Registration>,
    peers: Option<&Arc<Peers>>,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    match (registration, peers) {
        (Some(registration), Some(peers)) => {
            peers.keep(registration.keys(), engine, followed).await;
        }
        (None, _) | (_, None) => pending().await,
    }
}

/// Installs the records of shards as they change, which the metadata or another store tells. Returns why it cannot go on.
async fn install_all(
    engine: &Engine,
    peers: Option<&Arc<Peers>>,
    metadata: &dyn MetadataStore,
    mut followed: watch::Receiver<Arc<ClusterLayout>>,
) -> InstallFailure {
    let reported = |shard, store| peers.map_or(Epoch::NONE, |peers| peers.report(shard, store));
    // Without peers, only the metadata tells of records.
    let silent = watch::Sender::default();
    let mut told = peers.map_or_else(|| silent.subscribe(), |peers| peers.told());
    // It is followed as long as the metadata is open.
    loop {
        let layout = Arc::clone(&followed.borrow_and_update());
        // What is read while another store tells of records may be of before them.
        let read = async {
            tokio::select! {
                read = timeout(METADATA_PATIENCE, metadata.layout()) => read.ok()?.ok(),
                Ok(()) = told.changed() => {
                    told.mark_changed();
                    None
                }
            }
        };
        let mut installed = install_news(engine, &layout, reported, read).await;
        if installed.is_ok() && told.has_changed().unwrap_or(false) {
            let records = Arc::clone(&told.borrow_and_update());
            installed = install_told(engine, &records, reported).await;
        }
        if let Err(problem) = installed {
            return problem;
        }
        // A record that adds this node as a learner waits for the report of another.
        let changed = timeout(REPORTS_INTERVAL, followed.changed()).await;
        if let Ok(Err(_)) = changed {
            return pending().await;
        }
    }
}

/// Installs records of which another store told. That one may be behind this one in some.
async fn install_told(
    engine: &Engine,
    records: &ShardRecords,
    reported: impl Fn(ShardId, StoreId) -> Epoch,
) -> Result<(), InstallFailure> {
    let mut news = records.clone();
    news.retain(|shard, record| record.epoch >= engine.report(*shard));
    engine.install(&news, reported).await
}

/// Installs the records of a layout. If the node has a later one already, the layout may be of before: then those that
/// `read` finds in the metadata. What is installed stays if the metadata is away.
async fn install_news(
    engine: &Engine,
    layout: &ClusterLayout,
    reported: impl Fn(ShardId, StoreId) -> Epoch + Copy,
    read: impl Future<Output = Option<Arc<ClusterLayout>>>,
) -> Result<(), InstallFailure> {
    match install(engine, layout, reported).await {
        Err(InstallFailure::Record {
            problem: InstallError::NotNewer(_),
            ..
        }) => match read.await {
            Some(newest) => install(engine, &newest, reported).await,
            // Those who follow the metadata say so.
            None => Ok(()),
        },
        installed => installed,
    }
}

async fn install(
    engine: &Engine,
    layout: &ClusterLayout,
    reported: impl Fn(ShardId, StoreId) -> Epoch,
) -> Result<(), InstallFailure> {
    match layout.records() {
        Some(records) => engine.install(records, reported).await,
        None => Ok(()),
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
    use std::collections::BTreeSet;

    use simshard_cluster::{
        Corpora, KeyValueMetadata, KeyValueStore, MemoryKeyValues, RegisteredStore, initialize,
        register, take_steps,
    };
    use simshard_topology::plan;
    use simshard_topology::replication::Step;
    use tonic::server::NamedService;

    use super::*;

    /// The layouts of a cluster of one node, one after the other, and the node's engine, which opened with the last.
    async fn opened() -> (Vec<Arc<ClusterLayout>>, Arc<Engine>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let claim = Node::claim(directory.path().to_owned()).await.unwrap();
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let node = NodeId::new("n1").unwrap();
        let store = RegisteredStore {
            id: claim.store,
            node: node.clone(),
            address: "http://127.0.0.1:7470".to_owned(),
            next_generation: 0,
            corpora: BTreeSet::new(),
            in_sync: std::collections::BTreeMap::new(),
            is_replacement: false,
        };
        drop(claim);
        register(&*keys, &store).await.unwrap();
        let map = plan(None, &[node], 1).unwrap();
        initialize(&*keys, &map, 1, &Corpora::default(), &[])
            .await
            .unwrap();
        let metadata = KeyValueMetadata::follow(Arc::clone(&keys), || {}, |_| {}).await;
        let metadata = metadata.unwrap();
        let mut layouts = vec![metadata.layout().await.unwrap()];
        for _ in 0..2 {
            let records = layouts.last().unwrap().records().unwrap().clone();
            let steps = take_steps(
                &*keys,
                |_, _| Some(Step::Keep),
                |shard, _| records[&shard].epoch,
                |_, _| false,
            );
            assert!(!steps.await.unwrap().taken.is_empty());
            layouts.push(metadata.layout().await.unwrap());
        }
        let holding = Holding {
            shards: ShardSet::ALL,
            records: layouts[1].records().cloned(),
        };
        let opened = Store::open(directory.path(), holding, Options::default()).unwrap();
        let threads = Arc::new(Threads::start(2).unwrap());
        let engine = Engine::start(opened, map.digest(), None, threads, 1 << 20).unwrap();
        (layouts, Arc::new(engine), directory)
    }

    #[tokio::test]
    async fn a_layout_of_before_ends_a_node_only_if_the_metadata_has_it_now() {
        let (layouts, engine, _directory) = opened().await;
        let [first, second, third] = &layouts[..] else {
            panic!("{layouts:?}");
        };
        let none = |_, _| Epoch::NONE;
        let epoch = |layout: &ClusterLayout| layout.records().unwrap()[&ShardId(7)].epoch;
        let installed = || engine.store().report(ShardId(7));
        assert_eq!(installed(), epoch(second));
        let away = async { None };
        install_news(&engine, first, none, away).await.unwrap();
        assert_eq!(installed(), epoch(second));
        let older = async { Some(Arc::clone(first)) };
        let refused = install_news(&engine, first, none, older).await.unwrap_err();
        assert!(
            matches!(refused, InstallFailure::Record { .. }),
            "{refused}"
        );
        let newer = async { Some(Arc::clone(third)) };
        install_news(&engine, first, none, newer).await.unwrap();
        assert_eq!(installed(), epoch(third));
    }

    /// PE11: what another store tells is installed, and what is older there ends nothing.
    #[tokio::test]
    async fn records_that_another_store_tells_are_installed_unless_they_are_older() {
        let (layouts, engine, _directory) = opened().await;
        let none = |_, _| Epoch::NONE;
        let records = |layout: usize| layouts[layout].records().unwrap();
        let told = |layout| install_told(&engine, records(layout), none);
        told(0).await.unwrap();
        told(2).await.unwrap();
        told(1).await.unwrap();
        let installed = engine.store().report(ShardId(7));
        assert_eq!(installed, records(2)[&ShardId(7)].epoch);
        let mut other = records(2).clone();
        for record in other.values_mut() {
            Arc::make_mut(record).nonce ^= 1;
        }
        let refused = install_told(&engine, &other, none).await.unwrap_err();
        assert!(matches!(
            refused,
            InstallFailure::Record {
                problem: InstallError::OtherHistory(_),
                ..
            }
        ));
    }

    #[test]
    fn the_stream_of_work_has_the_path_of_its_method() {
        let service = <ShardServiceServer<ShardGrpc> as NamedService>::NAME;
        assert_eq!(WORK_PATH, format!("/{service}/Work"));
    }
}
