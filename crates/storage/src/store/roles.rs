//! What a store does for each shard, by the records of its log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use simshard_topology::replication::{
    Epoch, Role, ShardEpochs, ShardRecord, ShardRecords, StoreId,
};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use super::Store;
use super::replicas::{Replicas, entries_of};
use crate::element::Operation;
use crate::error::MaintenanceError;

impl Store {
    /// The epoch that the store has applied last of a shard; [`Epoch::NONE`] if it has installed no record of it.
    #[must_use]
    pub fn epoch(&self, shard: ShardId) -> Epoch {
        self.replicas.read().epoch(shard)
    }

    /// Takes entries of the log that are on disk, and before which everything is applied. Answers the shards whose
    /// contents are others now: they begin anew, or have a copy.
    pub(crate) fn take_entries(
        &self,
        operation: &Operation,
        sequence: u64,
    ) -> Result<ShardSet, MaintenanceError> {
        let entries = entries_of(operation).unwrap_or_default();
        // Records come and go by this thread only, so what is found out here holds below.
        let mut trial = self.replicas.read().clone();
        trial.sync(&entries);
        let anew = trial.apply(&entries, sequence);
        let copied = match operation {
            Operation::Copied(copy) => Some(copy),
            Operation::CreateCorpus { .. }
            | Operation::DropCorpus { .. }
            | Operation::Change(_)
            | Operation::Install(_) => None,
        };
        let needs_right = copied.is_some() || !anew.is_empty();
        let _right = needs_right.then(|| self.right_to_change_segments());
        let mut replicas = self.replicas.write();
        let settled = |replicas: &Replicas| -> Vec<Version> {
            let shards = entries.iter().map(|(shard, _)| *shard);
            shards.map(|shard| replicas.settled(shard)).collect()
        };
        let before = settled(&replicas);
        replicas.sync(&entries);
        replicas.apply(&entries, sequence);
        if settled(&replicas) != before {
            self.has_settled.store(true, Ordering::Relaxed);
        }
        if !anew.is_empty() {
            self.begin_anew(anew);
        }
        let Some(copy) = copied else {
            return Ok(anew);
        };
        self.adopt(copy)?;
        Ok(ShardSet::from_iter([copy.shard]))
    }

    /// Whether the store has installed records of shards.
    #[must_use]
    pub fn has_records(&self) -> bool {
        !self.replicas.read().is_empty()
    }

    /// The shards that the store answers for: those in sync, or all if there are no records.
    #[must_use]
    pub fn answered(&self) -> ShardSet {
        self.shards_with(|_, role| role == Role::InSync)
    }

    /// The shards that this store is to hold tables of: those it is hot for, in sync or about to be; all if there are no
    /// records.
    #[must_use]
    pub fn hot(&self) -> ShardSet {
        let own = self.replicas.read().store();
        self.shards_with(|record, role| {
            matches!(role, Role::Copied { .. } | Role::InSync) && record.is_hot(own)
        })
    }

    /// The shards that the store answers for and that no other store is named hot for before it.
    #[must_use]
    pub fn leads(&self) -> ShardSet {
        let own = self.replicas.read().store();
        self.shards_with(|record, role| {
            let first = record.in_sync.iter().find(|entry| entry.hot);
            role == Role::InSync && first.is_some_and(|first| first.store == own)
        })
    }

    /// Whether a shard that the store holds is yet to be filled. No other store holds it then, and none has tables of it.
    #[must_use]
    pub fn is_rebuilt(&self, shard: ShardId) -> bool {
        let replicas = self.replicas.read();
        let held = replicas.by_shard.get(&shard);
        let standing = held.and_then(|held| held.replica.standing());
        standing.is_some_and(|(record, _)| record.is_rebuilt())
    }

    fn shards_with(&self, is_meant: impl Fn(&ShardRecord, Role) -> bool) -> ShardSet {
        if !self.has_records() {
            return self.shards();
        }
        let roles = self.roles().into_iter();
        let meant = roles.filter(|(_, record, role)| is_meant(record, *role));
        meant.map(|(shard, ..)| shard).collect()
    }

    /// What the store does for a shard; `None` if it has installed no record of it.
    #[must_use]
    pub fn role(&self, shard: ShardId) -> Option<Role> {
        let replicas = self.replicas.read();
        let held = replicas.by_shard.get(&shard)?;
        held.replica.standing().map(|(_, role)| role)
    }

    /// What the store does for each shard, by the record that is applied.
    #[must_use]
    pub fn roles(&self) -> Vec<(ShardId, Arc<ShardRecord>, Role)> {
        let replicas = self.replicas.read();
        let held = replicas.by_shard.iter().filter_map(|(shard, held)| {
            let (record, role) = held.replica.standing()?;
            Some((*shard, Arc::clone(record), role))
        });
        held.collect()
    }

    /// Whether records add this store to a shard as a learner, and it has not begun to be one. It waits for the report of a
    /// store in sync, and refuses changes until then.
    #[must_use]
    pub fn awaits_reports(&self, records: &ShardRecords) -> bool {
        let replicas = self.replicas.read();
        let own = replicas.store();
        records.iter().any(|(shard, record)| {
            let held = replicas.by_shard.get(shard);
            let reports = held.map_or(Epoch::NONE, |held| held.replica.reports());
            let learner = record.learner(own);
            learner.is_some_and(|learner| learner.added > reports)
        })
    }

    /// The epoch of the record of a shard that is on disk.
    #[must_use]
    pub fn report(&self, shard: ShardId) -> Epoch {
        let replicas = self.replicas.read();
        let held = replicas.by_shard.get(&shard);
        held.map_or(Epoch::NONE, |held| held.replica.reports())
    }

    /// The record of a shard that is on disk.
    #[must_use]
    pub fn synced_record(&self, shard: ShardId) -> Option<Arc<ShardRecord>> {
        let replicas = self.replicas.read();
        replicas.by_shard.get(&shard)?.replica.reported().cloned()
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

    /// Those of these shards that the store has not held in sync ever since these epochs.
    #[must_use]
    pub fn left_since(&self, epochs: &[(ShardId, Epoch)]) -> ShardSet {
        let replicas = self.replicas.read();
        let own = replicas.store();
        let stays = |(shard, epoch): &(ShardId, Epoch)| {
            let held = replicas.by_shard.get(shard);
            let standing = held.and_then(|held| held.replica.standing());
            let entry = standing.and_then(|(record, _)| record.in_sync(own));
            entry.is_some_and(|entry| entry.since <= *epoch)
        };
        let left = epochs.iter().filter(|of_shard| !stays(of_shard));
        left.map(|(shard, _)| *shard).collect()
    }

    /// Whether it has dropped a corpus, as far as it remembers: until nothing on disk names it, and some time longer.
    #[must_use]
    pub fn has_dropped(&self, corpus: CorpusUid) -> bool {
        self.catalog.read().dropped.contains_key(&corpus)
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
