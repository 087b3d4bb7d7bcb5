//! The nodes of a cluster, and what they answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use simshard_cluster::{KeyValueStore, RegisteredStore, registered_stores};
use simshard_node::ask_for_epochs;
use simshard_topology::replication::{Epoch, StoreId};
use simshard_topology::{NodeId, ShardId};
use tokio::time::{Instant, sleep};

use crate::exit::UsageError;

/// A node that does not answer in this time is asked again.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a node is asked before it counts as silent.
const ATTEMPTS: u32 = 3;

/// The stores that have registered, and what those that answer have on disk.
pub(super) struct Cluster {
    pub(super) stores: BTreeMap<StoreId, RegisteredStore>,
    pub(super) reports: BTreeMap<StoreId, Reports>,
}

/// The epochs of the shards that a store has on disk.
pub(super) type Reports = BTreeMap<ShardId, Epoch>;

impl Cluster {
    /// Asks all stores that have registered.
    pub(super) async fn ask(keys: &dyn KeyValueStore) -> anyhow::Result<Self> {
        let stores = registered_stores(keys).await?.into_iter();
        let stores: BTreeMap<_, _> = stores.map(|store| (store.id, store)).collect();
        let reports = join_all(stores.values().map(reports_of)).await;
        let reports = stores.keys().zip(reports);
        let reports = reports.filter_map(|(&store, reports)| Some((store, reports?)));
        Ok(Self {
            reports: reports.collect(),
            stores,
        })
    }

    /// Whether a store answered.
    pub(super) fn answers(&self, store: StoreId) -> bool {
        self.reports.contains_key(&store)
    }

    /// The epoch of a shard that a store has on disk, if it answered.
    pub(super) fn report(&self, shard: ShardId, store: StoreId) -> Option<Epoch> {
        let reports = self.reports.get(&store)?;
        Some(reports.get(&shard).copied().unwrap_or(Epoch::NONE))
    }

    /// What a store is called: by its node, if it has registered.
    pub(super) fn name(&self, store: StoreId) -> String {
        let registered = self.stores.get(&store);
        registered.map_or_else(|| store.to_string(), |store| store.node.to_string())
    }

    pub(super) fn names(&self, stores: impl Iterator<Item = StoreId>) -> String {
        let names: BTreeSet<String> = stores.map(|store| self.name(store)).collect();
        Vec::from_iter(names).join(",")
    }

    /// The store of a node.
    pub(super) fn of_node(&self, name: &NodeId) -> Result<&RegisteredStore, UsageError> {
        let mut stores = self.stores.values();
        let known = || self.names(self.stores.keys().copied());
        stores.find(|store| store.node == *name).ok_or_else(|| {
            UsageError(format!(
                "no node {name} has registered: there are {}",
                known()
            ))
        })
    }
}

/// Asks a store, several times if it does not answer.
async fn reports_of(store: &RegisteredStore) -> Option<Reports> {
    for _ in 0..ATTEMPTS {
        let asked = Instant::now();
        if let Some(reports) = ask(store).await {
            return Some(reports);
        }
        // A connection that is refused fails at once.
        sleep(ANSWER_TIMEOUT.saturating_sub(asked.elapsed())).await;
    }
    None
}

pub(super) async fn ask(store: &RegisteredStore) -> Option<Reports> {
    let epochs = ask_for_epochs(&store.address, store.id, ANSWER_TIMEOUT).await?;
    Some(epochs.into_iter().collect())
}
