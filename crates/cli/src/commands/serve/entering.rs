//! How a node enters its cluster: it registers its store, and makes this start of its directory the newest one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use simshard_cluster::{
    KeyValueStore, MetadataError, MetadataStore, RegisteredStore, ShownProcess, check_name,
    check_registered, register, registered_stores, shard_records, show_node, show_waiting,
};
use simshard_node::Dialer;
use simshard_node::{
    Registration, RegistrationError, answers, check_directory, check_heard, check_runs_nowhere,
    heard_of, set_aside,
};
use simshard_storage::Claim;
use tokio::net::TcpSocket;
use tokio::time::sleep;
use tracing::info;

use super::config::{NodePresence, NodeRole};
use super::patience::{Absence, once_there};
use super::roles::follow;
use crate::exit::UsageError;

/// How often a node looks whether the store that it had before has left.
const STORE_LEAVES: Duration = Duration::from_millis(200);

/// A node that has registered itself.
pub(super) struct Entered {
    pub(super) metadata: Arc<dyn MetadataStore>,
    pub(super) registration: Registration,
    pub(super) shown: ShownProcess,
    /// Whether its store took the place of one that was lost.
    pub(super) is_replacement: bool,
}

/// Enters a node. If its directory lacks what its store had, or its disk has failed, it begins anew where other nodes hold
/// the same shards.
pub(super) async fn enter(
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
        set_aside(&dialer_of(role), &**keys, claim, refused).await?;
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
    let dialer = dialer_of(role);
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
        check_name_is_free(&dialer, &**keys, &store).await?;
        let shown = show_node(keys, store.id).await?;
        let _waiting = show_waiting(keys, store.id).await?;
        let is_replacement = register_once_free(&**keys, &store, absence).await?;
        let metadata = follow(keys, absence, &role.config.observed).await?;
        // Another store may have taken its place while it waited.
        check_registered(&**keys, &store).await?;
        // It may have begun while this one waited.
        let layout = Arc::clone(&metadata.watch_layout().borrow());
        if let Some(records) = layout.records() {
            let checked = claim.check_records(records);
            checked.map_err(RegistrationError::from)?;
        }
        check_runs_nowhere(&dialer, claim, &layout).await?;
        let heard = heard_of(&dialer, &layout, claim.store).await;
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
async fn check_name_is_free(
    dialer: &Dialer,
    keys: &dyn KeyValueStore,
    own: &RegisteredStore,
) -> anyhow::Result<()> {
    let stores = registered_stores(keys).await;
    for other in stores.map_err(RegistrationError::from)? {
        let is_other = other.node == own.node && other.id != own.id;
        if is_other && answers(dialer, &other.address, other.id).await {
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

/// How a node reaches the others.
fn dialer_of(role: &NodeRole) -> Dialer {
    Dialer::new(role.config.certificates.clone())
}

/// What a node registers.
fn registered(
    claim: &Claim,
    role: &NodeRole,
    socket: &TcpSocket,
) -> anyhow::Result<RegisteredStore> {
    let scheme = dialer_of(role).scheme();
    let address = match &role.presence.address {
        Some(address) => check_scheme(scheme, address)?.to_owned(),
        None => reachable(scheme, socket.local_addr()?)?,
    };
    Ok(RegisteredStore {
        next_generation: claim.next_generation,
        corpora: claim.corpora.clone(),
        in_sync: claim.in_sync(),
        partners: claim.partners(),
        ..RegisteredStore::new(claim.store, role.config.node.clone(), address)
    })
}

/// Refuses an address at which the other processes would not reach this one: its certificates make the difference.
fn check_scheme<'a>(scheme: &str, address: &'a str) -> Result<&'a str, UsageError> {
    if address
        .split_once("://")
        .is_some_and(|(given, _)| given != scheme)
    {
        return Err(UsageError(format!(
            "--address {address} has to start with {scheme}://: a node has TLS if it has certificates (--cluster-cert), and else none"
        )));
    }
    Ok(address)
}

/// The URL of a node that other processes reach where it listens.
fn reachable(scheme: &str, listens: SocketAddr) -> Result<String, UsageError> {
    if listens.ip().is_unspecified() {
        return Err(UsageError(format!(
            "--address is missing: other processes cannot reach this node at {listens}"
        )));
    }
    Ok(format!("{scheme}://{listens}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_tls_if_the_node_has() {
        for (scheme, address) in [("http", "http://n1:7470"), ("https", "https://n1:7470")] {
            assert_eq!(check_scheme(scheme, address).unwrap(), address);
        }
        for (scheme, address) in [("http", "https://n1:7470"), ("https", "http://n1:7470")] {
            let refused = check_scheme(scheme, address).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("start with {scheme}://")),
                "{refused}"
            );
        }
    }
}
