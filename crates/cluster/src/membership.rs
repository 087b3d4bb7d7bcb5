//! A cluster whose nodes register themselves: its stores, and who holds which shard.
//!
//! # Invariants
//! - ME1: a store that a shard's record names stays registered (`a_store_that_holds_shards_is_not_replaced`).
//! - ME2: a cluster begins once, and its key is written after all records that it needs
//!   (`a_cluster_begins_once`, `a_beginning_that_was_cut_short_is_repeated`).

use std::collections::BTreeMap;

use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardMap};
use uuid::Uuid;

use crate::key_value::{
    KeyValue, KeyValueStore, MAX_OPERATIONS, Outcome, Revision, Snapshot, Transaction,
};
use crate::keys;
use crate::layout::{Node, check_nodes};
use crate::records::{self, RawCluster, RegisteredStore};
use crate::store::MetadataError;

/// Enters a store, or where it answers now. Another store of the same node gives way unless it holds shards.
///
/// # Errors
/// [`MetadataError::OtherStore`] if it does, [`MetadataError::UnusableRecords`] if the address is none, else when the
/// keys cannot be read or written.
pub async fn register(
    keys: &dyn KeyValueStore,
    store: &RegisteredStore,
) -> Result<(), MetadataError> {
    check_nodes(&[node_of(store)]).map_err(MetadataError::UnusableRecords)?;
    loop {
        let registered = Registered::read(keys).await?;
        if registered.stores.contains(store) {
            return Ok(());
        }
        let key = keys::store(store.id);
        let text = records::store_text(&key, store)?;
        let mut change = registered.if_same_cluster(Transaction::new());
        change = change.put(key, text);
        for other in &registered.stores {
            if other.id != store.id && other.node == store.node {
                if registered.holds_shards(other.id) {
                    let (node, store) = (other.node.clone(), other.id);
                    return Err(MetadataError::OtherStore { node, store });
                }
                change = change.delete(keys::store(other.id));
            }
        }
        if let Outcome::Committed(_) = keys.commit(&change).await? {
            return Ok(());
        }
    }
}

/// Begins a cluster: each shard goes to the store of the node that `map` names for it.
///
/// # Errors
/// [`MetadataError::AlreadyInitialized`] if there is one, [`MetadataError::NotRegistered`] if the map names a node that
/// has no store, [`MetadataError::Raced`] if nodes or another process got in between, else when the keys cannot be
/// read or written.
pub async fn initialize(keys: &dyn KeyValueStore, map: &ShardMap) -> Result<(), MetadataError> {
    let registered = Registered::read(keys).await?;
    initialize_with(keys, &registered, map).await
}

async fn initialize_with(
    keys: &dyn KeyValueStore,
    registered: &Registered,
    map: &ShardMap,
) -> Result<(), MetadataError> {
    if registered.cluster.is_some() {
        return Err(MetadataError::AlreadyInitialized);
    }
    let stores: BTreeMap<&NodeId, &RegisteredStore> = registered
        .stores
        .iter()
        .map(|store| (&store.node, store))
        .collect();
    let missing = map.nodes().iter().filter(|node| !stores.contains_key(node));
    let missing: Vec<&str> = missing.map(NodeId::as_str).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(MetadataError::NotRegistered { missing });
    }
    let shards: Vec<ShardId> = ShardId::all().collect();
    for some in shards.chunks(MAX_OPERATIONS - 1) {
        // Another process may have begun the cluster meanwhile.
        let mut change = Transaction::new().if_absent(keys::CLUSTER);
        for &shard in some {
            let key = keys::shard(shard);
            // A beginning that was cut short left some.
            change = match registered.shard_revisions.get(&key) {
                Some(&revision) => change.if_unchanged(&*key, revision),
                None => change.if_absent(&*key),
            };
            let record = ShardRecord::first(stores[map.owner(shard)].id, random());
            let text = records::shard_text(&key, &record)?;
            change = change.put(key, text);
        }
        unless_raced(keys.commit(&change).await?)?;
    }
    let mut change = Transaction::new().if_absent(keys::CLUSTER);
    for node in map.nodes() {
        let key = keys::store(stores[node].id);
        let revision = registered.store_revisions[&key];
        change = change.if_unchanged(key, revision);
    }
    let text = records::text_of(keys::CLUSTER, &RawCluster::new())?;
    unless_raced(keys.commit(&change.put(keys::CLUSTER, text)).await?)
}

