//! Which stores in sync are hot: they hold tables and answer searches. Safety does not depend on it.
//!
//! # Invariants
//! - EP5: after a step, at least as many stores in sync are hot as wished, or all of them. One of them is not lost, if any
//!   store in sync is not. None is hot where none is wished (FO4).
//! - EP6: a hot store gets cold only while as many others are hot as wished. One gets hot in the place of another only
//!   while no more are hot than wished.

use super::record::{ShardRecord, StoreId};
use super::step::{Step, StepError};

/// What a process knows of the stores that hold a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// It answers searches, or will soon if it is hot.
    Well,
    /// It may come back to that.
    Unsure,
    /// It does not: it is dead, say.
    Lost,
}

impl ShardRecord {
    /// The same record, in which only the first `hot` stores are hot, and as many are wished hot; at least one.
    #[must_use]
    pub fn with_hot(mut self, hot: u8) -> Self {
        self.hot = hot.clamp(1, self.want.max(1));
        for (place, entry) in self.in_sync.iter_mut().enumerate() {
            entry.hot = place < usize::from(self.hot);
        }
        self
    }

    /// Whether a store is to hold tables: a hot one in sync, or a learner that will be hot once it is in sync.
    pub fn is_hot(&self, store: StoreId) -> bool {
        match self.in_sync(store) {
            _ if self.is_rebuilt() => false,
            Some(entry) => entry.hot,
            None => self.learner(store).is_some() && self.hot_in_sync() < usize::from(self.hot),
        }
    }

    /// Whether fewer stores in sync are hot than wished, and some are cold.
    pub(super) fn is_too_cold(&self) -> bool {
        self.hot_in_sync() < usize::from(self.hot).min(self.in_sync.len())
    }

    /// The step that a store takes only so that as many stores are hot as should be, if there is one. Lost ones that
    /// cannot be evicted keep their place, so another one is hot beside them. Once all are well again, `to_cool` gets cold.
    /// None is named where more are hot only since the caller looked: the one that got hot may have no tables yet.
    pub fn heating(
        &self,
        own: StoreId,
        searched: impl Fn(StoreId) -> Searched,
        to_cool: Option<StoreId>,
    ) -> Option<Step> {
        let mut heated = self.clone();
        heated.heat(|store| searched(store) == Searched::Lost);
        if heated.in_sync != self.in_sync {
            return Some(Step::Adjust);
        }
        let hot = || self.in_sync.iter().filter(|entry| entry.hot);
        let is_first = hot().next().is_some_and(|first| first.store == own);
        let are_well = hot().all(|entry| searched(entry.store) == Searched::Well);
        let is_due = is_first && are_well && self.has_spare_hot();
        to_cool.filter(|_| is_due).map(Step::Cool)
    }

    /// How many stores in sync are hot.
    fn hot_in_sync(&self) -> usize {
        self.in_sync.iter().filter(|entry| entry.hot).count()
    }

    /// Whether more stores are hot than wished.
    #[must_use]
    pub fn has_spare_hot(&self) -> bool {
        self.hot_in_sync() > usize::from(self.hot.max(1))
    }

    /// Makes cold stores in sync hot, until there are as many hot ones as wished, and one that is not lost. Those that are
    /// lost come last.
    pub(super) fn heat(&mut self, is_lost: impl Fn(StoreId) -> bool) {
        while !self.is_rebuilt() {
            let is_enough = !self.is_too_cold();
            let mut hot = self.in_sync.iter().filter(|entry| entry.hot);
            let is_searched = hot.any(|entry| !is_lost(entry.store));
            let mut cold = self.in_sync.iter_mut().filter(|entry| !entry.hot);
            let next = match cold.find(|entry| !is_lost(entry.store)) {
                Some(well) if !is_enough || !is_searched => Some(well),
                None if !is_enough => self.in_sync.iter_mut().find(|entry| !entry.hot),
                Some(_) | None => None,
            };
            let Some(next) = next else { return };
            next.hot = true;
        }
    }

    /// Makes a cold store in sync hot beside as many as are wished.
    pub(super) fn warm(&mut self, store: StoreId) -> Result<(), StepError> {
        let has_room = !self.is_rebuilt() && !self.has_spare_hot();
        let mut in_sync = self.in_sync.iter_mut();
        let entry = in_sync.find(|entry| entry.store == store && !entry.hot && has_room);
        entry.ok_or(StepError::OtherRole(store))?.hot = true;
        Ok(())
    }

    /// Makes a hot store in sync cold.
    pub(super) fn cool(&mut self, store: StoreId) -> Result<(), StepError> {
        let has_spare = self.has_spare_hot();
        let mut in_sync = self.in_sync.iter_mut();
        let entry = in_sync.find(|entry| entry.store == store && entry.hot && has_spare);
        entry.ok_or(StepError::OtherRole(store))?.hot = false;
        Ok(())
    }
}
