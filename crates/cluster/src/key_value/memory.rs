//! The store of one process: gone with its last handle.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::contract::{
    Changes, KeyValueError, KeyValueStore, LeaseId, Outcome, Revision, Snapshot, Transaction,
};
use super::state::State;

/// How often a process that waits looks for leases whose time is over.
const TICK: Duration = Duration::from_millis(50);

/// Keys in memory. Share it as an `Arc`.
#[derive(Debug, Default)]
pub struct MemoryKeyValues {
    state: Mutex<State>,
    revision: watch::Sender<Revision>,
}

impl MemoryKeyValues {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Works on the state of this moment, and tells who waits if it changed.
    fn with<T>(&self, work: impl FnOnce(&mut State, SystemTime) -> T) -> T {
        let mut state = self.state.lock();
        let now = SystemTime::now();
        state.expire(now);
        let result = work(&mut state, now);
        self.revision.send_if_modified(|revision| {
            let before = std::mem::replace(revision, state.revision());
            before != *revision
        });
        result
    }
}

#[async_trait]
impl KeyValueStore for MemoryKeyValues {
    async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
        Ok(self.with(|state, _| state.read(prefix)))
    }

    fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
        Box::new(MemoryChanges {
            store: self,
            prefix: prefix.to_owned(),
        })
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
        transaction.check()?;
        self.with(|state, _| state.commit(transaction))
    }

    async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
        Ok(self.with(|state, now| state.grant(time_to_live, now)))
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.with(|state, now| state.keep_alive(lease, now))
    }

    async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.with(|state, _| state.revoke(lease));
        Ok(())
    }
}

/// The changes of some of the keys.
#[derive(Debug)]
struct MemoryChanges<'a> {
    store: &'a MemoryKeyValues,
    prefix: String,
}

#[async_trait]
impl Changes for MemoryChanges<'_> {
    async fn next(&mut self, after: Revision) -> Result<Snapshot, KeyValueError> {
        let mut revision = self.store.revision.subscribe();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let snapshot = self.store.with(|state, _| state.read(&self.prefix));
            if snapshot.revision > after {
                return Ok(snapshot);
            }
            tokio::select! {
                _ = revision.wait_for(|revision| *revision > after) => {}
                _ = ticks.tick() => {}
            }
        }
    }
}