fn unless_raced(outcome: Outcome) -> Result<(), MetadataError> {
    match outcome {
        Outcome::Committed(_) => Ok(()),
        Outcome::Conflict => Err(MetadataError::Raced),
    }
}

fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}

/// The stores that are registered, and who holds which shard.
#[derive(Debug, Default)]
struct Registered {
    cluster: Option<Revision>,
    stores: Vec<RegisteredStore>,
    store_revisions: BTreeMap<String, Revision>,
    shards: Vec<ShardRecord>,
    shard_revisions: BTreeMap<String, Revision>,
}

impl Registered {
    async fn read(keys: &dyn KeyValueStore) -> Result<Self, MetadataError> {
        let cluster = cluster_in(&keys.read(keys::CLUSTER).await?);
        let (stores, shards) = (
            keys.read(keys::STORES).await?,
            keys.read(keys::SHARDS).await?,
        );
        Ok(Self {
            cluster,
            stores: stores_in(&stores)?,
            store_revisions: revisions(&stores),
            shards: shards_in(&shards)?,
            shard_revisions: revisions(&shards),
        })
    }

    fn holds_shards(&self, store: StoreId) -> bool {
        let mut shards = self.shards.iter();
        self.cluster.is_some() && shards.any(|shard| shard.write_set().any(|named| named == store))
    }

    /// Demands that a cluster has neither begun nor ended since.
    fn if_same_cluster(&self, transaction: Transaction) -> Transaction {
        match self.cluster {
            Some(revision) => transaction.if_unchanged(keys::CLUSTER, revision),
            None => transaction.if_absent(keys::CLUSTER),
        }
    }
}

pub(crate) fn cluster_in(snapshot: &Snapshot) -> Option<Revision> {
    let mut pairs = snapshot.pairs.iter();
    let pair = pairs.find(|pair| pair.key == keys::CLUSTER);
    pair.map(|pair| pair.revision)
}

pub(crate) fn stores_in(snapshot: &Snapshot) -> Result<Vec<RegisteredStore>, MetadataError> {
    let pairs = snapshot.pairs.iter();
    pairs
        .map(|KeyValue { key, value, .. }| records::store_of(key, value))
        .collect()
}

pub(crate) fn shards_in(snapshot: &Snapshot) -> Result<Vec<ShardRecord>, MetadataError> {
    let pairs = snapshot.pairs.iter();
    pairs
        .map(|KeyValue { key, value, .. }| records::shard_of(key, value))
        .collect()
}

fn revisions(snapshot: &Snapshot) -> BTreeMap<String, Revision> {
    let pairs = snapshot.pairs.iter();
    pairs
        .map(|pair| (pair.key.clone(), pair.revision))
        .collect()
}

