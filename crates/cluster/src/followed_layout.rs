//! The layout of a cluster whose nodes register themselves, as it changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Is told that the metadata cannot be read now, or makes no layout, and then that all is well again.
pub trait OnTurn: Fn(Result<(), &MetadataError>) + Send + Sync + 'static {}

impl<F: Fn(Result<(), &MetadataError>) + Send + Sync + 'static> OnTurn for F {}

/// Waits until there is a cluster. Calls `on_wait` if there is none yet.
///
/// # Errors
/// When the keys cannot be read at first, or the cluster is of a later version.
pub(crate) async fn wait_for_cluster(
    keys: &Arc<dyn KeyValueStore>,
    on_wait: impl FnOnce() + Send,
    on_turn: impl OnTurn,
) -> Result<(), MetadataError> {
    let mut followed = follow_keys(keys, keys::CLUSTER, &Turns::told(on_turn)).await?;
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
    on_turn: impl OnTurn,
) -> Result<Vec<RegisteredStore>, MetadataError> {
    let turns = Turns::told(on_turn);
    let mut cluster = follow_keys(keys, keys::CLUSTER, &turns).await?;
    let mut stores = follow_keys(keys, keys::STORES, &turns).await?;
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

/// Parts that fail at once, and the one who is told of the first failure and of the end of the last.
struct Turns<F> {
    failing: AtomicUsize,
    on_turn: F,
}

impl<F: OnTurn> Turns<F> {
    fn told(on_turn: F) -> Arc<Self> {
        let failing = AtomicUsize::new(0);
        Arc::new(Self { failing, on_turn })
    }

    /// Notes that a part begins to fail, or ends to.
    fn note(&self, turn: Result<(), &MetadataError>) {
        match turn {
            Err(error) => {
                if self.failing.fetch_add(1, Ordering::Relaxed) == 0 {
                    (self.on_turn)(Err(error));
                }
            }
            Ok(()) => {
                if self.failing.fetch_sub(1, Ordering::Relaxed) == 1 {
                    (self.on_turn)(Ok(()));
                }
            }
        }
    }
}

async fn follow_keys(
    keys: &Arc<dyn KeyValueStore>,
    prefix: &str,
    turns: &Arc<Turns<impl OnTurn>>,
) -> Result<watch::Receiver<Arc<Snapshot>>, MetadataError> {
    let turns = Arc::clone(turns);
    let on_turn = move |turn: Result<(), &KeyValueError>| {
        let turn = turn.map_err(|error| MetadataError::KeyValues(error.clone()));
        turns.note(turn.as_ref().copied());
    };
    Ok(follow(Arc::clone(keys), prefix.to_owned(), on_turn).await?)
}

/// Waits for a change. The keys are followed as long as there is a receiver, so there is one in the end.
async fn news(followed: &mut watch::Receiver<Arc<Snapshot>>) {
    if followed.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Follows the layout of a cluster that has begun, until the last receiver is gone. What goes wrong later is told to
/// `on_turn`, and when all is well again.
///
/// # Errors
/// When the keys cannot be read, or their records make no layout.
pub(crate) async fn follow_layout(
    keys: &Arc<dyn KeyValueStore>,
    on_turn: impl OnTurn,
) -> Result<watch::Receiver<Arc<ClusterLayout>>, MetadataError> {
    let turns = Turns::told(on_turn);
    let mut followed = Followed {
        // Shards first, so that the stores that they name are there.
        shards: follow_keys(keys, keys::SHARDS, &turns).await?,
        stores: follow_keys(keys, keys::STORES, &turns).await?,
    };
    let (layouts, layout) = watch::channel(Arc::new(followed.now()?));
    tokio::spawn(async move {
        let mut is_failing = false;
        while followed.changed(&layouts).await {
            let layout = followed.now();
            if is_failing != layout.is_err() {
                turns.note(layout.as_ref().map(|_| ()));
            }
            is_failing = layout.is_err();
            if let Ok(layout) = layout {
                layouts.send_replace(Arc::new(layout));
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

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn parts_that_fail_at_once_are_told_of_once_and_so_is_the_end() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let turns = Turns::told(move |turn: Result<(), &MetadataError>| {
            heard.lock().push(turn.is_ok());
        });
        for _ in 0..2 {
            for turn in [
                Err(&MetadataError::NoCluster),
                Err(&MetadataError::NoCluster),
                Ok(()),
                Ok(()),
            ] {
                turns.note(turn);
            }
        }
        assert_eq!(*told.lock(), [false, true, false, true]);
    }
}
