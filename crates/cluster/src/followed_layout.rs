//! The layout of a cluster whose nodes register themselves, as it changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::ShardMap;
use simshard_topology::replication::StoreId;
use tokio::sync::watch;

use crate::key_value::{KeyValueError, KeyValueStore, Snapshot, follow};
use crate::keys;
use crate::layout::ClusterLayout;
use crate::membership::records_in;
use crate::records::{self, RegisteredStore};
use crate::registered::{cluster_in, node_of, stores_in};
use crate::store::MetadataError;

/// Waits until there is a cluster. Calls `on_wait` if there is none yet.
///
/// # Errors
/// When the keys cannot be read at first, or the cluster is of a later version.
pub(crate) async fn wait_for_cluster(
    keys: &Arc<dyn KeyValueStore>,
    on_wait: impl FnOnce() + Send,
    on_error: impl Fn(&MetadataError) + Send + Sync + 'static,
) -> Result<(), MetadataError> {
    let mut followed = follow_keys(keys, keys::CLUSTER, on_error).await?;
    let mut on_wait = Some(on_wait);
    while cluster_in(&followed.borrow_and_update())?.is_none() {
        if let Some(on_wait) = on_wait.take() {
            on_wait();
        }
        news(&mut followed).await;
    }
    Ok(())
}

/// Waits until stores have registered that are `enough`, in a cluster that has not begun.
///
/// # Errors
/// [`MetadataError::AlreadyInitialized`] if it has, else when the keys cannot be read at first, or not understood.
pub async fn wait_for_stores(
    keys: &Arc<dyn KeyValueStore>,
    mut enough: impl FnMut(&[RegisteredStore]) -> bool,
    on_error: impl Fn(&MetadataError) + Clone + Send + Sync + 'static,
) -> Result<Vec<RegisteredStore>, MetadataError> {
    let mut cluster = follow_keys(keys, keys::CLUSTER, on_error.clone()).await?;
    let mut stores = follow_keys(keys, keys::STORES, on_error).await?;
    loop {
        if cluster_in(&cluster.borrow_and_update())?.is_some() {
            return Err(MetadataError::AlreadyInitialized);
        }
        let registered = stores_in(&stores.borrow_and_update())?;
        if enough(&registered) {
            return Ok(registered);
        }
        tokio::select! {
            () = news(&mut cluster) => {}
            () = news(&mut stores) => {}
        }
    }
}

async fn follow_keys(
    keys: &Arc<dyn KeyValueStore>,
    prefix: &str,
    on_error: impl Fn(&MetadataError) + Send + Sync + 'static,
) -> Result<watch::Receiver<Arc<Snapshot>>, MetadataError> {
    let on_error = move |error: &KeyValueError| on_error(&MetadataError::KeyValues(error.clone()));
    Ok(follow(Arc::clone(keys), prefix.to_owned(), on_error).await?)
}

/// Waits for a change. The keys are followed as long as there is a receiver, so there is one in the end.
async fn news(followed: &mut watch::Receiver<Arc<Snapshot>>) {
    if followed.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Follows the layout of a cluster that has begun, until the last receiver is gone. What goes wrong later is told to
/// `on_error`.
///
/// # Errors
/// When the keys cannot be read, or their records make no layout.
pub(crate) async fn follow_layout(
    keys: &Arc<dyn KeyValueStore>,
    on_error: impl Fn(&MetadataError) + Clone + Send + Sync + 'static,
) -> Result<watch::Receiver<Arc<ClusterLayout>>, MetadataError> {
    let mut followed = Followed {
        // Shards first, so that the stores that they name are there.
        shards: follow_keys(keys, keys::SHARDS, on_error.clone()).await?,
        stores: follow_keys(keys, keys::STORES, on_error.clone()).await?,
    };
    let (layouts, layout) = watch::channel(Arc::new(followed.now()?));
    tokio::spawn(async move {
        while followed.changed(&layouts).await {
            match followed.now() {
                Ok(layout) => {
                    layouts.send_replace(Arc::new(layout));
                }
                Err(error) => on_error(&error),
            }
        }
    });
    Ok(layout)
}

/// The records that make a layout, as they change.
struct Followed {
    stores: watch::Receiver<Arc<Snapshot>>,
    shards: watch::Receiver<Arc<Snapshot>>,
}

impl Followed {
    /// Waits for a change. Returns false once all receivers of the layout are gone.
    async fn changed(&mut self, sender: &watch::Sender<Arc<ClusterLayout>>) -> bool {
        tokio::select! {
            () = news(&mut self.stores) => true,
            () = news(&mut self.shards) => true,
            () = sender.closed() => false,
        }
    }

    /// What the keys say now.
    fn now(&mut self) -> Result<ClusterLayout, MetadataError> {
        let stores = Arc::clone(&self.stores.borrow_and_update());
        let shards = Arc::clone(&self.shards.borrow_and_update());
        layout_of(&stores, &shards)
    }
}

/// Reads the layout of a cluster that has begun.
///
/// # Errors
/// When the keys cannot be read, or their records make no layout.
pub(crate) async fn read_layout(keys: &dyn KeyValueStore) -> Result<ClusterLayout, MetadataError> {
    // Shards first, so that the stores that they name are there.
    let shards = keys.read(keys::SHARDS).await?;
    layout_of(&keys.read(keys::STORES).await?, &shards)
}

/// The layout that records make: each shard has the nodes of its stores in sync, then those of its learners.
pub(crate) fn layout_of(
    stores: &Snapshot,
    shards: &Snapshot,
) -> Result<ClusterLayout, MetadataError> {
    let stores = stores_in(stores)?;
    let stores: BTreeMap<StoreId, &RegisteredStore> =
        stores.iter().map(|store| (store.id, store)).collect();
    let all_records = records_in(shards)?;
    let (mut entries, mut nodes) = (Vec::new(), BTreeMap::new());
    for record in all_records.values() {
        let mut replicas = Vec::new();
        for replica in record.write_set() {
            let store = stores.get(&replica);
            let store = store.ok_or_else(|| records::missing(&keys::store(replica)))?;
            nodes.insert(store.node.clone(), node_of(store));
            replicas.push(store.node.clone());
        }
        entries.push(replicas);
    }
    let map = ShardMap::new(1, &entries).map_err(|error| MetadataError::BadRecord {
        key: keys::SHARDS.to_owned(),
        reason: error.to_string(),
    })?;
    let stores = stores.into_iter();
    let stores = stores.map(|(id, store)| (id, node_of(store))).collect();
    let nodes = nodes.into_values().collect();
    let layout = ClusterLayout::of_records(nodes, map, all_records, stores);
    layout.map_err(MetadataError::UnusableRecords)
}
