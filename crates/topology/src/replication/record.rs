//! The record of a shard: which stores hold it, since when, and the quorums that follow.
//!
//! # Invariants
//! - RE1: any read quorum and any seal quorum of the same stores have a store in common.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::{ShardId, Version};

/// The identity of a store, the data directory of a node: the bytes of a UUID. A disk that was emptied gets another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub [u8; 16]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).fmt(f)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// Which record of a shard: each has the number after that of the record before it. An operator who forces a record
/// begins a new generation, which is after all numbers of the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// Raised by operators only.
    pub generation: u32,
    /// Counts the records of a generation.
    pub number: u64,
}

impl Epoch {
    /// Before all others: of a store that has installed no record.
    pub const NONE: Self = Self {
        generation: 0,
        number: 0,
    };

    /// Of the first record of a shard. The stores that it names are in sync with nothing to copy.
    pub const FIRST: Self = Self {
        generation: 0,
        number: 1,
    };

    /// The epoch of the next record.
    #[must_use]
    pub const fn next(self) -> Self {
        Self {
            generation: self.generation,
            number: self.number + 1,
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.generation, self.number)
    }
}

/// A store that holds everything that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InSync {
    /// The store.
    pub store: StoreId,
    /// The epoch that put it in sync. It has been so ever since.
    pub since: Epoch,
    /// Whether it is to hold tables and answer searches. Safety does not depend on it.
    pub hot: bool,
}

/// A store that takes writes while it copies the shard. It answers no reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Learner {
    /// The store.
    pub store: StoreId,
    /// The epoch that added it. It has been a learner ever since.
    pub added: Epoch,
}

/// Who holds a shard, as one value in the metadata store. [`after`](Self::after) gives the next one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardRecord {
    /// Which record this is.
    pub epoch: Epoch,
    /// Random. Two records of one epoch with different nonces show that the metadata store went back in time.
    pub nonce: u64,
    /// The stores in sync, at least one.
    pub in_sync: Vec<InSync>,
    /// The learners.
    pub learners: Vec<Learner>,
    /// The stores in sync by the record before this one; of a forced one, all that answered.
    pub previous: Vec<StoreId>,
    /// How many stores are wished for. With the next two a wish, which may change with any step.
    pub want: u8,
    /// How many of them are wished hot.
    pub hot: u8,
    /// How many stores in sync an eviction leaves at least.
    pub min_in_sync: u8,
    /// No change is taken at this version or a lower one.
    pub floor: Version,
    /// Whether repairs are not taken either up to the floor, while stores are compared up to there.
    pub is_frozen: bool,
    /// Tombstones of this version or a lower one may be dropped. All stores in sync had the same up to here.
    pub settled: Version,
}

/// The records of shards, as the metadata has them.
pub type ShardRecords = BTreeMap<ShardId, Arc<ShardRecord>>;

/// Some shards, ascending, and the epoch of a record of each.
pub type ShardEpochs = Vec<(ShardId, Epoch)>;

impl ShardRecord {
    /// The first record of a shard, with copies in stores that have nothing to copy. `nonce` is random.
    /// `generation` is 0, or later where the metadata was lost.
    pub fn first(generation: u32, stores: &[StoreId], nonce: u64) -> Self {
        let epoch = Epoch {
            generation,
            ..Epoch::FIRST
        };
        let in_sync = stores.iter().map(|&store| InSync {
            store,
            since: epoch,
            hot: true,
        });
        let record = Self {
            epoch,
            nonce,
            in_sync: in_sync.collect(),
            learners: Vec::new(),
            previous: Vec::new(),
            want: 0,
            hot: 0,
            min_in_sync: 0,
            floor: Version::NONE,
            is_frozen: false,
            settled: Version::NONE,
        };
        record.with_want(stores.len() as u8)
    }

    /// The same record, in which as many replicas are wished for, all of them hot.
    #[must_use]
    pub const fn with_want(self, want: u8) -> Self {
        self.wishing(want, want)
    }

