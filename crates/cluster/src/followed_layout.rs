//! The layout of a cluster whose nodes register themselves, as it changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::ShardMap;
use simshard_topology::replication::StoreId;
use tokio::sync::watch;

use crate::key_value::{KeyValueStore, Snapshot, follow};
use crate::keys;
use crate::layout::ClusterLayout;
use crate::membership::{cluster_in, node_of, shards_in, stores_in};
use crate::records::RegisteredStore;
use crate::store::MetadataError;

/// Waits until there is a cluster. Calls `on_wait` if there is none yet.
///
/// # Errors
/// When the keys cannot be read.
pub(crate) async fn wait_for_cluster(
    keys: &dyn KeyValueStore,
    on_wait: impl FnOnce() + Send,
) -> Result<(), MetadataError> {
    let mut snapshot = keys.read(keys::CLUSTER).await?;
    if cluster_in(&snapshot).is_none() {
        on_wait();
    }
    while cluster_in(&snapshot).is_none() {
        snapshot = keys.changed(keys::CLUSTER, snapshot.revision).await?;
    }
    Ok(())
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
    let follow = |prefix: &str| {
        let on_error = on_error.clone();
        follow(Arc::clone(keys), prefix.to_owned(), move |error| {
            on_error(&MetadataError::KeyValues(error.clone()));
        })
    };
    let mut followed = Followed {
        // Shards first, so that the stores that they name are there.
        shards: follow(keys::SHARDS).await?,
        stores: follow(keys::STORES).await?,
    };
    let first = followed.layout()?.ok_or_else(|| MetadataError::BadRecord {
        key: keys::SHARDS.to_owned(),
        reason: "shards, or stores that hold them, are missing".to_owned(),
    })?;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        while followed.changed(&sender).await {
            match followed.layout() {
                Ok(Some(layout)) => {
                    sender.send_replace(Arc::new(layout));
                }
                Ok(None) => {}
                Err(error) => on_error(&error),
            }
        }
    });
    Ok(receiver)
}

/// The records that make a layout, as they change.
struct Followed {
    stores: watch::Receiver<Arc<Snapshot>>,
    shards: watch::Receiver<Arc<Snapshot>>,
}

impl Followed {
    /// Waits for a change. Without anyone to tell of it, there is none.
    async fn changed(&mut self, told: &watch::Sender<Arc<ClusterLayout>>) -> bool {
        tokio::select! {
            changed = self.stores.changed() => changed.is_ok(),
            changed = self.shards.changed() => changed.is_ok(),
            () = told.closed() => false,
        }
    }

    /// The layout of now. `None` while a record that it needs is missing, as when stores were read before shards.
    fn layout(&mut self) -> Result<Option<ClusterLayout>, MetadataError> {
        let stores = Arc::clone(&self.stores.borrow_and_update());
        let shards = Arc::clone(&self.shards.borrow_and_update());
        layout_of(&stores, &shards)
    }
}

/// The layout that records make: each shard belongs to the node of its first store in sync.
pub(crate) fn layout_of(
    stores: &Snapshot,
    shards: &Snapshot,
) -> Result<Option<ClusterLayout>, MetadataError> {
    let stores = stores_in(stores)?;
    let by_id: BTreeMap<StoreId, &RegisteredStore> =
        stores.iter().map(|store| (store.id, store)).collect();
    let (mut entries, mut nodes) = (Vec::new(), BTreeMap::new());
    for record in shards_in(shards)? {
        let Some(store) = by_id.get(&record.in_sync[0].store) else {
            return Ok(None);
        };
        nodes.insert(store.node.clone(), node_of(store));
        entries.push(vec![store.node.clone()]);
    }
    let Ok(map) = ShardMap::new(1, &entries) else {
        return Ok(None);
    };
    let layout = ClusterLayout::of_map(nodes.into_values().collect(), map);
    layout.map(Some).map_err(MetadataError::UnusableRecords)
}
