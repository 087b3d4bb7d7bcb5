//! The thread that flushes and compacts, and what it shares with those who change things.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Disk, Store};
use crate::error::MaintenanceError;
use crate::writer::Failure;

/// After a step failed for want of space, so long passes before the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// With more segments than this in a shard, merging comes before the next flush.
const ENOUGH_SEGMENTS: usize = 16;

/// What the maintenance of a store knows and waits for.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// All records up to this one are applied to memtables.
    applied: u64,
    /// The sequence after the last record that the frozen memtables hold, while there are any.
    frozen: Option<u64>,
    /// Memtables have reached their limit.
    is_full: bool,
    /// They have reached twice their limit.
    is_over: bool,
    /// The last step failed for want of space.
    is_disk_full: bool,
    is_stopping: bool,
}

impl Maintenance {
    pub(super) fn applied(&self) -> u64 {
        self.state().applied
    }

    pub(super) fn frozen_before(&self) -> Option<u64> {
        self.state().frozen
    }

    pub(super) fn froze(&self, first_sequence: u64) {
        let mut state = self.state();
        state.frozen = Some(first_sequence);
        (state.is_full, state.is_over) = (false, false);
        self.changed.notify_all();
    }

    pub(super) fn thawed(&self) {
        let mut state = self.state();
        state.frozen = None;
        state.is_disk_full = false;
        self.changed.notify_all();
    }

    /// Notes that all records up to `sequence` are applied, and how full memtables are: how many times their
    /// limit they have reached.
    pub(crate) fn note_applied(&self, sequence: u64, fullness: usize) {
        let mut state = self.state();
        state.applied = sequence;
        state.is_full |= fullness >= 1;
        state.is_over |= fullness >= 2;
        self.changed.notify_all();
    }

    /// Waits while memtables have twice their limit, as long as there is hope that they are written.
    pub(crate) fn wait_for_room(&self) {
        let wait = |state: &mut State| state.is_over && !state.is_disk_full && !state.is_stopping;
        let waited = self.changed.wait_while(self.state(), wait);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether changes that take space must be refused, as memory is full and cannot be written.
    pub(crate) fn is_stuck(&self) -> bool {
        let state = self.state();
        state.is_disk_full && state.is_full
    }

    pub(crate) fn stop(&self) {
        self.state().is_stopping = true;
        self.changed.notify_all();
    }

    /// Waits for work, at most for a while if the last attempt failed; says whether to go on.
    fn wait(&self, pause: Option<Duration>) -> bool {
        if let Some(pause) = pause {
            return self.rest(pause);
        }
        let is_idle = |state: &mut State| !state.is_full && !state.is_stopping;
        let waited = self.changed.wait_while(self.state(), is_idle);
        !waited.unwrap_or_else(PoisonError::into_inner).is_stopping
    }

    /// Waits a while for space on the disk; says whether to try again.
    pub(super) fn wait_for_space(&self) -> bool {
        self.note_disk_full();
        self.wait(Some(PAUSE))
    }

    /// Waits so long; says whether to go on.
    pub(super) fn rest(&self, pause: Duration) -> bool {
        let is_resting = |state: &mut State| !state.is_stopping;
        let waited = self
            .changed
            .wait_timeout_while(self.state(), pause, is_resting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_stopping
    }

    fn note_disk_full(&self) {
        self.state().is_disk_full = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// Flushes and compacts when there is need, until it is told to stop, or fails for good. `trim` lets go of
    /// the log before a sequence.
    pub(crate) fn maintain(
        &self,
        trim: impl Fn(u64) -> Result<(), MaintenanceError>,
    ) -> Result<(), Failure> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let mut pause = None;
        while self.maintenance.wait(pause) {
            let done = self.maintain_once(disk, &trim);
            pause = match done {
                Ok(()) => None,
                Err(error) if error.is_disk_full() => {
                    tracing::warn!(%error, "no space for segments, trying again");
                    self.maintenance.note_disk_full();
                    Some(PAUSE)
                }
                Err(error) => return Err(Failure::new(&error)),
            };
        }
        Ok(())
    }

    fn maintain_once(
        &self,
        disk: &Disk,
        trim: &impl Fn(u64) -> Result<(), MaintenanceError>,
    ) -> Result<(), MaintenanceError> {
        let first_sequence = self.flush(disk)?;
        trim(first_sequence)?;
        while let Some(segments) = self.compact_one(disk)? {
            // Writers wait rather than make segments faster than they are merged.
            if self.fullness() > 0 && segments <= ENOUGH_SEGMENTS {
                break;
            }
        }
        Ok(())
    }
}
