//! The state that the writers of a store share with the thread that flushes and compacts.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::on_its_way::OnItsWay;
use crate::shortage::Shortage;

/// After a step failed for want of space or the like, this time passes before the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// The state of the maintenance of a store.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    state: Mutex<State>,
    changed: Condvar,
    /// Single writes and syncs: a flush as a whole may take long.
    writes: OnItsWay,
    merges: Mutex<Merges>,
}

/// The merges of segments since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merges {
    /// How many there were.
    pub merges: u64,
    /// Bytes of the segments that were merged.
    pub bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    /// All records up to this one are applied to memtables.
    applied: u64,
    /// The sequence after the last record that the frozen memtables hold, while there are any.
    frozen: Option<u64>,
    /// They could not be written the last time.
    has_failed: bool,
    /// Memtables have reached their limit.
    is_full: bool,
    /// They have reached twice their limit.
    is_over: bool,
    /// A corpus was dropped, whose segments can go.
    has_dropped: bool,
    /// The shortage at the last write of maintenance, if there was one.
    shortage: Option<Shortage>,
    is_stopping: bool,
    /// How many wait for the right to change segments, or have it.
    wanted: usize,
}

impl State {
    const fn needs_flush(&self) -> bool {
        self.is_full || self.has_failed
    }

    const fn holds_changes_up(&self) -> bool {
        self.is_over && self.shortage.is_none() && !self.is_stopping
    }
}

impl Maintenance {
    pub(super) fn applied(&self) -> u64 {
        self.state.lock().applied
    }

    pub(super) fn frozen_before(&self) -> Option<u64> {
        self.state.lock().frozen
    }

    pub(super) fn froze(&self, first_sequence: u64) {
        let mut state = self.state.lock();
        state.frozen = Some(first_sequence);
        (state.is_full, state.is_over) = (false, false);
        self.changed.notify_all();
    }

    /// Counts a merge of segments with this many bytes.
    pub(super) fn merged(&self, bytes: u64) {
        let mut merges = self.merges.lock();
        merges.merges += 1;
        merges.bytes += bytes;
    }

    pub(super) fn merges(&self) -> Merges {
        *self.merges.lock()
    }

    pub(super) fn thawed(&self) {
        let mut state = self.state.lock();
        (state.frozen, state.has_failed) = (None, false);
    }

    /// Notes that the frozen memtables could not be written.
    pub(super) fn still_frozen(&self) {
        self.state.lock().has_failed = true;
    }

    /// Notes that a corpus was dropped.
    pub(super) fn note_dropped(&self) {
        self.state.lock().has_dropped = true;
        self.changed.notify_all();
    }

    /// Notes that a step begins, which looks after all that is to be done now.
    pub(super) fn begin_step(&self) {
        self.state.lock().has_dropped = false;
    }

    /// Has memtables written soon.
    pub(super) fn ask_for_flush(&self) {
        self.state.lock().is_full = true;
        self.changed.notify_all();
    }

    /// Whether memtables are to be written.
    pub(super) fn needs_flush(&self) -> bool {
        self.state.lock().needs_flush()
    }

    /// Notes that the right to change segments is wanted now.
    pub(super) fn want(&self) {
        self.state.lock().wanted += 1;
    }

    /// Notes that it is not wanted any more: what was interrupted may go on.
    pub(super) fn end_want(&self) {
        let mut state = self.state.lock();
        state.wanted -= 1;
        state.has_dropped = true;
        self.changed.notify_all();
    }

    /// Whether the right to change segments is wanted now.
    pub(super) fn is_wanted(&self) -> bool {
        self.state.lock().wanted > 0
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Notes that something was written for which there may not have been enough before.
    pub(super) fn note_enough(&self) {
        self.state.lock().shortage = None;
    }

    /// Notes that all records up to `sequence` are applied, and how full memtables are: how many times their
    /// limit they have reached.
    pub(crate) fn note_applied(&self, sequence: u64, fullness: usize) {
        let mut state = self.state.lock();
        state.applied = sequence;
        state.is_full |= fullness >= 1;
        state.is_over |= fullness >= 2;
        self.changed.notify_all();
    }

    /// Waits while memtables have twice their limit, as long as there is hope that they are written.
    pub(crate) fn wait_for_room(&self) {
        let wait = |state: &mut State| state.holds_changes_up();
        self.changed.wait_while(&mut self.state.lock(), wait);
    }

    /// Does a write or a sync, which the disk may not answer.
    pub(super) fn write<R>(&self, write: impl FnOnce() -> R) -> R {
        self.writes.begin(write)
    }

    /// The number of the write that the disk has not answered, if changes wait for memtables to be written.
    pub(super) fn awaited_write(&self) -> Option<u64> {
        let holds_changes_up = self.state.lock().holds_changes_up();
        self.writes.number().filter(|_| holds_changes_up)
    }

    /// The shortage at the last write of maintenance, if there was one.
    pub(super) fn shortage(&self) -> Option<Shortage> {
        self.state.lock().shortage
    }

    /// Why changes that take space must be refused, if they must: memory is full and cannot be written.
    pub(super) fn stuck(&self) -> Option<Shortage> {
        let state = self.state.lock();
        state.shortage.filter(|_| state.is_full)
    }

    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_all();
    }

    /// Waits for work, at most this long if a time is given; says whether to go on.
    pub(super) fn wait(&self, most: Option<Duration>) -> bool {
        let is_idle =
            |state: &mut State| !state.needs_flush() && !state.has_dropped && !state.is_stopping;
        let mut state = self.state.lock();
        match most {
            None => self.changed.wait_while(&mut state, is_idle),
            Some(most) => {
                self.changed.wait_while_for(&mut state, is_idle, most);
            }
        }
        !state.is_stopping
    }

    /// Waits a while for more of what there is too little of; says whether to try again.
    pub(super) fn wait_out(&self, shortage: Shortage) -> bool {
        self.note_shortage(shortage);
        self.rest(PAUSE)
    }

    /// Notes that there is too little for something that has to be written.
    pub(super) fn note_shortage(&self, shortage: Shortage) {
        self.state.lock().shortage = Some(shortage);
        self.changed.notify_all();
    }

    /// Waits this long; says whether to go on.
    pub(super) fn rest(&self, pause: Duration) -> bool {
        let is_resting = |state: &mut State| !state.is_stopping;
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, is_resting, pause);
        !state.is_stopping
    }
}
