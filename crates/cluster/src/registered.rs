//! The stores that have registered, as one reading of the keys found them.

use std::collections::BTreeMap;

use simshard_topology::replication::StoreId;
use simshard_topology::{NodeId, ShardMap, ShardSet};
use uuid::Uuid;

use crate::key_value::{KeyValue, KeyValueStore, Outcome, Revision, Snapshot, Transaction};
use crate::keys;
use crate::layout::{Node, check_nodes};
use crate::levels::{RawCluster, cluster_pair};
use crate::membership::records_in;
use crate::records::{self, RegisteredStore};
use crate::store::MetadataError;
use crate::targets::targets;

/// Conditions that [`Registered::if_unchanged`] adds to a transaction.
pub(crate) const REGISTRATION_OPERATIONS: usize = 2;

/// The stores that are registered, and whether the cluster has begun.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) cluster: Option<Revision>,
    registrations: Option<Revision>,
    pub(crate) stores: Vec<RegisteredStore>,
}

impl Registered {
    /// Registrations are read first, so that a transaction that compares them conflicts with any later change.
    pub(crate) async fn read(keys: &dyn KeyValueStore) -> Result<Self, MetadataError> {
        let registrations =
            revision_in(&keys.read(keys::REGISTRATIONS).await?, keys::REGISTRATIONS);
        Ok(Self {
            registrations,
            cluster: cluster_in(&keys.read(keys::CLUSTER).await?)?,
            stores: stores_in(&keys.read(keys::STORES).await?)?,
        })
    }

    /// The store whose place another one would take, in a cluster that has begun. Refuses a store that has another node.
    pub(crate) fn replaced_by(
        &self,
        store: &RegisteredStore,
    ) -> Result<Option<&RegisteredStore>, MetadataError> {
        let of_cluster = || self.stores.iter().filter(|_| self.cluster.is_some());
        if let Some(same) = of_cluster().find(|other| other.id == store.id) {
            let node = same.node.clone();
            let is_same = node == store.node;
            return is_same
                .then_some(None)
                .ok_or(MetadataError::OtherName { node });
        }
        Ok(of_cluster().find(|other| other.node == store.node))
    }

    /// Whether a store is registered.
    pub(crate) fn has(&self, store: StoreId) -> bool {
        self.stores.iter().any(|other| other.id == store)
    }

    fn store_of(&self, node: &NodeId) -> Result<&RegisteredStore, MetadataError> {
        let mut stores = self.stores.iter();
        let store = stores.find(|store| store.node == *node);
        store.ok_or_else(|| MetadataError::NotRegistered {
            missing: node.to_string(),
        })
    }

    /// The shards that a store holds, or whose records or targets name it.
    async fn shards_of(
        &self,
        keys: &dyn KeyValueStore,
        store: &RegisteredStore,
    ) -> Result<ShardSet, MetadataError> {
        let mut shards = ShardSet::EMPTY;
        if self.cluster.is_some() {
            let records = records_in(&keys.read(keys::SHARDS).await?)?;
            let named = records.iter().filter(|(_, record)| record.names(store.id));
            shards = named.map(|(shard, _)| *shard).collect();
        }
        let targets = targets(keys, |_| {}).await?;
        let meant = targets
            .iter()
            .filter(|(_, nodes)| nodes.contains(&store.node));
        Ok(shards.union(&meant.map(|(shard, _)| *shard).collect()))
    }

    /// Whether a store was registered for one that was lost.
    pub(crate) fn is_replacement(&self, store: &RegisteredStore) -> bool {
        let mut stores = self.stores.iter();
        stores.any(|other| other.id == store.id && other.is_replacement)
    }

    /// The generation of a cluster that begins. If stores have installed records of an earlier one, the metadata was
    /// lost, and a later generation is news to them.
    pub(crate) fn next_generation(&self) -> u32 {
        let generations = self.stores.iter().map(|store| store.next_generation);
        generations.max().unwrap_or_default()
    }