    /// The same record, in which as many replicas are wished for, and as many of them hot. Who is hot stays.
    #[must_use]
    pub const fn wishing(mut self, want: u8, hot: u8) -> Self {
        (self.want, self.hot) = (want, hot);
        self.min_in_sync = if want > 2 { 2 } else { 1 };
        self
    }

    /// The entry of a store in sync.
    pub fn in_sync(&self, store: StoreId) -> Option<&InSync> {
        self.in_sync.iter().find(|entry| entry.store == store)
    }

    /// The entry of a learner.
    pub fn learner(&self, store: StoreId) -> Option<&Learner> {
        self.learners.iter().find(|entry| entry.store == store)
    }

    /// The stores in sync from which a learner copies, in the order in which it asks them. Cold ones come first, as they answer
    /// no searches, and the first of several is another one for each shard. `is_there` says of a store whether it answers.
    pub fn copy_sources(&self, shard: ShardId, is_there: impl Fn(StoreId) -> bool) -> Vec<StoreId> {
        let in_sync = self.in_sync.iter();
        let there = in_sync.filter(|entry| is_there(entry.store));
        let (mut sources, mut hot): (Vec<&InSync>, Vec<&InSync>) =
            there.partition(|entry| !entry.hot);
        for some in [&mut sources, &mut hot] {
            let first = shard.index() % some.len().max(1);
            some.rotate_left(first);
        }
        sources.append(&mut hot);
        sources.into_iter().map(|entry| entry.store).collect()
    }

    /// The stores that every write goes to: those in sync, and the learners.
    pub fn write_set(&self) -> impl Iterator<Item = StoreId> {
        let in_sync = self.in_sync.iter().map(|entry| entry.store);
        in_sync.chain(self.learners.iter().map(|entry| entry.store))
    }

    /// Whether a store holds the shard, in sync or as a learner.
    pub fn names(&self, store: StoreId) -> bool {
        self.write_set().any(|named| named == store)
    }

    /// Whether the shard has fewer replicas than are wished for.
    pub fn is_short(&self) -> bool {
        self.is_short_without(&BTreeSet::new())
    }

    /// The same if learners that are dead do not count.
    pub fn is_short_without(&self, dead: &BTreeSet<StoreId>) -> bool {
        let learners = self.learners.iter();
        let learners = learners.filter(|learner| !dead.contains(&learner.store));
        self.in_sync.len() + learners.count() < usize::from(self.want)
    }

    /// Whether fewer replicas are in sync than are wished for.
    pub fn lacks_replicas(&self) -> bool {
        self.in_sync.len() < usize::from(self.want)
    }

    /// Whether enough of the stores in sync before it have synced this record, so that no read is proven by the record
    /// before. `synced` tells the epoch that a store has reported; a report never expires.
    pub fn is_sealed(&self, synced: impl Fn(StoreId) -> Epoch) -> bool {
        let reports = self.previous.iter();
        let reports = reports.filter(|&&store| synced(store) >= self.epoch);
        reports.count() >= self.sealing(self.previous.len())
    }

    /// Whether one of two stores in sync needs another one to tell that the record is sealed. A process keeps reports in
    /// memory only. So if all that could report are lost while it starts anew, no step can follow. Of more replicas, this
    /// holds only where a single store was in sync before: a failover of three takes no further step.
    pub fn needs_other(&self, store: StoreId) -> bool {
        let of_own = |one| {
            if one == store {
                self.epoch
            } else {
                Epoch::NONE
            }
        };
        let is_meant = self.want == 2 || self.want > 2 && self.previous.len() == 1;
        let is_one_of_two = self.in_sync.len() == 2 && self.in_sync(store).is_some();
        is_meant && is_one_of_two && !self.is_sealed(of_own)
    }

    /// How many of some stores seal the record, if it names them as the previous ones.
    pub(super) fn sealing(&self, previous: usize) -> usize {
        if self.is_forced() {
            previous
        } else {
            seal_quorum(previous)
        }
    }

    /// Whether an eviction leaves enough stores in sync (EP3).
    pub fn may_evict(&self) -> bool {
        self.in_sync.len() > self.least_in_sync()
    }

