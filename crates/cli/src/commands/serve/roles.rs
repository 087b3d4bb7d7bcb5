//! `simshard serve node` and `simshard serve router`: one role of a cluster whose layout is in a file, or follows from
//! what nodes register.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use simshard_cluster::{
    ClusterLayout, FileStore, KeyValueMetadata, KeyValueStore, MetadataError, MetadataStore, Node,
    RegisteredStore, ShownProcess, check_name, check_registered, register, registered_stores,
    shard_records, show_node, show_router, show_waiting,
};
use simshard_node::{
    Registration, RegistrationError, answers, check_directory, check_heard, check_runs_nowhere,
    heard_of, set_aside,
};
use simshard_runtime::shutdown;
use simshard_runtime::system::raise_open_files;
use simshard_storage::Claim;
use simshard_topology::NodeId;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::sleep;
use tracing::{info, warn};

use super::config::{NodePresence, NodeRole, Place, RouterRole};
use super::patience::{Absence, once_there};
use crate::connection::block_on;
use crate::embedded::{self, bind};
use crate::exit::UsageError;
use crate::say;

/// How often a node looks whether the store that it had before has left.
const STORE_LEAVES: Duration = Duration::from_millis(200);

/// Files that a node has open with 256 shards, about.
const ENOUGH_FILES: u64 = 8192;

pub(super) fn run_node(role: NodeRole) -> anyhow::Result<()> {
    block_on(async {
        let shutdown = shutdown::on_signals()?;
        open_enough_files();
        // Waiting for a cluster, and loading, may take long: a signal ends it at once.
        let Some(started) = shutdown.run_until_cancelled(start_node(role)).await else {
            return Ok(());
        };
        let Started {
            node,
            socket,
            shown,
        } = started?;
        let served = node.serve(announce(socket)?, shutdown).await;
        if let Some(shown) = shown {
            shown.end().await;
        }
        Ok(served?)
    })
}

/// A node that is ready.
struct Started {
    node: simshard_node::Node,
    socket: TcpSocket,
    /// If it registers itself.
    shown: Option<ShownProcess>,
}

async fn start_node(mut role: NodeRole) -> anyhow::Result<Started> {
    let (store, socket, registered) = match &role.metadata {
        Place::Store(keys) => {
            let socket = bind(role.presence.listen.ok_or_else(no_address)?)?;
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
            if role.presence.address.is_some() {
                let text =
                    "--address is for nodes that register themselves: leave it out, or --cluster";
                return Err(UsageError(text.to_owned()).into());
            }
            if role.presence.accepts_loss {
                let text = "--accept-lost-changes is for nodes that register themselves: leave it out, or --cluster";
                return Err(UsageError(text.to_owned()).into());
            }
            let store = open_layout(layout, role.metadata.store()).await?;
            let layout = store.layout().await?;
            let node = find_node(&layout, &role.config.node)?;
            let listen = match role.presence.listen {
                Some(listen) => listen,
                None => address_of(node)?,
            };
            (store, bind(listen)?, None)
        }
    };
    let node = simshard_node::Node::open(role.config, store).await?;
    let (node, shown) = match registered {
        Some((registration, shown)) => (node.registered(registration), Some(shown)),
        None => (node, None),
    };
    Ok(Started {
        node,
        socket,
        shown,
    })
}

