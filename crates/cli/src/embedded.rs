//! A whole cluster in one process: nodes and a router that talk gRPC over
//! loopback, with the layout in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use simshard_cluster::{ClusterLayout, MemoryStore, MetadataStore, Node};
use simshard_node::NodeConfig;
use simshard_router::RouterConfig;
use simshard_topology::NodeId;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long requests under way may take after a shutdown began.
pub const DRAIN: Duration = Duration::from_secs(10);

/// How long a request may take if the client does not say.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The cluster to start.
#[derive(Clone, Debug)]
pub struct EmbeddedConfig {
    /// Names of the nodes.
    pub nodes: Vec<NodeId>,
    /// Where the router listens; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Threads of each node that work on shards.
    pub threads: usize,
}

/// A cluster that runs until it is stopped.
#[derive(Debug)]
pub struct EmbeddedCluster {
    address: SocketAddr,
    layout: ClusterLayout,
    store: Arc<MemoryStore>,
    nodes: Vec<(NodeId, Task)>,
    router: Task,
}

#[derive(Debug)]
struct Task {
    stop: CancellationToken,
    end: JoinHandle<anyhow::Result<()>>,
}

impl Task {
    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.end.await.context("a role panicked")?
    }
}

impl EmbeddedCluster {
    /// Binds every port, then starts the roles.
    ///
    /// # Errors
    /// If a port is taken, or a role cannot start.
    pub async fn start(config: EmbeddedConfig) -> anyhow::Result<Self> {
        let router = bind(config.listen).await?;
        let address = router.local_addr()?;
        let mut listeners = Vec::new();
        let mut nodes = Vec::new();
        for id in &config.nodes {
            let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
            let address = format!("http://{}", listener.local_addr()?);
            nodes.push(Node {
                id: id.clone(),
                address,
            });
            listeners.push(listener);
        }
        let layout = ClusterLayout::planned(nodes, 1)?;
        let store = Arc::new(MemoryStore::new(layout.clone()));

        let mut tasks = Vec::new();
        for (node, listener) in config.nodes.into_iter().zip(listeners) {
            let stop = CancellationToken::new();
            let settings = NodeConfig {
                node: node.clone(),
                threads: config.threads,
                drain: DRAIN,
            };
            let role = simshard_node::serve(settings, store.clone(), listener, stop.clone());
            let end = tokio::spawn(async { Ok(role.await?) });
            tasks.push((node, Task { stop, end }));
        }
        let stop = CancellationToken::new();
        let settings = RouterConfig {
            timeout: TIMEOUT,
            drain: DRAIN,
        };
        let role = simshard_router::serve(settings, store.clone(), router, stop.clone());
        let end = tokio::spawn(async { Ok(role.await?) });
        Ok(Self {
            address,
            layout,
            store,
            nodes: tasks,
            router: Task { stop, end },
        })
    }

    /// The router's URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The nodes and their shards.
    #[must_use]
    pub fn layout(&self) -> &ClusterLayout {
        &self.layout
    }

    /// Where the layout and the corpora are kept.
    #[must_use]
    pub fn store(&self) -> Arc<dyn MetadataStore> {
        self.store.clone()
    }

    /// Stops one node, as if its machine had gone.
    ///
    /// # Errors
    /// If there is no such node, or it failed.
    pub async fn stop_node(&mut self, node: &NodeId) -> anyhow::Result<()> {
        let place = self.nodes.iter().position(|(id, _)| id == node);
        let (_, task) = self.nodes.remove(place.context("no such node")?);
        task.stop().await
    }

    /// Lets requests under way finish, router first, and stops.
    ///
    /// # Errors
    /// If a role failed.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.router.stop().await?;
        for (_, node) in self.nodes {
            node.stop().await?;
        }
        Ok(())
    }
}

/// Binds a listener, or says which address is taken.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}: choose another with --listen"))
}