pub(crate) fn node_of(store: &RegisteredStore) -> Node {
    Node {
        id: store.node.clone(),
        address: store.address.clone(),
    }
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

/// Waits until the stores that are registered are others than these, and returns them. It may return early.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn other_stores(
    keys: &dyn KeyValueStore,
    known: &[RegisteredStore],
) -> Result<Vec<RegisteredStore>, MetadataError> {
    let snapshot = keys.read(keys::STORES).await?;
    let stores = stores_in(&snapshot)?;
    if stores != known {
        return Ok(stores);
    }
    stores_in(&keys.changed(keys::STORES, snapshot.revision).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed_layout::layout_of;
    use crate::key_value::MemoryKeyValues;
    use crate::layout::ClusterLayout;

    fn id(byte: u8) -> StoreId {
        StoreId([byte; 16])
    }

    fn node(number: u8) -> NodeId {
        NodeId::new(&format!("n{number}")).unwrap()
    }

    fn store(id: StoreId, number: u8, port: u16) -> RegisteredStore {
        RegisteredStore {
            id,
            node: node(number),
            address: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Nodes `n1` and `n2` with stores 1 and 2.
    async fn two_nodes() -> MemoryKeyValues {
        let keys = MemoryKeyValues::new();
        for number in [1, 2] {
            let store = store(id(number), number, 7000 + u16::from(number));
            register(&keys, &store).await.unwrap();
        }
        keys
    }

    fn halves() -> ShardMap {
        simshard_topology::plan(None, &[node(1), node(2)], 1).unwrap()
    }

    async fn layout(keys: &MemoryKeyValues) -> ClusterLayout {
        let (shards, stores) = (keys.read(keys::SHARDS).await, keys.read(keys::STORES).await);
        layout_of(&stores.unwrap(), &shards.unwrap())
            .unwrap()
            .unwrap()
    }

    #[tokio::test]
    async fn a_cluster_has_the_map_that_it_began_with_and_the_addresses_of_now() {
        let keys = two_nodes().await;
        initialize(&keys, &halves()).await.unwrap();
        let found = layout(&keys).await;
        assert_eq!(found.map().digest(), halves().digest());
        assert_eq!(
            found.node(&node(2)).unwrap().address,
            "http://127.0.0.1:7002"
        );
        let revision = keys.read("").await.unwrap().revision;
        register(&keys, &store(id(2), 2, 7002)).await.unwrap();
        assert_eq!(keys.read("").await.unwrap().revision, revision);
        register(&keys, &store(id(2), 2, 9)).await.unwrap();
        let found = layout(&keys).await;
        assert_eq!(found.node(&node(2)).unwrap().address, "http://127.0.0.1:9");
        let refused = register(&keys, &store(id(2), 2, 0)).await.unwrap_err();
        assert!(
            matches!(refused, MetadataError::UnusableRecords(_)),
            "{refused}"
        );
    }

    /// ME1.
    #[tokio::test]
    async fn a_store_that_holds_shards_is_not_replaced() {
        let keys = two_nodes().await;
        // Before the cluster begins, an emptied directory is no loss.
        register(&keys, &store(id(3), 2, 7002)).await.unwrap();
        assert_eq!(registered_stores(&keys).await.unwrap().len(), 2);
        initialize(&keys, &halves()).await.unwrap();
        let refused = register(&keys, &store(id(4), 2, 7002)).await.unwrap_err();
        let MetadataError::OtherStore { node: name, store } = refused else {
            panic!("{refused}");
        };
        assert_eq!((name, store), (node(2), id(3)));
    }

    /// ME2.
    #[tokio::test]
    async fn a_cluster_begins_once() {
        let keys = MemoryKeyValues::new();
        register(&keys, &store(id(1), 1, 7001)).await.unwrap();
        let error = initialize(&keys, &halves()).await.unwrap_err();
        assert!(
            matches!(&error, MetadataError::NotRegistered { missing } if missing == "n2"),
            "{error}"
        );
        register(&keys, &store(id(2), 2, 7002)).await.unwrap();
        initialize(&keys, &halves()).await.unwrap();
        let error = initialize(&keys, &halves()).await.unwrap_err();
        assert!(
            matches!(error, MetadataError::AlreadyInitialized),
            "{error}"
        );
    }

    /// ME2.
    #[tokio::test]
    async fn a_beginning_that_was_cut_short_is_repeated() {
        let keys = two_nodes().await;
        let first = keys::shard(ShardId(0));
        let text = records::shard_text(&first, &ShardRecord::first(id(9), 9)).unwrap();
        let cut = Transaction::new().put(first, text);
        unless_raced(keys.commit(&cut).await.unwrap()).unwrap();
        initialize(&keys, &halves()).await.unwrap();
        assert_eq!(layout(&keys).await.map().digest(), halves().digest());
    }

    /// ME1, ME2. A store that gives way while a cluster begins would hold shards without being registered.
    #[tokio::test]
    async fn of_a_beginning_and_a_replacement_at_once_one_is_refused() {
        let keys = two_nodes().await;
        let registered = Registered::read(&keys).await.unwrap();
        register(&keys, &store(id(3), 2, 7002)).await.unwrap();
        let late = initialize_with(&keys, &registered, &halves()).await;
        assert!(matches!(late, Err(MetadataError::Raced)));
        initialize(&keys, &halves()).await.unwrap();
        assert_eq!(layout(&keys).await.map().digest(), halves().digest());
    }
}