pub(super) fn run_router(role: RouterRole) -> anyhow::Result<()> {
    block_on(async {
        let shutdown = shutdown::on_signals()?;
        raise_open_files();
        let open = async |absence: &Absence| {
            Ok(match &role.metadata {
                Place::Store(keys) => follow(keys, absence).await?,
                Place::Files(layout) | Place::FileAndStore(layout, _) => {
                    open_layout(layout, role.metadata.store()).await?
                }
            })
        };
        let Some(store) = shutdown.run_until_cancelled(once_there(open)).await else {
            return Ok(());
        };
        let store = store?;
        let socket = bind(role.presence)?;
        let shown = match &role.metadata {
            Place::Store(keys) => {
                let address = format!("http://{}", socket.local_addr()?);
                let show = async |_: &Absence| Ok(show_router(keys, &address).await?);
                let shown = shutdown.run_until_cancelled(once_there(show)).await;
                let Some(shown) = shown else {
                    return Ok(());
                };
                Some(shown?)
            }
            Place::Files(_) | Place::FileAndStore(..) => None,
        };
        let listener = announce(socket)?;
        let served = simshard_router::serve(role.config, store, listener, shutdown).await;
        if let Some(shown) = shown {
            shown.end().await;
        }
        Ok(served?)
    })
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
async fn follow(
    keys: &Arc<dyn KeyValueStore>,
    absence: &Absence,
) -> Result<Arc<dyn MetadataStore>, MetadataError> {
    let on_wait = || {
        absence.is_over();
        info!("there is no cluster yet: `simshard cluster init` begins one");
    };
    let on_turn = |turn: Result<(), &MetadataError>| match turn {
        Err(error) => warn!(%error, "changes of nodes and shards cannot be seen now"),
        Ok(()) => info!("changes of nodes and shards are seen again"),
    };
    let metadata = KeyValueMetadata::follow(Arc::clone(keys), on_wait, on_turn).await?;
    if let Some(fault) = keys.known_fault().await {
        warn!("{fault}");
    }
    Ok(Arc::new(metadata))
}

/// A node that has registered itself.
struct Entered {
    metadata: Arc<dyn MetadataStore>,
    registration: Registration,
    shown: ShownProcess,
    /// Whether its store took the place of one that was lost.
    is_replacement: bool,
}

/// Enters a node. If its directory lacks what its store had, or its disk has failed, it begins anew where other nodes hold
/// the same shards.
async fn enter(
    keys: &Arc<dyn KeyValueStore>,
    role: &NodeRole,
    socket: &TcpSocket,
) -> anyhow::Result<Entered> {
    loop {
        let mut claim = claim(role).await?;
        let entered = enter_with(keys, role, socket, &mut claim).await;
        if role.presence.accepts_loss {
            return entered;
        }
        let refused = match entered {
            Ok(entered) => return Ok(entered),
            Err(error) => error.downcast::<RegistrationError>()?,
        };
        set_aside(&**keys, claim, refused).await?;
    }
}

/// Registers a node, waits for its cluster, and makes this start of its directory the newest one.
async fn enter_with(
    keys: &Arc<dyn KeyValueStore>,
    role: &NodeRole,
    socket: &TcpSocket,
    claim: &mut Claim,
) -> anyhow::Result<Entered> {
    let store = registered(claim, role, socket)?;
    let NodePresence {
        publish,
        accepts_loss,
        ..
    } = role.presence;
    let attempt = async |absence: &Absence| {
        // A failed directory is set aside, and that of another node stays where it is.
        check_name(&**keys, &store).await?;
        claim.check_failure().map_err(RegistrationError::from)?;
        check_directory(&**keys, claim, accepts_loss).await?;
        check_history(&**keys, claim).await?;
        check_name_is_free(&**keys, &store).await?;
        let shown = show_node(keys, store.id).await?;
        let _waiting = show_waiting(keys, store.id).await?;
        let is_replacement = register_once_free(&**keys, &store, absence).await?;
        let metadata = follow(keys, absence).await?;
        // Another store may have taken its place while it waited.
        check_registered(&**keys, &store).await?;
        // It may have begun while this one waited.
        let layout = Arc::clone(&metadata.watch_layout().borrow());
        if let Some(records) = layout.records() {
            let checked = claim.check_records(records);
            checked.map_err(RegistrationError::from)?;
        }
        check_runs_nowhere(claim, &layout).await?;
        let heard = heard_of(&layout, claim.store).await;
        check_heard(claim, heard, accepts_loss)?;
        let entered = Registration::enter(keys, claim, store.clone(), accepts_loss, publish);
        let registration = entered.await?;
        shown.has_begun(registration.incarnation());
        Ok(Entered {
            metadata,
            registration,
            shown,
            is_replacement,
        })
    };
    once_there(attempt).await
}

/// Refuses metadata of another history, if there is a cluster. With it a node neither registers, nor begins a start, which
/// would count against the right one.
async fn check_history(keys: &dyn KeyValueStore, claim: &Claim) -> Result<(), RegistrationError> {
    match shard_records(keys).await {
        Ok(records) => Ok(claim.check_records(&records)?),
        Err(MetadataError::NoCluster) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Registers a store, once the other nodes have left out another one that its node had. Answers whether there was one.
async fn register_once_free(
    keys: &dyn KeyValueStore,
    store: &RegisteredStore,
    absence: &Absence,
) -> Result<bool, MetadataError> {
    let mut told = None;
    loop {
        match register(keys, store).await {
            Err(MetadataError::StoreHolds { shards, .. }) if told == Some(shards) => {}
            Err(waits @ MetadataError::StoreHolds { shards, .. }) => {
                absence.is_over();
                info!("{waits}");
                told = Some(shards);
            }
            done => return done,
        }
        sleep(STORE_LEAVES).await;
    }
}

/// Refuses a name that a node has which runs: it would not leave its shards to this one, nor hear that it is replaced.
async fn check_name_is_free(keys: &dyn KeyValueStore, own: &RegisteredStore) -> anyhow::Result<()> {
    let stores = registered_stores(keys).await;
    for other in stores.map_err(RegistrationError::from)? {
        let is_other = other.node == own.node && other.id != own.id;
        if is_other && answers(&other.address, other.id).await {
            bail!(
                "a node {} runs at {}, with another data directory: give this node another name, or end that one",
                other.node,
                other.address
            );
        }
    }
    Ok(())
}

/// The data directory of a node that registers itself.
async fn claim(role: &NodeRole) -> anyhow::Result<Claim> {
    let Some(data) = role.config.data.clone() else {
        let text = "--data is missing: a node that registers itself needs a data directory";
        return Err(UsageError(text.to_owned()).into());
    };
    Ok(simshard_node::Node::claim(data).await?)
}

/// What a node registers.
fn registered(
    claim: &Claim,
    role: &NodeRole,
    socket: &TcpSocket,
) -> anyhow::Result<RegisteredStore> {
    let address = match &role.presence.address {
        Some(address) => address.clone(),
        None => reachable(socket.local_addr()?)?,
    };
    Ok(RegisteredStore {
        next_generation: claim.next_generation,
        corpora: claim.corpora.clone(),
        in_sync: claim.in_sync(),
        partners: claim.partners(),
        ..RegisteredStore::new(claim.store, role.config.node.clone(), address)
    })
}

/// The URL of a node that other processes reach where it listens.
fn reachable(listens: SocketAddr) -> Result<String, UsageError> {
    if listens.ip().is_unspecified() {
        return Err(UsageError(format!(
            "--address is missing: other processes cannot reach this node at {listens}"
        )));
    }
    Ok(format!("http://{listens}"))
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
