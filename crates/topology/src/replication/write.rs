//! Writes: which of two states of an element stays, and when a router may acknowledge a change.
//!
//! # Invariants
//! - QW1: a change is acknowledged only if all stores that one record names applied it at the epoch of this record.
//! - QW2: a change gets no new version once its caller was told that it failed.

use super::record::{Epoch, ShardRecord, StoreId};
use crate::Version;

/// The state of an element after an operation. The greatest state is the newest: by version, and of equal versions,
/// which only operations that ran at once can have, a remove is the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The version of the operation.
    pub version: Version,
    /// Whether it was an insert.
    pub live: bool,
}

impl State {
    /// Of an element that was never written.
    pub const NEVER: Self = Self {
        version: Version::NONE,
        live: false,
    };
}

impl Ord for State {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.version, !self.live).cmp(&(other.version, !other.live))
    }
}

impl PartialOrd for State {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Where a change comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// It is an operation, or a late message of one.
    ByRouter,
    /// A scrub carries what one store has to others.
    ToRepair,
}

/// What a store answers to a change, once it is synced and applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The element has the state that the change gives.
    Done,
    /// A newer state stays. It has this version.
    Newer(Version),
}

/// Applies a change to the state of an element, in the order of the log. A newer state outdoes the change even if both
/// mean the same. Only some stores may have it, and a store that copies the shard may lose to an older state without
/// it.
pub fn decide(state: &mut State, written: State) -> Outcome {
    if written < *state {
        return Outcome::Newer(state.version);
    }
    *state = written;
    Outcome::Done
}

/// A change of an element in one shard, as its router follows it.
#[derive(Clone, Debug)]
pub struct Write {
    state: State,
    pub(super) done: Vec<(Epoch, StoreId)>,
    pub(super) newer: Version,
    pub(super) told: bool,
}

impl Write {
    /// A change that gives an element this state.
    pub fn new(state: State) -> Self {
        Self {
            state,
            done: Vec::new(),
            newer: Version::NONE,
            told: false,
        }
    }

    /// The state to send, to all stores of the newest record that the router knows.
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes a store's answer to `state`, which it accepted at `epoch`.
    pub fn answered(&mut self, store: StoreId, epoch: Epoch, state: State, outcome: Outcome) {
        if state != self.state {
            return;
        }
        match outcome {
            Outcome::Newer(version) => self.newer = self.newer.max(version),
            Outcome::Done => {
                if !self.done.contains(&(epoch, store)) {
                    self.done.push((epoch, store));
                }
            }
        }
    }

    /// Whether all stores that this record names have answered at its epoch that the change is done.
    pub fn may_acknowledge(&self, record: &ShardRecord) -> bool {
        let mut stores = record.write_set();
        !self.told && stores.all(|store| self.done.contains(&(record.epoch, store)))
    }

    /// The version that a new one must be above, if a store answered that it has a newer state and a new version may be
    /// given still.
    pub fn outdone_by(&self) -> Option<Version> {
        (!self.told && self.newer >= self.state.version).then_some(self.newer)
    }

    /// Gives the change a new version. It must be sent to every store anew.
    pub fn restamp(&mut self, version: Version) {
        debug_assert!(
            self.outdone_by().is_some_and(|newer| version > newer),
            "QW2"
        );
        self.state.version = version;
        self.done.clear();
    }

    /// Takes note that the caller was told that the change failed, or is gone.
    pub fn tell_failure(&mut self) {
        self.told = true;
    }
}
