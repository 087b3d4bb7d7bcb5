//! A whole cluster in one process: nodes and a router that talk gRPC over
//! loopback. The layout is in memory; documents and corpora are in a data directory if there is one.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures_util::future;
use simshard_cluster::{ClusterLayout, Corpora, FileStore, MemoryStore, MetadataStore, Node};
use simshard_node::Dialer;
use simshard_node::{NodeConfig, StorageOptions, Takeover};
use simshard_router::{RouterConfig, Web};
pub use simshard_router::{Security, Tls, TlsFiles, Tokens};
use simshard_runtime::observed::Observed;
use simshard_storage::is_data_directory;
use simshard_topology::NodeId;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::exit::UsageError;

/// How long requests in flight may take after a shutdown began.
pub const DRAIN: Duration = Duration::from_secs(10);

/// Bytes that the requests in flight in a router or node may use together.
pub const IN_FLIGHT_BYTES: usize = 512 << 20;

/// The name of the node of `serve` without a role, and of its folder in the data directory.
pub const EMBEDDED_NODE: &str = "local";

/// How long a request may take if the client does not say.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Corpora beyond which none is created.
pub const MAX_CORPORA: usize = 1_000;

/// The flag that chooses where a role listens.
pub(crate) const LISTEN: &str = "--listen";

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// The cluster to start.
#[derive(Clone, Debug)]
pub struct EmbeddedConfig {
    /// Names of the nodes.
    pub nodes: Vec<NodeId>,
    /// Where the router listens; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The directory that holds the documents and corpora; `None` keeps them in memory only.
    pub data: Option<PathBuf>,
    /// How each node keeps what is in the directory.
    pub storage: StorageOptions,
    /// Threads of each node that work on shards.
    pub threads: usize,
    /// Corpora beyond which none is created.
    pub max_corpora: usize,
    /// Bytes that the requests in flight in each role may use together.
    pub in_flight_bytes: usize,
    /// How long requests in flight may take after a shutdown began.
    pub drain: Duration,
    /// The metrics of all roles together, and whether all are ready.
    pub observed: Observed,
    /// Who may use the router from a browser.
    pub web: Web,
    /// What keeps strangers out.
    pub security: Security,
}

/// A cluster that runs until it is stopped.
#[derive(Debug)]
pub struct EmbeddedCluster {
    /// Of the router.
    url: String,
    layout: ClusterLayout,
    store: Arc<dyn MetadataStore>,
    /// Those that run, in the order in which they are stopped: the router first.
    roles: Vec<Role>,
}

/// A role that runs until it is stopped, or ends by itself.
#[derive(Debug)]
struct Role {
    name: String,
    stop: CancellationToken,
    end: JoinHandle<anyhow::Result<()>>,
}

impl Role {
    /// Starts what `serve` makes of the token that stops it.
    fn start<E, F>(name: String, serve: impl FnOnce(CancellationToken) -> F) -> Self
    where
        E: Into<anyhow::Error>,
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let role = serve(stop.clone());
        let end = tokio::spawn(async { role.await.map_err(Into::into) });
        Self { name, stop, end }
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.end
            .await
            .with_context(|| format!("the {} panicked", self.name))?
    }
}

fn node_name(node: &NodeId) -> String {
    format!("node {node}")
}

