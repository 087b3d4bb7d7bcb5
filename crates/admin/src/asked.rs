//! The nodes of a cluster, and what they answer.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_cluster::{
    MetadataError, RegisteredStore, SettingsOfNodes, node_settings, registered_stores,
};
use simshard_node::{ask_store, ask_store_to_count};
use simshard_topology::replication::{Epoch, ShardRecord, StoreId};
use simshard_topology::{Candidate, NodeId, ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use crate::{Admin, AdminError};

/// A node that does not answer in this time is asked again.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a node is asked before it counts as silent.
const ATTEMPTS: u32 = 3;

/// The stores that have registered, and what those that answer have on disk.
#[derive(Debug)]
pub struct Cluster {
    /// Those that have registered.
    pub stores: BTreeMap<StoreId, RegisteredStore>,
    /// What those have on disk that answer.
    pub reports: BTreeMap<StoreId, Reports>,
    /// Those that have no room for copies of shards that they never held.
    without_room: BTreeSet<StoreId>,
    /// The shards whose tables each store has yet to make.
    unbuilt: BTreeMap<StoreId, ShardSet>,
    /// The documents stored in the shards of each store, over all corpora, where it has counted them.
    document_counts: BTreeMap<StoreId, BTreeMap<ShardId, u64>>,
    /// The bytes of each shard that a store has, where it has counted.
    stored_bytes: BTreeMap<StoreId, BTreeMap<ShardId, u64>>,
    settings: SettingsOfNodes,
}

/// The epochs of the shards that a store has on disk.
pub type Reports = BTreeMap<ShardId, Epoch>;

impl Cluster {
    /// Asks all stores that have registered.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn ask(admin: &Admin<'_>) -> Result<Self, MetadataError> {
        let stores = registered_stores(admin.keys).await?.into_iter();
        let stores: BTreeMap<_, _> = stores.map(|store| (store.id, store)).collect();
        let answers: Vec<_> = stores.values().map(answer_of).collect();
        let answers = join_all(answers).await;
        let answers = stores.keys().zip(answers);
        let answers = answers.filter_map(|(&store, answer)| Some((store, answer?)));
        let answers: BTreeMap<StoreId, Answer> = answers.collect();
        let without_room = answers.iter().filter(|(_, answer)| !answer.has_room);
        let counts = answers.iter();
        let counts =
            counts.filter_map(|(&store, answer)| Some((store, answer.document_counts.clone()?)));
        let unbuilt = answers.iter();
        let unbuilt = unbuilt.map(|(store, answer)| (*store, answer.unbuilt));
        let stored = answers.iter();
        let stored = stored.map(|(&store, answer)| (store, answer.stored_bytes.clone()));
        Ok(Self {
            stored_bytes: stored.collect(),
            document_counts: counts.collect(),
            unbuilt: unbuilt.collect(),
            without_room: without_room.map(|(store, _)| *store).collect(),
            reports: answers
                .into_iter()
                .map(|(store, answer)| (store, answer.reports))
                .collect(),
            settings: settings(admin).await?,
            stores,
        })
    }

    /// Stores of which some answer, and have what they report.
    #[cfg(test)]
    pub(crate) fn of_test(
        stores: Vec<RegisteredStore>,
        reports: BTreeMap<StoreId, Reports>,
        settings: SettingsOfNodes,
    ) -> Self {
        Self {
            stores: stores.into_iter().map(|store| (store.id, store)).collect(),
            reports,
            without_room: BTreeSet::new(),
            unbuilt: BTreeMap::new(),
            document_counts: BTreeMap::new(),
            stored_bytes: BTreeMap::new(),
            settings,
        }
    }

    /// Whether a node is to take no shards.
    pub(crate) fn is_drained(&self, node: &NodeId) -> bool {
        let settings = self.settings.get(node);
        settings.is_some_and(|settings| settings.is_drained)
    }

    /// A node as plans see it.
    pub(crate) fn candidate(&self, node: NodeId) -> Candidate {
        let settings = self.settings.get(&node);
        let candidate = Candidate::new(node);
        let Some(settings) = settings else {
            return candidate;
        };
        let candidate = match settings.capacity {
            Some(capacity) => candidate.with_capacity(capacity),
            None => candidate,
        };
        match &settings.zone {
            Some(zone) => candidate.in_zone(zone),
            None => candidate,
        }
    }

    /// The documents of a shard. `None` if no hot replica that answers searches has counted them.
    #[must_use]
    pub fn documents(&self, shard: ShardId, record: &ShardRecord) -> Option<u64> {
        let is_built = |store: StoreId| {
            let unbuilt = self.unbuilt.get(&store);
            let has_tables = unbuilt.is_some_and(|unbuilt| !unbuilt.contains(shard));
            has_tables && self.report(shard, store) >= Some(record.epoch)
        };
        // A store tells of the shards that have documents, once it has tables of them.
        let of_store = |store: StoreId| match self.document_counts.get(&store)?.get(&shard) {
            Some(documents) => Some(*documents),
            None => is_built(store).then_some(0),
        };
        let hot = record.in_sync.iter().filter(|entry| entry.hot);
        hot.filter_map(|entry| of_store(entry.store)).max()
    }

    /// The bytes of a shard: of the replica in sync that has most. 0 if none has told.
    pub(crate) fn bytes(&self, shard: ShardId, record: &ShardRecord) -> u64 {
        let stores = record.in_sync.iter().map(|entry| entry.store);
        let bytes = stores.filter_map(|store| self.stored_bytes.get(&store)?.get(&shard));
        bytes.copied().max().unwrap_or(0)
    }

    /// How many megabytes of copies a second a node may receive, or send, if an operator has limited that.
    pub(crate) fn copy_rate(&self, node: &NodeId) -> Option<NonZeroU32> {
        self.settings.get(node)?.copy_rate
    }

    /// Whether a store that answered has room for copies of shards that it never held.
    pub(crate) fn has_room(&self, store: StoreId) -> bool {
        !self.without_room.contains(&store)
    }

    /// Whether a store answered.
    #[must_use]
    pub fn answers(&self, store: StoreId) -> bool {
        self.reports.contains_key(&store)
    }

    /// The epoch of a shard that a store has on disk, if it answered.
    #[must_use]
    pub fn report(&self, shard: ShardId, store: StoreId) -> Option<Epoch> {
        let reports = self.reports.get(&store)?;
        Some(reports.get(&shard).copied().unwrap_or(Epoch::NONE))
    }

    /// What a store is called: by its node, if it has registered.
    #[must_use]
    pub fn name(&self, store: StoreId) -> String {
        let registered = self.stores.get(&store);
        registered.map_or_else(|| store.to_string(), |store| store.node.to_string())
    }

    /// What stores are called, with commas between.
    pub fn names(&self, stores: impl Iterator<Item = StoreId>) -> String {
        let names: BTreeSet<String> = stores.map(|store| self.name(store)).collect();
        Vec::from_iter(names).join(",")
    }

    /// The same for a sentence: those that have registered no more have no name that an operator knows.
    pub fn told(&self, stores: impl Iterator<Item = StoreId>) -> String {
        told(stores.map(|store| Some(&self.stores.get(&store)?.node))).join(",")
    }

    /// The store of a node.
    ///
    /// # Errors
    /// [`AdminError::UnknownNode`] if no node of this name has registered.
    pub fn of_node(&self, name: &NodeId) -> Result<&RegisteredStore, AdminError> {
        known(self.stores.values(), name)
    }
}