    /// How many stores in sync an eviction leaves at least.
    pub fn least_in_sync(&self) -> usize {
        usize::from(self.min_in_sync.max(1))
    }

    /// Whether an operator forced it: one store is in sync, and by this record. No step leads to such a record.
    pub fn is_forced(&self) -> bool {
        let is_later = self.epoch.number != Epoch::FIRST.number;
        let since_now =
            |one: &InSync| one.since == self.epoch && self.previous.contains(&one.store);
        is_later && matches!(&*self.in_sync, [one] if since_now(one))
    }
}

/// How many of `stores` stores in sync prove that no later record is sealed.
pub const fn read_quorum(stores: usize) -> usize {
    stores / 2 + 1
}

/// How many of `stores` stores in sync must have synced the next record before the one after it is written.
pub const fn seal_quorum(stores: usize) -> usize {
    stores.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RE1.
    #[test]
    fn a_read_quorum_and_a_seal_quorum_have_a_store_in_common() {
        for stores in 1..=5 {
            assert!(read_quorum(stores) <= stores);
            assert_eq!(read_quorum(stores) + seal_quorum(stores), stores + 1);
        }
        assert_eq!([1, 2, 3, 4, 5].map(read_quorum), [1, 2, 2, 3, 3]);
        assert_eq!([1, 2, 3, 4, 5].map(seal_quorum), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn copies_spare_the_stores_that_answer_searches_and_share_the_others() {
        let store = |number| StoreId([number; 16]);
        let mut record = ShardRecord::first(0, &[1, 2, 3, 4].map(store), 7);
        for cold in [1, 3] {
            record.in_sync[cold].hot = false;
        }
        let order = |shard, is_there: fn(StoreId) -> bool| {
            let sources = record.copy_sources(ShardId(shard), is_there);
            sources.iter().map(|store| store.0[0]).collect::<Vec<u8>>()
        };
        assert_eq!(order(0, |_| true), [2, 4, 1, 3]);
        assert_eq!(order(1, |_| true), [4, 2, 3, 1]);
        assert_eq!(order(254, |_| true), [2, 4, 1, 3]);
        // Those that are left share the shards of one that is away.
        let without = |store: StoreId| store.0[0] != 2;
        assert_eq!(order(0, without), [4, 1, 3]);
        assert_eq!(order(1, without), [4, 3, 1]);
        assert_eq!(order(1, |_| false), [0; 0]);
    }

    /// PE22.
    #[test]
    fn a_store_that_came_beside_one_needs_that_one_until_the_next_record() {
        let [old, new, gone] = [1, 2, 3].map(|number| StoreId([number; 16]));
        let mut record = ShardRecord::first(0, &[old, new], 7);
        assert!(!record.needs_other(old) && !record.needs_other(new));
        record.epoch = record.epoch.next();
        record.previous = vec![old];
        assert!(!record.needs_other(old) && record.needs_other(new));
        // The third one of three is yet to come.
        assert!(record.clone().with_want(3).needs_other(new));
        // It is about to leave.
        assert!(!record.clone().with_want(1).needs_other(new));
        // One moved there, and its former place may be gone for good.
        record.previous = vec![old, gone, new];
        assert!(record.needs_other(old) && record.needs_other(new));
        assert!(!record.needs_other(gone));
        assert!(!record.clone().with_want(3).needs_other(new));
        record.previous = vec![old, new];
        assert!(!record.needs_other(old) && !record.needs_other(new));
    }

    #[test]
    fn a_new_generation_is_after_all_epochs_of_the_old_one() {
        let last = Epoch {
            generation: 0,
            number: u64::MAX,
        };
        let forced = Epoch {
            generation: 1,
            number: 0,
        };
        assert!(Epoch::NONE < Epoch::FIRST && Epoch::FIRST < last && last < forced);
        assert_eq!(forced.next().to_string(), "1.1");
    }

    #[test]
    fn stores_show_as_uuids() {
        let text = format!("{:?}", StoreId([7; 16]));
        assert_eq!(text, "StoreId(07070707-0707-0707-0707-070707070707)");
    }
}
