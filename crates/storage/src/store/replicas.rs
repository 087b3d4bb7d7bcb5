//! What the records of shards say of this store: a fold of the log, as [`Replica`] has it.
//!
//! # Invariants
//! - IR1: a store that has installed a record opens with that one or a later one of the same history, and with no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::replication::{
    Entry, Epoch, InstallError, Pin, Replica, Role, ShardRecord, ShardRecords, StoreId,
};
use simshard_topology::{ShardId, ShardSet};

use crate::element::Operation;
use crate::manifest::{Manifest, ReplicaMeta};

/// Records that are installed together, by shard.
pub type Installation = Vec<(ShardId, Arc<ShardRecord>)>;

/// What the log says of shards at one sequence.
pub(crate) type Entries = Vec<(ShardId, Entry)>;

/// The entries of an operation, if it says anything of shards.
pub(crate) fn entries_of(operation: &Operation) -> Option<Entries> {
    match operation {
        Operation::Install(records) => {
            let records = records.iter();
            let entry = |(shard, record): &(ShardId, Arc<ShardRecord>)| {
                (*shard, Entry::Install(Arc::clone(record)))
            };
            Some(records.map(entry).collect())
        }
        Operation::Copied(copy) => {
            let added = copy.added;
            Some(vec![(copy.shard, Entry::Copied { added })])
        }
        Operation::CreateCorpus { .. } | Operation::DropCorpus { .. } | Operation::Change(_) => {
            None
        }
    }
}

/// The shards that records have named this store for.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    store: StoreId,
    pub(super) by_shard: BTreeMap<ShardId, Held>,
    /// How often records were synced since the store was opened, and once for those before.
    pub(super) installations: u64,
}