    /// The store of each node of a map, for a cluster that has not begun.
    pub(crate) fn stores_of(
        &self,
        map: &ShardMap,
    ) -> Result<BTreeMap<&NodeId, &RegisteredStore>, MetadataError> {
        if self.cluster.is_some() {
            return Err(MetadataError::AlreadyInitialized);
        }
        let stores = self.stores.iter().map(|store| (&store.node, store));
        let stores: BTreeMap<_, _> = stores.collect();
        let missing = map.nodes().iter().filter(|node| !stores.contains_key(node));
        let missing: Vec<&str> = missing.map(NodeId::as_str).collect();
        if missing.is_empty() {
            return Ok(stores);
        }
        let missing = missing.join(", ");
        Err(MetadataError::NotRegistered { missing })
    }

    /// Demands that neither the stores nor the cluster have changed since.
    pub(crate) fn if_unchanged(&self, transaction: Transaction) -> Transaction {
        let transaction = if_still(transaction, keys::CLUSTER, self.cluster);
        if_still(transaction, keys::REGISTRATIONS, self.registrations)
    }
}

/// Refuses a store whose node or address is that of another one, or whose address is none.
pub(crate) fn check_apart<'a>(
    store: &RegisteredStore,
    others: impl IntoIterator<Item = &'a RegisteredStore>,
) -> Result<(), MetadataError> {
    let others = others.into_iter().map(node_of);
    let all: Vec<Node> = others.chain([node_of(store)]).collect();
    check_nodes(&all).map_err(|error| records::bad(&keys::store(store.id), error.to_string()))
}

/// The stores that have the node or the address of an earlier one, or no address: one of both is damaged.
pub fn clashes<'a>(stores: impl IntoIterator<Item = &'a RegisteredStore>) -> Vec<MetadataError> {
    let (mut apart, mut clashes) = (Vec::new(), Vec::new());
    for store in stores {
        match check_apart(store, apart.iter().copied()) {
            Ok(()) => apart.push(store),
            Err(clash) => clashes.push(clash),
        }
    }
    clashes
}

/// Refuses a store that is registered for another node, in a cluster that has begun.
///
/// # Errors
/// [`MetadataError::OtherName`] if it is, else when the keys cannot be read.
pub async fn check_name(
    keys: &dyn KeyValueStore,
    store: &RegisteredStore,
) -> Result<(), MetadataError> {
    Registered::read(keys).await?.replaced_by(store).map(drop)
}

/// Demands that a key is as it was read: written last by this revision, or absent.
pub(crate) fn if_still(
    transaction: Transaction,
    key: &str,
    revision: Option<Revision>,
) -> Transaction {
    match revision {
        Some(revision) => transaction.if_unchanged(key, revision),
        None => transaction.if_absent(key),
    }
}

pub(crate) fn revision_in(snapshot: &Snapshot, key: &str) -> Option<Revision> {
    let mut pairs = snapshot.pairs.iter();
    let pair = pairs.find(|pair| pair.key == key);
    pair.map(|pair| pair.revision)
}

/// The revision of the cluster's record, if there is one that this version knows.
pub(crate) fn cluster_in(snapshot: &Snapshot) -> Result<Option<Revision>, MetadataError> {
    let pair = cluster_pair(snapshot);
    if let Some(pair) = pair {
        RawCluster::of_text(&pair.value)?;
    }
    Ok(pair.map(|pair| pair.revision))
}

pub(crate) fn stores_in(snapshot: &Snapshot) -> Result<Vec<RegisteredStore>, MetadataError> {
    let pairs = snapshot.pairs.iter();
    pairs
        .map(|KeyValue { key, value, .. }| records::store_of(key, value))
        .collect()
}

pub(crate) fn node_of(store: &RegisteredStore) -> Node {
    Node {
        id: store.node.clone(),
        address: store.address.clone(),
    }
}

