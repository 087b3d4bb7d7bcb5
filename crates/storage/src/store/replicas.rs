//! What the records of shards say of this store: a fold of the log, as [`Replica`] has it.
//!
//! # Invariants
//! - IR1: a store that has installed a record opens with that one or a later one of the same history, and with no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::replication::{
    Entry, Epoch, InstallError, Replica, ShardEpochs, ShardRecord, ShardRecords, StoreId,
};
use simshard_topology::{ShardId, ShardSet};

use super::Store;
use crate::manifest::{Manifest, ReplicaMeta};

/// Records that are installed together, by shard.
pub type Installation = Vec<(ShardId, Arc<ShardRecord>)>;

/// The shards that records have named this store for.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    store: StoreId,
    by_shard: BTreeMap<ShardId, Held>,
    /// How often records were synced since the store was opened, and once for those before.
    installations: u64,
}

#[derive(Clone, Debug)]
struct Held {
    replica: Replica,
    /// Records of the log before this sequence are no part of the shard.
    replay_start: u64,
}

impl Store {
    /// The epoch that the store has applied last of a shard; [`Epoch::NONE`] if it has installed no record of it.
    #[must_use]
    pub fn epoch(&self, shard: ShardId) -> Epoch {
        self.replicas.read().epoch(shard)
    }

    /// Whether the store has installed records of shards.
    #[must_use]
    pub fn has_records(&self) -> bool {
        !self.replicas.read().is_empty()
    }

    /// The epoch of the record of a shard that is on disk.
    #[must_use]
    pub fn report(&self, shard: ShardId) -> Epoch {
        let replicas = self.replicas.read();
        let held = replicas.by_shard.get(&shard);
        held.map_or(Epoch::NONE, |held| held.replica.reports())
    }

    /// The epochs of all records that are on disk, and a number that is another one when they are.
    #[must_use]
    pub fn reports(&self) -> (u64, ShardEpochs) {
        let replicas = self.replicas.read();
        let held = replicas.by_shard.iter();
        let reports = held.map(|(shard, held)| (*shard, held.replica.reports()));
        (replicas.installations, reports.collect())
    }

    /// Those of these shards that the store does not hold in sync by records of exactly these epochs: it answers no
    /// reads of them.
    #[must_use]
    pub fn unanswered(&self, epochs: &[(ShardId, Epoch)]) -> ShardSet {
        self.replicas.read().unanswered(epochs)
    }

    /// Those of these shards of which a store has installed a later record; all if this is another store.
    #[must_use]
    pub fn unconfirmed(&self, store: StoreId, epochs: &[(ShardId, Epoch)]) -> ShardSet {
        let replicas = self.replicas.read();
        if replicas.store() == store {
            replicas.unconfirmed(epochs)
        } else {
            epochs.iter().map(|(shard, _)| *shard).collect()
        }
    }

    /// Whether the store has applied an earlier record of one of these shards.
    #[must_use]
    pub fn is_behind(&self, epochs: &[(ShardId, Epoch)]) -> bool {
        self.replicas.read().is_behind(epochs)
    }
}

impl Replicas {
    /// Those of a store that has installed no record.
    pub(crate) const fn new(store: StoreId) -> Self {
        Self {
            store,
            by_shard: BTreeMap::new(),
            installations: 1,
        }
    }

