//! Which stores hold a shard as a cluster begins, or begins anew after its metadata was lost (ME4).

use std::collections::{BTreeMap, BTreeSet};

use simshard_topology::replication::{Epoch, Learner, ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet};

use crate::membership::random_nonce;
use crate::records::RegisteredStore;
use crate::registered::Registered;
use crate::store::MetadataError;

/// The stores that hold each shard as a cluster begins.
pub(crate) struct Holders<'a> {
    registered: &'a [RegisteredStore],
    map: &'a ShardMap,
    stores: &'a BTreeMap<&'a NodeId, &'a RegisteredStore>,
    /// Those that held it in sync by the newest record, where the cluster begins anew.
    in_sync: BTreeMap<ShardId, (Epoch, Vec<StoreId>)>,
}

impl<'a> Holders<'a> {
    pub(crate) fn of(
        registered: &'a Registered,
        stores: &'a BTreeMap<&'a NodeId, &'a RegisteredStore>,
        map: &'a ShardMap,
    ) -> Self {
        let mut in_sync = BTreeMap::<_, (Epoch, Vec<StoreId>)>::new();
        for store in &registered.stores {
            for (&epoch, shards) in &store.in_sync {
                for shard in shards.iter() {
                    let (newest, holders) = in_sync.entry(shard).or_default();
                    if epoch > *newest {
                        (*newest, *holders) = (epoch, Vec::new());
                    }
                    if epoch == *newest {
                        holders.push(store.id);
                    }
                }
            }
        }
        Self {
            registered: &registered.stores,
            map,
            stores,
            in_sync,
        }
    }

    /// The first record of a shard. Where the cluster begins anew, stores that the map names and that do not hold the
    /// shard in sync copy it at once.
    pub(crate) fn first_record(&self, generation: u32, shard: ShardId) -> ShardRecord {
        let in_sync = self.of_shard(shard);
        let nodes = self.map.replicas(shard);
        let record = ShardRecord::first(generation, &in_sync, random_nonce());
        let mut record = record.with_want(nodes.len() as u8);
        let planned = nodes.iter().map(|node| self.stores[node].id);
        let others = planned.filter(|store| !in_sync.contains(store));
        let others = others.take(nodes.len().saturating_sub(in_sync.len()));
        let added = record.epoch;
        record.learners = others.map(|store| Learner { store, added }).collect();
        record
    }

    /// Those that held the shard in sync, if any did; the map's come first. Else those that the map names and that have
    /// installed no record, or another one that has not. One that has may hold no copy, and would not start.
    fn of_shard(&self, shard: ShardId) -> Vec<StoreId> {
        let nodes = self.map.replicas(shard).iter();
        let planned = nodes.map(|node| self.stores[node]);
        let Some((_, in_sync)) = self.in_sync.get(&shard) else {
            let is_new = |store: &&RegisteredStore| store.next_generation == 0;
            let new: Vec<StoreId> = planned.filter(is_new).map(|store| store.id).collect();
            if !new.is_empty() {
                return new;
            }
            let mut elsewhere = self.stores.values().copied().filter(is_new);
            return elsewhere.next().map(|store| store.id).into_iter().collect();
        };
        let planned: Vec<StoreId> = planned.map(|store| store.id).collect();
        let mut holders = in_sync.clone();
        holders.sort_by_key(|store| !planned.contains(store));
        holders
    }

    /// Refuses to begin with shards that no store holds in sync.
    pub(crate) fn check_all_held(&self) -> Result<(), MetadataError> {
        let shards: ShardSet = self.in_sync.keys().copied().collect();
        let shards = ShardSet::ALL.difference(&shards);
        if shards.is_empty() {
            return Ok(());
        }
        Err(MetadataError::NotHeld { shards })
    }

    /// Refuses to begin without a store that the newest record of a shard names in sync. Later records may be known to that
    /// one alone: by these, the stores that have registered may have been left out.
    pub(crate) fn check_no_partner_is_absent(&self) -> Result<(), MetadataError> {
        let is_absent = |store: &StoreId| !self.registered.iter().any(|other| other.id == *store);
        let (mut shards, mut stores) = (ShardSet::default(), BTreeSet::new());
        for store in self.registered {
            let absent = store.partners.iter().filter(|(other, _)| is_absent(other));
            for (other, shared) in absent {
                let is_newest = |shard: &ShardId| {
                    let newest = self.in_sync.get(shard);
                    newest.is_some_and(|(_, holders)| holders.contains(&store.id))
                };
                for shard in shared.iter().filter(is_newest) {
                    shards.insert(shard);
                    stores.insert(*other);
                }
            }
        }
        if shards.is_empty() {
            return Ok(());
        }
        let stores: Vec<String> = stores.iter().map(StoreId::to_string).collect();
        let stores = stores.join(", ");
        Err(MetadataError::PartnersAbsent { shards, stores })
    }

    /// Refuses to begin with shards that no store may begin empty, either.
    pub(crate) fn check_all_begin(&self) -> Result<(), MetadataError> {
        let shards = ShardId::all().filter(|shard| self.of_shard(*shard).is_empty());
        let shards: ShardSet = shards.collect();
        if shards.is_empty() {
            return Ok(());
        }
        Err(MetadataError::NoneBegins { shards })
    }
}
