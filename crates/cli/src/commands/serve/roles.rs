//! `simshard serve node` and `simshard serve router`: one role of a cluster whose layout is in a file, or follows from
//! what nodes register.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use simshard_cluster::{
    ClusterLayout, FileStore, KeyValueMetadata, KeyValueStore, MetadataAway, MetadataError,
    MetadataStore, Node, ShownProcess, show_router,
};
use simshard_runtime::observed::Observed;
use simshard_runtime::shutdown;
use simshard_runtime::system::raise_open_files;
use simshard_topology::NodeId;
use tokio::net::{TcpListener, TcpSocket};
use tracing::{info, warn};

use super::config::{NodeRole, Place, RouterRole};
use super::entering::enter;
use super::exposure;
use super::patience::{Absence, once_there};
use super::side_port;
use crate::connection::block_on;
use crate::embedded::{self, LISTEN, bind, url_of};
use crate::exit::UsageError;
use crate::say;

/// Files that a node has open with 256 shards, about.
const ENOUGH_FILES: u64 = 8192;

pub(super) fn run_node(role: NodeRole) -> anyhow::Result<()> {
    check_node(&role)?;
    block_on(async {
        let observed = role.config.observed.clone();
        side_port::beside(role.http, observed, serve_node(role)).await
    })
}

async fn serve_node(role: NodeRole) -> anyhow::Result<()> {
    let shutdown = shutdown::on_signals()?;
    open_enough_files();
    // Waiting for a cluster, and loading, may take long: a signal ends it at once.
    let Some(started) = shutdown.run_until_cancelled(start_node(role)).await else {
        return Ok(());
    };
    let Started {
        node,
        socket,
        url,
        shown,
    } = started?;
    let served = node.serve(announce(socket, &url)?, shutdown).await;
    if let Some(shown) = shown {
        shown.end().await;
    }
    Ok(served?)
}

/// A node that is ready.
struct Started {
    node: simshard_node::Node,
    socket: TcpSocket,
    /// Where it is to listen.
    url: String,
    /// If it registers itself.
    shown: Option<ShownProcess>,
}

async fn start_node(mut role: NodeRole) -> anyhow::Result<Started> {
    let (store, socket, registered) = match &role.metadata {
        Place::Store(keys) => {
            let listen = role.presence.listen.ok_or_else(no_address)?;
            let socket = bind(listen, LISTEN)?;
            let entered = enter(keys, &role, &socket).await?;
            if entered.is_replacement {
                info!(
                    "the earlier store of this node was lost: it takes shards that lack a replica at once"
                );
                role.config.takeover.at_once = true;
            }
            let registered = (entered.registration, entered.shown);
            (entered.metadata, socket, Some(registered))
        }
        Place::Files(layout) | Place::FileAndStore(layout, _) => {
            let store = open_layout(layout, role.metadata.store()).await?;
            let layout = store.layout().await?;
            let node = find_node(&layout, &role.config.node)?;
            let listen = match role.presence.listen {
                Some(listen) => listen,
                None => address_of(node)?,
            };
            check_exposure(listen, &role)?;
            (store, bind(listen, LISTEN)?, None)
        }
    };
    let url = url_of(socket.local_addr()?, role.config.certificates.as_ref());
    let node = simshard_node::Node::open(role.config, store).await?;
    let (node, shown) = match registered {
        Some((registration, shown)) => (node.registered(registration), Some(shown)),
        None => (node, None),
    };
    Ok(Started {
        node,
        socket,
        url,
        shown,
    })
}

/// Refuses settings of a node that do not go together. Nothing is bound or opened by then.
pub(super) fn check_node(role: &NodeRole) -> Result<(), UsageError> {
    let presence = &role.presence;
    let is_registered = matches!(role.metadata, Place::Store(_));
    let of_registered = [
        ("--address", presence.address.is_some()),
        ("--accept-lost-changes", presence.accepts_loss),
    ];
    let mut misplaced = of_registered
        .iter()
        .filter(|(_, is_given)| *is_given && !is_registered);
    if let Some((flag, _)) = misplaced.next() {
        return Err(UsageError(format!(
            "{flag} is for nodes that register themselves: leave it out, or --cluster"
        )));
    }
    match presence.listen {
        Some(listen) => check_exposure(listen, role),
        None if is_registered => Err(no_address()),
        None => Ok(()),
    }
}

fn check_exposure(listen: SocketAddr, role: &NodeRole) -> Result<(), UsageError> {
    let lack = exposure::of_node(role.config.certificates.is_some());
    exposure::check(listen, lack, role.presence.insecure)
}

pub(super) fn run_router(role: RouterRole) -> anyhow::Result<()> {
    block_on(async {
        let observed = role.config.observed.clone();
        side_port::beside(role.http, observed, serve_router(role)).await
    })
}