/// Takes a node out for good: what it registered, and what was set for it. `start` is the revision of what its store has
/// published. If its process runs all the same, it ends, and registers again when it is started.
///
/// # Errors
/// [`MetadataError::NotRegistered`] if there is no such node. [`MetadataError::StillHolds`] if a record or a target names
/// it. [`MetadataError::Raced`] if others registered at the same time, or it has started. Else when the keys cannot be read
/// or written.
pub async fn unregister(
    keys: &dyn KeyValueStore,
    node: &NodeId,
    start: Option<Revision>,
) -> Result<(), MetadataError> {
    let registered = Registered::read(keys).await?;
    let store = registered.store_of(node)?;
    // Read after the registrations: who names the store later changes those too.
    let shards = registered.shards_of(keys, store).await?;
    if !shards.is_empty() {
        let node = node.clone();
        return Err(MetadataError::StillHolds { node, shards });
    }
    let published = keys::published(store.id);
    let change = if_still(
        registered.if_unchanged(Transaction::new()),
        &published,
        start,
    )
    .put(keys::REGISTRATIONS, Uuid::new_v4().to_string())
    .delete(keys::store(store.id))
    .delete(keys::published(store.id))
    .delete(keys::node(node));
    match keys.commit(&change).await? {
        Outcome::Committed(_) => Ok(()),
        Outcome::Conflict => Err(MetadataError::Raced),
    }
}

/// Fails if a node holds shards, or is to hold some.
///
/// # Errors
/// [`MetadataError::StillHolds`] then. [`MetadataError::NotRegistered`] if there is no such node. Else when the keys
/// cannot be read or understood.
pub async fn check_holds_nothing(
    keys: &dyn KeyValueStore,
    node: &NodeId,
) -> Result<(), MetadataError> {
    let registered = Registered::read(keys).await?;
    let store = registered.store_of(node)?;
    let shards = registered.shards_of(keys, store).await?;
    if shards.is_empty() {
        return Ok(());
    }
    let node = node.clone();
    Err(MetadataError::StillHolds { node, shards })
}

/// The stores that are registered.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn registered_stores(
    keys: &dyn KeyValueStore,
) -> Result<Vec<RegisteredStore>, MetadataError> {
    stores_in(&keys.read(keys::STORES).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_settings::{NodeSettings, change_node_settings, node_settings};
    use crate::steps::tests::{cluster, registered};

    #[tokio::test]
    async fn a_node_is_taken_out_only_if_nothing_names_it() {
        let keys = cluster().await;
        let n1 = NodeId::new("n1").unwrap();
        let refused = check_holds_nothing(&keys, &n1).await;
        assert!(matches!(refused, Err(MetadataError::StillHolds { .. })));
        let refused = unregister(&keys, &n1, None).await.unwrap_err().to_string();
        assert!(
            refused.starts_with("node n1 holds shards 00-ff, or"),
            "{refused}"
        );
        let spare = registered(StoreId([4; 16]));
        crate::register(&keys, &spare).await.unwrap();
        let target = Transaction::new().put("targets/07", r#"{"nodes":["n4"]}"#);
        assert!(matches!(
            keys.commit(&target).await.unwrap(),
            Outcome::Committed(_)
        ));
        let refused = unregister(&keys, &spare.node, None)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with("node n4 holds shards 07, or"),
            "{refused}"
        );
        let free = Transaction::new().delete("targets/07");
        assert!(matches!(
            keys.commit(&free).await.unwrap(),
            Outcome::Committed(_)
        ));
        let drain = |settings: &mut NodeSettings| settings.is_drained = true;
        change_node_settings(&keys, &spare.node, drain)
            .await
            .unwrap();
        unregister(&keys, &spare.node, None).await.unwrap();
        let left = registered_stores(&keys).await.unwrap();
        assert!(left.iter().all(|store| store.node != spare.node));
        assert!(node_settings(&keys, |_| {}).await.unwrap().is_empty());
        let unknown = unregister(&keys, &spare.node, None).await;
        assert!(matches!(unknown, Err(MetadataError::NotRegistered { .. })));
    }
}