/// A shard that a record has named the store for.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(super) replica: Replica,
    /// Records of the log before this sequence are no part of the shard.
    replay_start: u64,
    /// The record of the log by which something was settled last. While it may be replayed, so may be what stands before it.
    pub(super) settled_at: u64,
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
            settled_at: u64::MAX,
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

    /// Whether a record has named the store for a shard: other stores may have replicas of it.
    pub(crate) fn has(&self, shard: ShardId) -> bool {
        self.by_shard.contains_key(&shard)
    }

    /// Whether a record of the log is part of a shard.
    pub(crate) fn is_part(&self, shard: ShardId, sequence: u64) -> bool {
        let held = self.by_shard.get(&shard);
        held.is_none_or(|held| sequence >= held.replay_start)
    }

    /// The records that are news to this store: those of shards that it holds, is to hold, or was to hold by the record
    /// before. Without those that must wait until other stores report them; `reported` tells the epoch of a shard that a
    /// store has reported.
    ///
    /// # Errors
    /// If a record may not follow the one that is installed.
    pub(crate) fn news(
        &self,
        records: &ShardRecords,
        reported: impl Fn(ShardId, StoreId) -> Epoch,
    ) -> Result<Installation, (ShardId, InstallError)> {
        let mut news = Vec::new();
        for (&shard, record) in records {
            let held = self.by_shard.get(&shard);
            let is_named = record.write_set().any(|store| store == self.store);
            // One that came too late to an earlier record still counts for the seal, and as one that is to be fenced.
            if held.is_none() && !is_named && !record.previous.contains(&self.store) {
                continue;
            }
            let new = || Replica::new(self.store);
            let replica = held.map_or_else(new, |held| held.replica.clone());
            match replica.check_install(record, |store| reported(shard, store)) {
                Ok(()) => news.push((shard, Arc::clone(record))),
                Err(InstallError::NotReported(_) | InstallError::NotFenced(_)) => {}
                Err(InstallError::NotNewer(_)) if replica.confirms() == record.epoch => {}
                Err(error) => return Err((shard, error)),
            }
        }
        Ok(news)
    }

    /// The end of a copy of what was pinned; `None` if another pin must be copied.
    pub(crate) fn end_of_copy(&self, shard: ShardId, pin: Pin) -> Option<Epoch> {
        match self.by_shard.get(&shard)?.replica.end_of_copy(pin)? {
            Entry::Copied { added } => Some(added),
            Entry::Install(_) => None,
        }
    }

    /// The state of a shard as a source of copies, for a learner that was added at an epoch.
    pub(super) fn pin(&self, shard: ShardId, added: Epoch) -> Option<Pin> {
        self.by_shard.get(&shard)?.replica.pin(added)
    }

    /// Takes note of entries that stand in the queue of the log.
    pub(crate) fn append(&mut self, entries: &Entries) {
        self.each(entries, Replica::append);
    }

    /// Takes note of entries that are on disk.
    pub(crate) fn sync(&mut self, entries: &Entries) {
        self.installations += 1;
        self.each(entries, Replica::sync);
    }

    /// Takes note of entries before which everything is applied; `sequence` is theirs. Answers the shards that begin
    /// anew, without what the store has of them.
    pub(crate) fn apply(&mut self, entries: &Entries, sequence: u64) -> ShardSet {
        let mut anew = ShardSet::EMPTY;
        for (shard, entry) in entries {
            let held = self.held(*shard);
            let before = held.copying();
            let settled = held.settled();
            let is_set_aside = held.replica.apply(entry);
            if held.settled() > settled {
                held.settled_at = sequence;
            }
            let begins_anew = held.copying().is_some() && held.copying() != before;
            if begins_anew {
                held.replay_start = sequence + 1;
                anew.insert(*shard);
            }
            // What a store has of a shard that it left stays where it is, and counts for nothing, until the shard begins
            // anew.
            debug_assert!(!is_set_aside || begins_anew || held.has_left(), "RP3");
        }
        anew
    }

    /// Takes entries of the log, or of the metadata at the start. Those that a manifest had already change nothing.
    /// Answers the shards that begin anew, and those whose copy ends.
    pub(crate) fn restore(&mut self, entries: &Entries, sequence: u64) -> (ShardSet, ShardSet) {
        let is_news = |(shard, entry): &&(ShardId, Entry)| {
            let held = self.by_shard.get(shard);
            match entry {
                Entry::Install(record) => {
                    held.is_none_or(|held| held.replica.confirms() < record.epoch)
                }
                Entry::Copied { added } => held.is_some_and(|held| {
                    held.copying() == Some(*added) && sequence >= held.replay_start
                }),
            }
        };
        let news: Entries = entries.iter().filter(is_news).cloned().collect();
        let copied = news
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::Copied { .. }));
        let copied = copied.map(|(shard, _)| *shard).collect();
        self.append(&news);
        self.sync(&news);
        (self.apply(&news, sequence), copied)
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

    /// The shards that are in sync by the records that are applied, by their epochs. One that is yet to be filled is left
    /// out: where the metadata is lost, no cluster begins with it (FO4).
    pub(crate) fn in_sync(&self) -> BTreeMap<Epoch, ShardSet> {
        let mut in_sync = BTreeMap::<_, ShardSet>::new();
        for (&shard, held) in &self.by_shard {
            if let Some((record, Role::InSync)) = held.replica.standing()
                && !record.is_rebuilt()
            {
                in_sync.entry(record.epoch).or_default().insert(shard);
            }
        }
        in_sync
    }

    /// The other stores that these records name in sync, and the shards of each.
    pub(crate) fn partners(&self) -> BTreeMap<StoreId, ShardSet> {
        let mut partners = BTreeMap::<_, ShardSet>::new();
        for (&shard, held) in &self.by_shard {
            if let Some((record, Role::InSync)) = held.replica.standing() {
                let others = record.in_sync.iter().map(|entry| entry.store);
                for other in others.filter(|other| *other != self.store) {
                    partners.entry(other).or_default().insert(shard);
                }
            }
        }
        partners
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

    fn each(&mut self, entries: &Entries, step: impl Fn(&mut Replica, &Entry)) {
        for (shard, entry) in entries {
            step(&mut self.held(*shard).replica, entry);
        }
    }

    fn held(&mut self, shard: ShardId) -> &mut Held {
        let new = || Held {
            replica: Replica::new(self.store),
            replay_start: 0,
            settled_at: 0,
        };
        self.by_shard.entry(shard).or_insert_with(new)
    }
}

impl Held {
    /// Whether the record that is applied does not name the store.
    fn has_left(&self) -> bool {
        matches!(self.replica.standing(), Some((_, Role::None)))
    }

    /// The addition for which the store copies the shard, by what is applied.
    fn copying(&self) -> Option<Epoch> {
        match self.replica.standing() {
            Some((_, Role::Copying { added })) => Some(added),
            Some((_, Role::None | Role::Copied { .. } | Role::InSync)) | None => None,
        }
    }
}