impl EmbeddedCluster {
    /// Binds every port and opens what is stored, then starts the roles.
    ///
    /// # Errors
    /// If a port is taken, or a role cannot start.
    pub async fn start(config: EmbeddedConfig) -> anyhow::Result<Self> {
        if let Some(data) = &config.data {
            check_is_no_node(data)?;
        }
        let router = bind(config.listen, LISTEN)?;
        let url = url_of(router.local_addr()?, config.security.tls.as_ref());
        let mut sockets = Vec::new();
        let mut nodes = Vec::new();
        for id in &config.nodes {
            let socket = bind(SocketAddr::from(([127, 0, 0, 1], 0)), LISTEN)?;
            nodes.push(Node {
                id: id.clone(),
                address: format!("http://{}", socket.local_addr()?),
            });
            sockets.push(socket);
        }
        let layout = ClusterLayout::planned(nodes, 1)?;
        let store = metadata(layout.clone(), config.data.as_deref());
        let mut roles = Vec::new();
        for (id, socket) in config.nodes.iter().zip(sockets) {
            let settings = config.node(id);
            let node = simshard_node::Node::open(settings, Arc::clone(&store)).await?;
            let listener = listen(socket, LISTEN)?;
            roles.push(Role::start(node_name(id), |stop| {
                node.serve(listener, stop)
            }));
        }
        let settings = RouterConfig {
            timeout: TIMEOUT,
            max_corpora: config.max_corpora,
            in_flight_bytes: config.in_flight_bytes,
            drain: config.drain,
            observed: config.observed.clone(),
            web: config.web.clone(),
            security: config.security.clone(),
            dialer: Dialer::PLAIN,
        };
        let listener = listen(router, LISTEN)?;
        let router = Role::start("router".to_owned(), |stop| {
            simshard_router::serve(settings, Arc::clone(&store), listener, stop)
        });
        roles.insert(0, router);
        Ok(Self {
            url,
            layout,
            store,
            roles,
        })
    }

    /// The router's URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The nodes and their shards.
    #[must_use]
    pub fn layout(&self) -> &ClusterLayout {
        &self.layout
    }

    /// Where the layout and the corpora are kept.
    #[must_use]
    pub fn store(&self) -> Arc<dyn MetadataStore> {
        Arc::clone(&self.store)
    }

    /// Stops one node, as if its machine had gone.
    ///
    /// # Errors
    /// If there is no such node, or it failed.
    pub async fn stop_node(&mut self, node: &NodeId) -> anyhow::Result<()> {
        let name = node_name(node);
        let place = self.roles.iter().position(|role| role.name == name);
        let role = self.roles.remove(place.context("no such node")?);
        role.stop().await
    }

    /// Waits until a role ends without having been stopped, and says why it did.
    /// Never returns while all of them run.
    pub async fn failed(&mut self) -> anyhow::Error {
        if self.roles.is_empty() {
            return future::pending().await;
        }
        let ends = self.roles.iter_mut().map(|role| &mut role.end);
        let (end, place, _) = future::select_all(ends).await;
        let name = self.roles.remove(place).name;
        match end {
            Ok(Ok(())) => anyhow!("the {name} ended by itself"),
            Ok(Err(error)) => error.context(format!("the {name} failed")),
            Err(panic) => anyhow::Error::new(panic).context(format!("the {name} panicked")),
        }
    }

    /// Waits until it is time to stop.
    ///
    /// # Errors
    /// If it is because a role has ended by itself.
    pub async fn run_until(&mut self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            error = self.failed() => Err(error),
        }
    }

    /// Lets requests in flight finish, router first, and stops.
    ///
    /// # Errors
    /// If a role failed; the others are stopped all the same.
    pub async fn stop(self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        for role in self.roles {
            outcome = outcome.and(role.stop().await);
        }
        outcome
    }
}

impl EmbeddedConfig {
    /// Nodes in memory with `threads` threads each, and a router on a free port of loopback.
    #[must_use]
    pub fn in_memory(nodes: Vec<NodeId>, threads: usize) -> Self {
        Self {
            nodes,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data: None,
            storage: StorageOptions::default(),
            threads,
            max_corpora: MAX_CORPORA,
            in_flight_bytes: IN_FLIGHT_BYTES,
            drain: DRAIN,
            observed: Observed::default(),
            web: Web::default(),
            security: Security::default(),
        }
    }

    /// The settings of one node.
    fn node(&self, id: &NodeId) -> NodeConfig {
        NodeConfig {
            node: id.clone(),
            data: self.data.as_ref().map(|data| data.join(id.as_str())),
            storage: self.storage,
            threads: self.threads,
            in_flight_bytes: self.in_flight_bytes,
            drain: self.drain,
            takeover: Takeover::default(),
            observed: self.observed.clone(),
            certificates: None,
        }
    }
}

/// Where the corpora are kept: in the data directory if there is one. Addresses change with every start, so the
/// layout is never written.
fn metadata(layout: ClusterLayout, data: Option<&Path>) -> Arc<dyn MetadataStore> {
    match data {
        None => Arc::new(MemoryStore::new(layout)),
        Some(data) => Arc::new(FileStore::of_layout(layout, &layout_file(data))),
    }
}

