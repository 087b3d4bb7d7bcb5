//! `simshard serve node` and `simshard serve router`: one role of a cluster
//! whose layout is in a file.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use anyhow::Context;
use simshard_cluster::{
    ClusterLayout, FileStore, KeyValueMetadata, MetadataError, MetadataStore, Node,
};
use simshard_runtime::shutdown;
use simshard_runtime::system::raise_open_files;
use simshard_topology::NodeId;
use tokio::net::{TcpListener, TcpSocket};
use tracing::warn;

use super::config::{NodeRole, Role, RouterRole};
use crate::connection::block_on;
use crate::embedded::{self, bind};
use crate::exit::UsageError;
use crate::say;

/// Files that a node has open with 256 shards, about.
const ENOUGH_FILES: u64 = 8192;

pub(super) fn run_node(role: NodeRole) -> anyhow::Result<()> {
    block_on(async {
        let store = open_metadata(&role).await?;
        let layout = store.layout().await?;
        let node = find_node(&layout, &role.config.node)?;
        let listen = match role.listen {
            Some(listen) => listen,
            None => address_of(node)?,
        };
        let shutdown = shutdown::on_signals()?;
        open_enough_files();
        let socket = bind(listen)?;
        // Loading may take long: a signal ends it at once.
        let open = simshard_node::Node::open(role.config, &*store);
        let Some(node) = shutdown.run_until_cancelled(open).await else {
            return Ok(());
        };
        let node = node?;
        node.serve(announce(socket)?, shutdown).await?;
        Ok(())
    })
}

pub(super) fn run_router(role: RouterRole) -> anyhow::Result<()> {
    block_on(async {
        let store = open_metadata(&role).await?;
        let shutdown = shutdown::on_signals()?;
        raise_open_files();
        let listener = announce(bind(role.listen)?)?;
        simshard_router::serve(role.config, store, listener, shutdown).await?;
        Ok(())
    })
}

/// The layout from its file, and the corpora from where they are kept.
async fn open_metadata<A, C>(role: &Role<A, C>) -> Result<Arc<dyn MetadataStore>, MetadataError> {
    let file = FileStore::open(&role.cluster).await?;
    Ok(match &role.metadata {
        None => Arc::new(file),
        Some(store) => Arc::new(KeyValueMetadata::new(
            file.layout().await?,
            Arc::clone(store),
        )),
    })
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
fn announce(socket: TcpSocket) -> anyhow::Result<TcpListener> {
    let listener = embedded::listen(socket)?;
    say::print(format!("listening on http://{}", listener.local_addr()?))?;
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
    let address = node.address.trim_start_matches("http://");
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
