//! Who holds which shard, as the records say it at one moment.

use std::collections::{BTreeMap, BTreeSet};

use simshard_cluster::{
    KeyValueStore, MetadataError, RegisteredStore, registered_stores, shard_records,
};
use simshard_topology::replication::{ShardRecords, StoreId};
use simshard_topology::{ShardId, ShardSet, Version};

/// Who holds which shard.
pub(super) struct Places {
    pub(super) records: ShardRecords,
    stores: BTreeMap<StoreId, RegisteredStore>,
}

impl Places {
    pub(super) async fn read(keys: &dyn KeyValueStore) -> Result<Self, MetadataError> {
        let records = shard_records(keys).await?;
        let stores = registered_stores(keys).await?.into_iter();
        let stores = stores.map(|store| (store.id, store)).collect();
        Ok(Self { records, stores })
    }

    /// The first store that holds a shard in sync, if it has registered.
    pub(super) fn reader(&self, shard: ShardId) -> Option<&RegisteredStore> {
        let first = self.records.get(&shard)?.in_sync.first()?;
        self.stores.get(&first.store)
    }

    /// The first store in sync of each of these shards, and which of them it is that of. Some may have none that has
    /// registered.
    pub(super) fn readers(&self, shards: ShardSet) -> Vec<(&RegisteredStore, ShardSet)> {
        let mut readers: BTreeMap<StoreId, (&RegisteredStore, ShardSet)> = BTreeMap::new();
        for shard in shards.iter() {
            if let Some(store) = self.reader(shard) {
                let reader = readers.entry(store.id).or_insert((store, ShardSet::EMPTY));
                reader.1.insert(shard);
            }
        }
        readers.into_values().collect()
    }

    /// The registered stores that hold any of these shards in sync.
    pub(super) fn stores_of(&self, shards: ShardSet) -> Vec<&RegisteredStore> {
        let holders = self.holders(shards).into_iter();
        let stores: BTreeSet<StoreId> = holders.map(|(_, store)| store).collect();
        let stores = stores.iter();
        stores.filter_map(|store| self.stores.get(store)).collect()
    }

    /// The stores that hold these shards in sync.
    pub(super) fn holders(&self, shards: ShardSet) -> Vec<(ShardId, StoreId)> {
        let records = self.records.iter();
        let records = records.filter(|(shard, _)| shards.contains(**shard));
        let holders = records.flat_map(|(shard, record)| {
            let stores = record.in_sync.iter();
            stores.map(|entry| (*shard, entry.store))
        });
        holders.collect()
    }

    /// Whether all these stores hold these shards in sync.
    pub(super) fn are_held(&self, held: &[(ShardId, StoreId)]) -> bool {
        held.iter().all(|(shard, store)| {
            let record = self.records.get(shard);
            record.is_some_and(|record| record.in_sync(*store).is_some())
        })
    }

    /// Whether other stores hold, or copy, one of these shards at later places.
    pub(super) fn have_changed(&self, later: &Self, shards: ShardSet) -> bool {
        let stores = |places: &Self, shard: ShardId| {
            let record = places.records.get(&shard)?;
            let mut stores: Vec<StoreId> = record.in_sync.iter().map(|entry| entry.store).collect();
            stores.extend(record.learners.iter().map(|learner| learner.store));
            Some(stores)
        };
        shards
            .iter()
            .any(|shard| stores(self, shard) != stores(later, shard))
    }

    /// The highest version up to which any shard is settled.
    pub(super) fn settled(&self) -> Version {
        let settled = self.records.values().map(|record| record.settled);
        settled.max().unwrap_or(Version::NONE)
    }

    /// What a store is called: by its node, if it has registered.
    pub(super) fn name(&self, store: StoreId) -> String {
        let registered = self.stores.get(&store);
        registered.map_or_else(|| store.to_string(), |store| store.node.to_string())
    }

    pub(super) fn names(&self, stores: &[StoreId]) -> Vec<String> {
        let mut names: Vec<String> = stores.iter().map(|store| self.name(*store)).collect();
        names.sort_unstable();
        names
    }
}
