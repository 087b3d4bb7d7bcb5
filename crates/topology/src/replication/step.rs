//! What the record of a shard may become: one step an epoch, once the step before is sealed.
//!
//! The metadata store replaces a record only if it is still the one that the step was taken from.
//!
//! # Invariants
//! - EP1: a step takes at most one store from one role to another.
//! - EP2: no step is taken from a record that is not sealed.
//! - EP3: an eviction leaves a store in sync, and at least `min_in_sync`.
//! - EP4: a store is promoted only by its word that it has copied everything since it was added, this time.
//!
//! Floors have invariants of their own: see `floor`.

use super::record::{Epoch, InSync, Learner, ShardRecord, StoreId};
use crate::Version;

/// One change of who holds a shard, or of its floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No store comes or leaves. The wishes may change, and cold stores get hot where [`heat`](super::heat) demands it.
    Adjust,
    /// Nothing but the epoch changes: each of two stores in sync can seal the record alone from then on.
    Confirm,
    /// A store in sync leaves.
    Evict(StoreId),
    /// A store becomes a learner. Add only a store that answers, since writes wait for it.
    AddLearner(StoreId),
    /// A learner leaves.
    DropLearner(StoreId),
    /// A learner gets in sync.
    Promote {
        /// The learner.
        store: StoreId,
        /// The learner's word: for which addition it has copied the shard and synced that it did.
        copied: Epoch,
    },
    /// A cold store in sync gets hot, in the place of one that gets cold later.
    Warm(StoreId),
    /// A hot store in sync gets cold, as more are hot than wished.
    Cool(StoreId),
    /// No change at this version or a lower one is taken any more, and no repair for now.
    Freeze(Version),
    /// Repairs below the floor are taken again.
    Thaw,
    /// Tombstones up to a version may be dropped.
    Settle {
        /// The version: the floor, or a lower one.
        until: Version,
        /// The epoch at which all stores in sync were compared up to there, and agreed (FL3).
        compared: Epoch,
    },
}

/// Why a step is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// Wait for reports, or take part in them: a step before this one is not sealed.
    #[error("too few stores have reported epoch {0}")]
    NotSealed(Epoch),
    /// Add a store first.
    #[error("an eviction must leave {min} stores in sync, there are {in_sync}")]
    TooFewLeft {
        /// How many must stay.
        min: usize,
        /// How many there are.
        in_sync: usize,
    },
    /// Read the record again: it does not hold the store in the role that the step takes it from.
    #[error("store {0} has another role in the record")]
    OtherRole(StoreId),
    /// Ask the learner again: it speaks of an earlier addition.
    #[error("store {0} has not copied the shard since it was added")]
    NotCopied(StoreId),
    /// Freeze at a higher version.
    #[error("the floor is at version {0} already")]
    TooLow(Version),
    /// Freeze it first.
    #[error("repairs are taken below the floor")]
    NotFrozen,
    /// Freeze at that version first: changes are taken above the floor.
    #[error("the floor is at version {0} only")]
    AboveFloor(Version),
    /// Compare the stores again: the record has changed since.
    #[error("the stores were not compared at epoch {0}")]
    NotCompared(Epoch),
    /// Wait until the learner is in sync, or gone.
    #[error("store {0} is a learner")]
    HasLearner(StoreId),
}

impl ShardRecord {
    /// The record after a step. Its wishes are those of this one; the caller may change them. `nonce` is random, and
    /// `synced` tells the epoch that a store has reported, and `is_lost` whether it answers no searches.
    pub fn after(
        &self,
        step: Step,
        nonce: u64,
        synced: impl Fn(StoreId) -> Epoch,
        is_lost: impl Fn(StoreId) -> bool,
    ) -> Result<Self, StepError> {
        if !self.is_sealed(synced) {
            return Err(StepError::NotSealed(self.epoch));
        }
        let mut next = self.clone();
        next.epoch = self.epoch.next();
        next.nonce = nonce;
        next.previous = self.in_sync.iter().map(|entry| entry.store).collect();
        match step {
            Step::Adjust | Step::Confirm => {}
            Step::Evict(store) => next.evict(store)?,
            Step::AddLearner(store) => next.add_learner(store)?,
            Step::DropLearner(store) => {
                next.remove_learner(store)?;
            }
            Step::Promote { store, copied } => next.promote(store, copied)?,
            Step::Warm(store) => next.warm(store)?,
            Step::Cool(store) => next.cool(store)?,
            Step::Freeze(floor) => next.freeze(floor)?,
            Step::Thaw => next.thaw()?,
            Step::Settle { until, compared } => next.settle(until, compared, self.epoch)?,
        }
        next.heat(is_lost);
        Ok(next)
    }

    fn evict(&mut self, store: StoreId) -> Result<(), StepError> {
        self.in_sync(store).ok_or(StepError::OtherRole(store))?;
        if !self.may_evict() {
            let (min, in_sync) = (self.least_in_sync(), self.in_sync.len());
            return Err(StepError::TooFewLeft { min, in_sync });
        }
        self.in_sync.retain(|entry| entry.store != store);
        Ok(())
    }

    fn add_learner(&mut self, store: StoreId) -> Result<(), StepError> {
        if self.names(store) {
            return Err(StepError::OtherRole(store));
        }
        let added = self.epoch;
        self.learners.push(Learner { store, added });
        Ok(())
    }

    fn remove_learner(&mut self, store: StoreId) -> Result<Learner, StepError> {
        let mut entries = self.learners.iter();
        let place = entries.position(|entry| entry.store == store);
        let place = place.ok_or(StepError::OtherRole(store))?;
        Ok(self.learners.remove(place))
    }

    fn promote(&mut self, store: StoreId, copied: Epoch) -> Result<(), StepError> {
        if self.remove_learner(store)?.added != copied {
            return Err(StepError::NotCopied(store));
        }
        self.in_sync.push(InSync {
            store,
            since: self.epoch,
            hot: false,
        });
        Ok(())
    }
}