async fn serve_router(role: RouterRole) -> anyhow::Result<()> {
    let shutdown = shutdown::on_signals()?;
    raise_open_files();
    let open = async |absence: &Absence| {
        Ok(match &role.metadata {
            Place::Store(keys) => follow(keys, absence, &role.config.observed).await?,
            Place::Files(layout) | Place::FileAndStore(layout, _) => {
                open_layout(layout, role.metadata.store()).await?
            }
        })
    };
    let Some(store) = shutdown.run_until_cancelled(once_there(open)).await else {
        return Ok(());
    };
    let store = store?;
    let socket = bind(role.presence, LISTEN)?;
    let url = url_of(socket.local_addr()?, role.config.security.tls.as_ref());
    let shown = match &role.metadata {
        Place::Store(keys) => {
            let show = async |_: &Absence| Ok(show_router(keys, &url).await?);
            let shown = shutdown.run_until_cancelled(once_there(show)).await;
            let Some(shown) = shown else {
                return Ok(());
            };
            Some(shown?)
        }
        Place::Files(_) | Place::FileAndStore(..) => None,
    };
    let listener = announce(socket, &url)?;
    let served = simshard_router::serve(role.config, store, listener, shutdown).await;
    if let Some(shown) = shown {
        shown.end().await;
    }
    Ok(served?)
}

/// The layout from its file, and the corpora from beside it or from a store.
async fn open_layout(
    layout: &Path,
    corpora: Option<&Arc<dyn KeyValueStore>>,
) -> Result<Arc<dyn MetadataStore>, MetadataError> {
    let file = FileStore::open(layout).await?;
    Ok(match corpora {
        None => Arc::new(file),
        Some(store) => Arc::new(KeyValueMetadata::with_layout(
            file.layout().await?,
            Arc::clone(store),
        )),
    })
}

/// The metadata of a cluster without a layout file, once there is one.
pub(super) async fn follow(
    keys: &Arc<dyn KeyValueStore>,
    absence: &Absence,
    observed: &Observed,
) -> Result<Arc<dyn MetadataStore>, MetadataError> {
    let away: MetadataAway = observed.metrics();
    let on_wait = || {
        absence.is_over();
        info!("there is no cluster yet: `simshard cluster init` begins one");
    };
    let on_turn = move |turn: Result<(), &MetadataError>| match turn {
        Err(error) => {
            away.begin();
            warn!(%error, "changes of nodes and shards cannot be seen now");
        }
        Ok(()) => {
            away.end();
            info!("changes of nodes and shards are seen again");
        }
    };
    let metadata = KeyValueMetadata::follow(Arc::clone(keys), on_wait, on_turn).await?;
    if let Some(fault) = keys.known_fault().await {
        warn!("{fault}");
    }
    Ok(Arc::new(metadata))
}

fn no_address() -> UsageError {
    UsageError(
        "--listen is missing: without a layout file, the node has no address; port 0 takes any that is free".to_owned(),
    )
}

/// Raises the number of files that may be open, and warns if that is few for a data directory.
pub(super) fn open_enough_files() {
    if let Some(files) = raise_open_files().filter(|files| *files < ENOUGH_FILES) {
        warn!("{}", too_few(files));
    }
}

fn too_few(files: u64) -> String {
    format!(
        "at most {files} files may be open at once, and a node may need {ENOUGH_FILES}: raise the limit before the \
         start, as by `ulimit -n {ENOUGH_FILES}`"
    )
}

/// Lets others connect, and says where on standard output.
fn announce(socket: TcpSocket, url: &str) -> anyhow::Result<TcpListener> {
    let listener = embedded::listen(socket, LISTEN)?;
    say::print(format!("listening on {url}"))?;
    Ok(listener)
}

/// The node of this name, which must be there before anything is bound.
fn find_node<'a>(layout: &'a ClusterLayout, name: &NodeId) -> Result<&'a Node, UsageError> {
    layout.node(name).ok_or_else(|| {
        let known: Vec<&str> = layout.nodes().iter().map(|node| node.id.as_str()).collect();
        let known = known.join(", ");
        UsageError(format!("the layout has no node {name}: it lists {known}"))
    })
}

/// The address that the layout gives a node.
fn address_of(node: &Node) -> anyhow::Result<SocketAddr> {
    let (_scheme, address) = node
        .address
        .split_once("://")
        .unwrap_or(("", &node.address));
    let mut resolved = address
        .to_socket_addrs()
        .with_context(|| format!("cannot resolve {address}: give --listen"))?;
    resolved
        .next()
        .with_context(|| format!("{address} has no address: give --listen"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_are_told_with_what_is_needed_and_how() {
        let text = too_few(256);
        for told in ["256 files", "need 8192", "`ulimit -n 8192`"] {
            assert!(text.contains(told), "{text}");
        }
    }
}
