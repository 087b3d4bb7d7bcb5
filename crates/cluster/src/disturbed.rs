//! A store for tests, in which something happens just before a commit, or some keys are not told of.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::key_value::{
    Changes, KeyValueError, KeyValueStore, LeaseId, MemoryKeyValues, Outcome, Revision, Snapshot,
    Transaction,
};

/// What happens before a commit.
#[derive(Debug)]
pub(crate) enum Before {
    Nothing,
    /// The store fails instead.
    Failure,
    /// Another process changes keys.
    Change(Transaction),
}

#[derive(Debug)]
pub(crate) struct Disturbed {
    pub(crate) keys: MemoryKeyValues,
    /// What happens before each of the next commits.
    before: Mutex<VecDeque<Before>>,
    /// What became of the commits.
    outcomes: Mutex<Vec<Outcome>>,
    /// No change of the keys with this prefix is told.
    untold: Option<&'static str>,
}

impl Disturbed {
    pub(crate) fn commits(keys: MemoryKeyValues, before: impl IntoIterator<Item = Before>) -> Self {
        Self {
            keys,
            before: Mutex::new(before.into_iter().collect()),
            outcomes: Mutex::default(),
            untold: None,
        }
    }

    pub(crate) fn untold(keys: MemoryKeyValues, prefix: &'static str) -> Self {
        Self {
            untold: Some(prefix),
            ..Self::commits(keys, [])
        }
    }

    /// How many commits there were, and how many conflicts among them.
    pub(crate) fn committed(&self) -> (usize, usize) {
        let outcomes = self.outcomes.lock();
        let conflicts = outcomes.iter().filter(|one| **one == Outcome::Conflict);
        (outcomes.len(), conflicts.count())
    }
}

/// Waits that do not end.
#[derive(Debug)]
struct NoChanges;

#[async_trait]
impl Changes for NoChanges {
    async fn next(&mut self, _after: Revision) -> Result<Snapshot, KeyValueError> {
        pending().await
    }
}

#[async_trait]
impl KeyValueStore for Disturbed {
    async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
        self.keys.read(prefix).await
    }

    fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
        if self.untold == Some(prefix) {
            Box::new(NoChanges)
        } else {
            self.keys.changes(prefix)
        }
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
        let before = self.before.lock().pop_front();
        match before {
            None | Some(Before::Nothing) => {}
            Some(Before::Failure) => return Err(KeyValueError::NoLease),
            Some(Before::Change(change)) => {
                let changed = self.keys.commit(&change).await?;
                assert!(matches!(changed, Outcome::Committed(_)));
            }
        }
        let outcome = self.keys.commit(transaction).await?;
        self.outcomes.lock().push(outcome);
        Ok(outcome)
    }

    async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
        self.keys.grant(time_to_live).await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.keys.keep_alive(lease).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.keys.revoke(lease).await
    }
}
