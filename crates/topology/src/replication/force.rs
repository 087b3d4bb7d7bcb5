//! What only an operator may decide: that a shard goes on with one store, without those that are gone for good. Or that it
//! begins anew, as all that held it are.
//!
//! Steps wait for a seal, and evictions leave stores in sync. Where too many stores are gone for that, the record stays,
//! and writes wait. An operator knows more: that these stores do not run, and never will with what they hold. Then one
//! store in sync has all that was acknowledged, and a record of the next generation names it alone.
//!
//! # Invariants
//! - FO1: a forced record names one store, which was in sync by the record before.
//! - FO2: it is installed by that store, and sealed, once each other store that answered has it on disk.
//! - FO3: a store that did not answer has it, or a later one, before it takes or answers anything again.
//! - FO4: a shard begins anew with one store, which never had a record of it, once none in sync answers. It takes changes,
//!   and no other store comes to it. None is hot until an operator opens it: then it has what was acknowledged, as far as
//!   any other shard has that.

use super::record::{Epoch, InSync, ShardRecord, StoreId, seal_quorum};

/// Why a record is not forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForceError {
    /// Choose a store in sync: others may lack what was acknowledged.
    #[error("store {0} is not in sync")]
    NotInSync(StoreId),
    /// Start the store first: it does not answer either.
    #[error("store {0} does not answer")]
    Silent(StoreId),
    /// Go on with the store: it has what was acknowledged.
    #[error("store {0} is in sync, and answers")]
    Answers(StoreId),
}

impl ShardRecord {
    /// The forced record after this one, of `store` alone. `answers` tells the stores that answer now. All others never
    /// run again with what they hold, before they have installed this record or a later one: only an operator knows that.
    ///
    /// # Errors
    /// If the store is not in sync, or does not answer.
    pub fn forced(
        &self,
        store: StoreId,
        nonce: u64,
        answers: impl Fn(StoreId) -> bool,
    ) -> Result<Self, ForceError> {
        self.in_sync(store).ok_or(ForceError::NotInSync(store))?;
        if !answers(store) {
            return Err(ForceError::Silent(store));
        }
        let epoch = Epoch {
            generation: self.epoch.generation + 1,
            number: self.epoch.number + 1,
        };
        let mut previous: Vec<StoreId> = self.write_set().chain(self.previous.clone()).collect();
        previous.retain(|&named| answers(named));
        previous.sort_unstable();
        previous.dedup();
        let in_sync = vec![InSync {
            store,
            since: epoch,
            hot: !self.is_rebuilt(),
        }];
        Ok(Self {
            epoch,
            nonce,
            in_sync,
            learners: Vec::new(),
            previous,
            ..self.clone()
        })
    }

    /// The record by which the shard begins anew, in `store` alone, with nothing in it. `answers` tells the stores that
    /// answer now. Those in sync never run again: only an operator knows that.
    ///
    /// # Errors
    /// If a store in sync answers, or `store` does not.
    pub fn rebuilt(
        &self,
        store: StoreId,
        nonce: u64,
        answers: impl Fn(StoreId) -> bool,
    ) -> Result<Self, ForceError> {
        let mut in_sync = self.in_sync.iter().map(|entry| entry.store);
        if let Some(answering) = in_sync.find(|&store| answers(store)) {
            return Err(ForceError::Answers(answering));
        }
        if !answers(store) {
            return Err(ForceError::Silent(store));
        }
        let mut first = Self::first(self.epoch.generation + 1, &[store], nonce);
        first.in_sync[0].hot = false;
        Ok(Self {
            hot: 0,
            want: self.want,
            min_in_sync: self.min_in_sync,
            // What comes late is older than what fills the shard. Nothing of that was compared here.
            floor: self.floor,
            ..first
        })
    }

    /// Whether the shard began anew, and is yet to be filled: it takes changes, and answers no search (FO4).
    #[must_use]
    pub const fn is_rebuilt(&self) -> bool {
        self.hot == 0
    }

    /// Whether the shard cannot go on by itself while some stores do not answer. `reports` tells the epoch that a store
    /// has on disk, if it answers.
    pub fn is_stuck(&self, reports: impl Fn(StoreId) -> Option<Epoch>) -> bool {
        let live = |stores: &mut dyn Iterator<Item = StoreId>| {
            stores.filter(|&store| reports(store).is_some()).count()
        };
        let live_before = live(&mut self.previous.iter().copied());
        if self.is_forced() {
            let waits = reports(self.in_sync[0].store).is_some_and(|epoch| epoch < self.epoch);
            return waits && live_before < self.previous.len();
        }
        let in_sync = self.in_sync.len();
        let live_in_sync = live(&mut self.in_sync.iter().map(|entry| entry.store));
        let live_learners = live(&mut self.learners.iter().map(|entry| entry.store));
        let waits = live_in_sync + live_learners < self.write_set().count();
        let is_unsealed = live_before < seal_quorum(self.previous.len());
        // The stores that an eviction leaves, and those that seal it.
        let may_leave =
            in_sync + live_learners > self.least_in_sync() && live_in_sync >= seal_quorum(in_sync);
        waits && (is_unsealed || live_in_sync < in_sync && !may_leave)
    }
}
