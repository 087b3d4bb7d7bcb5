//! Which stores wait for their cluster to begin: nodes that wait answer no requests yet.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use simshard_topology::replication::StoreId;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::key_value::{KeyValueError, KeyValueStore, LeaseId, Transaction};
use crate::keys;
use crate::records;
use crate::registered::cluster_in;
use crate::store::MetadataError;

/// How long a process that ended without a word seems to wait.
const TIME_TO_LIVE: Duration = Duration::from_secs(6);

/// How often a process shows that it still waits.
const INTERVAL: Duration = Duration::from_secs(2);

/// Shows others that a store waits, until it is dropped, and a few seconds longer.
#[derive(Debug)]
pub struct Waiting {
    showing: JoinHandle<()>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.showing.abort();
    }
}

/// Shows that the process of a store runs and waits. Does nothing if the cluster has begun. Call it before the store is
/// registered, so that no registered store seems to be away.
///
/// # Errors
/// When the keys cannot be read or written.
pub async fn show_waiting(
    keys: &Arc<dyn KeyValueStore>,
    store: StoreId,
) -> Result<Option<Waiting>, MetadataError> {
    if cluster_in(&keys.read(keys::CLUSTER).await?)?.is_some() {
        return Ok(None);
    }
    let mut lease = show(&**keys, store).await?;
    let keys = Arc::clone(keys);
    let showing = tokio::spawn(async move {
        loop {
            sleep(INTERVAL).await;
            // While the metadata is away, no command can look.
            if keys.keep_alive(lease).await.is_err()
                && let Ok(new) = show(&*keys, store).await
            {
                lease = new;
            }
        }
    });
    Ok(Some(Waiting { showing }))
}

async fn show(keys: &dyn KeyValueStore, store: StoreId) -> Result<LeaseId, KeyValueError> {
    let lease = keys.grant(TIME_TO_LIVE).await?;
    let put = Transaction::new().put_leased(keys::waiting(store), "", lease);
    // It has no condition.
    keys.commit(&put).await.map(|_| lease)
}

/// The stores whose processes wait for the cluster to begin, or did a few seconds ago. None once it has begun.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn waiting_stores(keys: &dyn KeyValueStore) -> Result<BTreeSet<StoreId>, MetadataError> {
    if cluster_in(&keys.read(keys::CLUSTER).await?)?.is_some() {
        return Ok(BTreeSet::new());
    }
    let pairs = keys.read(keys::WAITING).await?.pairs;
    let pairs = pairs.iter();
    pairs
        .map(|pair| records::id_under(keys::WAITING, &pair.key))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_value::MemoryKeyValues;
    use crate::levels::RawCluster;

    #[tokio::test]
    async fn a_store_waits_until_its_cluster_begins() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let store = StoreId([7; 16]);
        assert_eq!(waiting_stores(&*keys).await.unwrap(), BTreeSet::new());
        let waiting = show_waiting(&keys, store).await.unwrap();
        assert!(waiting.is_some());
        assert_eq!(waiting_stores(&*keys).await.unwrap(), [store].into());
        let cluster = records::text_of(keys::CLUSTER, &RawCluster::new(1)).unwrap();
        let begin = Transaction::new().put(keys::CLUSTER, cluster);
        let _begun = keys.commit(&begin).await.unwrap();
        assert!(show_waiting(&keys, store).await.unwrap().is_none());
        assert_eq!(waiting_stores(&*keys).await.unwrap(), BTreeSet::new());
    }
}