    /// As a manifest has them.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let store = StoreId(manifest.store.into_bytes());
        let held = |meta: &ReplicaMeta| Held {
            replica: Replica::restored(store, Arc::clone(&meta.record), meta.role),
            replay_start: meta.replay_start,
        };
        let replicas = manifest.replicas.iter();
        Self {
            store,
            by_shard: replicas.map(|(id, meta)| (*id, held(meta))).collect(),
            installations: 1,
        }
    }

    /// As the next manifest is to have them.
    pub(crate) fn to_manifest(&self) -> BTreeMap<ShardId, ReplicaMeta> {
        let metas = self.by_shard.iter().filter_map(|(id, held)| {
            let (record, role) = held.replica.standing()?;
            let meta = ReplicaMeta {
                record: Arc::clone(record),
                role,
                replay_start: held.replay_start,
            };
            Some((*id, meta))
        });
        metas.collect()
    }

    /// Whether a record of the log is part of a shard.
    pub(crate) fn is_part(&self, shard: ShardId, sequence: u64) -> bool {
        let held = self.by_shard.get(&shard);
        held.is_none_or(|held| sequence >= held.replay_start)
    }

    /// The records that are news to this store: those of shards that it holds, or is to hold.
    ///
    /// # Errors
    /// If a record may not follow the one that is installed.
    pub(crate) fn news(
        &self,
        records: &ShardRecords,
    ) -> Result<Installation, (ShardId, InstallError)> {
        let mut news = Vec::new();
        for (&shard, record) in records {
            let held = self.by_shard.get(&shard);
            if held.is_none() && !record.write_set().any(|store| store == self.store) {
                continue;
            }
            let new = || Replica::new(self.store);
            let replica = held.map_or_else(new, |held| held.replica.clone());
            // There are no learners yet, which would need reports of others.
            match replica.check_install(record, |_| Epoch::NONE) {
                Ok(()) => news.push((shard, Arc::clone(record))),
                Err(InstallError::NotNewer(_)) if replica.confirms() == record.epoch => {}
                Err(error) => return Err((shard, error)),
            }
        }
        Ok(news)
    }

    /// Takes note of records that stand in the queue of the log.
    pub(crate) fn append(&mut self, installed: &[(ShardId, Arc<ShardRecord>)]) {
        self.each(installed, Replica::append);
    }

    /// Takes note of records that are on disk.
    pub(crate) fn sync(&mut self, installed: &[(ShardId, Arc<ShardRecord>)]) {
        self.installations += 1;
        self.each(installed, Replica::sync);
    }

    /// Takes note of records before which everything is applied.
    pub(crate) fn apply(&mut self, installed: &[(ShardId, Arc<ShardRecord>)]) {
        // Whether older data is set aside matters once there are learners.
        self.each(installed, |replica, entry| {
            let _is_set_aside = replica.apply(entry);
        });
    }

    /// Takes records of the log, or of the metadata at the start. Those that a manifest had already change nothing.
    pub(crate) fn restore(&mut self, installed: &[(ShardId, Arc<ShardRecord>)]) {
        let is_news = |(shard, record): &&(ShardId, Arc<ShardRecord>)| {
            let held = self.by_shard.get(shard);
            held.is_none_or(|held| held.replica.confirms() < record.epoch)
        };
        let news: Installation = installed.iter().filter(is_news).cloned().collect();
        self.append(&news);
        self.sync(&news);
        self.apply(&news);
    }

    /// Those of these shards for which the store takes no changes by these epochs.
    pub(crate) fn refused(&self, epochs: &[(ShardId, Epoch)]) -> ShardSet {
        self.without(epochs, Replica::takes)
    }

    /// Those of these shards for which the store answers no reads by these epochs, or has queued a later record.
    pub(crate) fn unanswered(&self, epochs: &[(ShardId, Epoch)]) -> ShardSet {
        self.without(epochs, |replica, epoch| {
            replica.answers(epoch) && replica.confirms() == epoch
        })
    }

    /// Those of these shards of which the store has queued a later record.
    pub(crate) fn unconfirmed(&self, epochs: &[(ShardId, Epoch)]) -> ShardSet {
        let is_later = |(shard, epoch): &&(ShardId, Epoch)| {
            let held = self.by_shard.get(shard);
            held.is_some_and(|held| held.replica.confirms() > *epoch)
        };
        let later = epochs.iter().filter(is_later);
        later.map(|(shard, _)| *shard).collect()
    }

    /// The store itself.
    pub(crate) const fn store(&self) -> StoreId {
        self.store
    }

    fn without(
        &self,
        epochs: &[(ShardId, Epoch)],
        does: impl Fn(&Replica, Epoch) -> bool,
    ) -> ShardSet {
        let does = |(shard, epoch): &(ShardId, Epoch)| {
            let held = self.by_shard.get(shard);
            held.is_some_and(|held| does(&held.replica, *epoch))
        };
        let without = epochs.iter().filter(|of_shard| !does(of_shard));
        without.map(|(shard, _)| *shard).collect()
    }

    /// Whether the store has applied an earlier record of one of these shards.
    pub(crate) fn is_behind(&self, epochs: &[(ShardId, Epoch)]) -> bool {
        epochs.iter().any(|(shard, epoch)| {
            let held = self.by_shard.get(shard);
            held.is_some() && self.epoch(*shard) < *epoch
        })
    }

    /// The epoch of the record of a shard that is applied.
    pub(crate) fn epoch(&self, shard: ShardId) -> Epoch {
        let held = self.by_shard.get(&shard);
        let standing = held.and_then(|held| held.replica.standing());
        standing.map_or(Epoch::NONE, |(record, _)| record.epoch)
    }

    /// The epochs of the records that are applied.
    pub(crate) fn epochs(&self) -> BTreeMap<ShardId, Epoch> {
        let shards = self.by_shard.keys();
        shards.map(|&shard| (shard, self.epoch(shard))).collect()
    }

    /// The generation after that of all records; 0 if there are none.
    pub(crate) fn next_generation(&self) -> u32 {
        let generations = self.epochs().into_values().map(|epoch| epoch.generation);
        generations.max().map_or(0, |last| last + 1)
    }

    /// Takes back what stands in the queue of the log, as the log has refused it.
    pub(crate) fn withdraw(&mut self) {
        for held in self.by_shard.values_mut() {
            held.replica.withdraw();
        }
    }

    /// Whether the store has installed no record.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_shard.is_empty()
    }

    fn each(
        &mut self,
        installed: &[(ShardId, Arc<ShardRecord>)],
        step: impl Fn(&mut Replica, &Entry),
    ) {
        for (shard, record) in installed {
            let new = || Held {
                replica: Replica::new(self.store),
                replay_start: 0,
            };
            let held = self.by_shard.entry(*shard).or_insert_with(new);
            step(&mut held.replica, &Entry::Install(Arc::clone(record)));
        }
    }
}