/// The corpora of a data directory that a single process served.
///
/// # Errors
/// If there are none, or the file cannot be understood.
pub async fn corpora(data: &Path) -> anyhow::Result<Arc<Corpora>> {
    if !is_data_directory(&data.join(EMBEDDED_NODE)) {
        let problem = format!(
            "{} holds nothing that `simshard serve --data` has stored: give the directory that it had",
            data.display()
        );
        return Err(UsageError(problem).into());
    }
    let node = Node {
        id: NodeId::new(EMBEDDED_NODE)?,
        address: "http://127.0.0.1:1".to_owned(),
    };
    if !FileStore::corpora_file(&layout_file(data)).exists() {
        let problem = format!(
            "{} has no file of corpora: copy it with all that is in it",
            data.display()
        );
        return Err(UsageError(problem).into());
    }
    let store = metadata(ClusterLayout::planned(vec![node], 1)?, Some(data));
    Ok(store.corpora().await?)
}

/// Where the layout would be, if it were written.
fn layout_file(data: &Path) -> PathBuf {
    data.join("cluster.toml")
}

/// A data directory of `serve node` is no place for those of others.
fn check_is_no_node(data: &Path) -> Result<(), UsageError> {
    if is_data_directory(data) {
        Err(UsageError(format!(
            "{} is the data directory of a node: start that with `simshard serve node`, or give another directory",
            data.display()
        )))
    } else {
        Ok(())
    }
}

/// The URL of a router that listens there.
pub(crate) fn url_of(address: SocketAddr, tls: Option<&Tls>) -> String {
    let scheme = if tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Binds an address; the error names one that is in use, and the flag that chose it. Clients can connect only once the
/// socket listens.
pub(crate) fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<TcpSocket> {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A port whose last connections are still closing is free.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok::<_, io::Error>(socket)
    };
    bind().map_err(|error| {
        let problem = cannot_listen(&address, flag);
        if is_no_address_here(&error) {
            UsageError(format!("{problem}: {error}")).into()
        } else {
            anyhow::Error::new(error).context(problem)
        }
    })
}

/// Whether the system will never let this process listen there, unlike where another one does.
fn is_no_address_here(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::PermissionDenied
    )
}

/// Lets others connect.
pub(crate) fn listen(socket: TcpSocket, flag: &str) -> anyhow::Result<TcpListener> {
    let address = socket.local_addr()?;
    // Two sockets may share an address until one of them listens.
    socket
        .listen(BACKLOG)
        .with_context(|| cannot_listen(&address, flag))
}

fn cannot_listen(address: &SocketAddr, flag: &str) -> String {
    format!("cannot listen on {address}: choose another with {flag}")
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use futures_util::FutureExt;

    use super::*;

    async fn start() -> EmbeddedCluster {
        let nodes = ["n1", "n2"].map(|name| NodeId::new(name).unwrap());
        let config = EmbeddedConfig::in_memory(nodes.to_vec(), 1);
        EmbeddedCluster::start(config).await.unwrap()
    }

    /// How a cluster ends in which one more role ends by itself.
    async fn end_with(outcome: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> String {
        let mut cluster = start().await;
        let role = Role::start("node n3".to_owned(), |_| async { outcome() });
        cluster.roles.push(role);
        let error = cluster
            .run_until(&CancellationToken::new())
            .await
            .unwrap_err();
        cluster.stop().await.unwrap();
        format!("{error:#}")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_role_that_ends_by_itself_ends_the_cluster() {
        let message = end_with(|| bail!("no more sockets")).await;
        assert_eq!(message, "the node n3 failed: no more sockets");
        assert_eq!(end_with(|| Ok(())).await, "the node n3 ended by itself");
        let message = end_with(|| panic!("a fault")).await;
        assert!(message.starts_with("the node n3 panicked: "), "{message}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_node_that_was_stopped_is_no_failure() {
        let mut cluster = start().await;
        let stopped = NodeId::new("n1").unwrap();
        cluster.stop_node(&stopped).await.unwrap();
        assert!(cluster.stop_node(&stopped).await.is_err());
        assert!(cluster.failed().now_or_never().is_none());
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        cluster.run_until(&shutdown).await.unwrap();
        cluster.stop().await.unwrap();
    }
}