impl Admin<'_> {
    /// Refuses a node that has not registered.
    pub(crate) async fn check_known(&self, node: &NodeId) -> Result<(), AdminError> {
        let stores = registered_stores(self.keys).await?;
        known(stores.iter(), node).map(|_| ())
    }
}

/// What nodes are called in a sentence, in order. Those that have registered no more were removed, or replaced.
pub(crate) fn told<'a>(nodes: impl Iterator<Item = Option<&'a NodeId>>) -> Vec<String> {
    let names = nodes.map(|node| node.map_or("a removed node", NodeId::as_str));
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The store of a node, among those that have registered.
pub(crate) fn known<'a>(
    mut stores: impl Iterator<Item = &'a RegisteredStore> + Clone,
    name: &NodeId,
) -> Result<&'a RegisteredStore, AdminError> {
    let others = stores.clone();
    stores.find(|store| store.node == *name).ok_or_else(|| {
        let others: BTreeSet<&str> = others.map(|store| store.node.as_str()).collect();
        let there_are = match Vec::from_iter(others).join(",") {
            none if none.is_empty() => "there are none".to_owned(),
            names => format!("there are {names}"),
        };
        AdminError::UnknownNode(format!("no node {name} has registered: {there_are}"))
    })
}

/// What is set for nodes. Warns of settings that are not understood.
pub(crate) async fn settings(admin: &Admin<'_>) -> Result<SettingsOfNodes, MetadataError> {
    node_settings(admin.keys, |error| admin.warn_of_bad(error)).await
}

/// What a store answers.
struct Answer {
    reports: Reports,
    has_room: bool,
    unbuilt: ShardSet,
    document_counts: Option<BTreeMap<ShardId, u64>>,
    stored_bytes: BTreeMap<ShardId, u64>,
}

async fn answer_of(store: &RegisteredStore) -> Option<Answer> {
    let ask = || ask_store_to_count(&store.address, store.id, ANSWER_TIMEOUT);
    let news = patiently(ask).await?;
    Some(Answer {
        reports: news.epochs.into_iter().collect(),
        has_room: news.has_room_for_copies,
        unbuilt: news.unbuilt,
        document_counts: news.document_counts,
        stored_bytes: news.stored_bytes,
    })
}

/// What a store that answers has on disk.
pub(crate) async fn reports_of(store: &RegisteredStore) -> Option<Reports> {
    patiently(|| ask(store)).await
}

/// Asks several times if there is no answer: one that is a moment late is no dead node.
async fn patiently<A, F: Future<Output = Option<A>>>(ask: impl Fn() -> F) -> Option<A> {
    for _ in 0..ATTEMPTS {
        let asked = Instant::now();
        if let Some(answer) = ask().await {
            return Some(answer);
        }
        // A connection that is refused fails at once.
        sleep(ANSWER_TIMEOUT.saturating_sub(asked.elapsed())).await;
    }
    None
}

/// What a store has on disk, if it answers at once.
pub async fn ask(store: &RegisteredStore) -> Option<Reports> {
    let news = ask_store(&store.address, store.id, ANSWER_TIMEOUT).await?;
    Some(news.epochs.into_iter().collect())
}
