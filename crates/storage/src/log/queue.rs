//! The queue of records to write: bounded in bytes, emptied in batches.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// Why nothing can be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Too many bytes wait already.
    Full,
    /// The receiver has gone.
    Ended,
}

/// A queue of entries, each of which counts some bytes.
#[derive(Debug)]
pub(super) struct Queue<E> {
    state: Mutex<State<E>>,
    changed: Condvar,
    limit: usize,
}

#[derive(Debug)]
struct State<E> {
    entries: VecDeque<(E, usize)>,
    bytes: usize,
    is_ended: bool,
}

impl<E> Queue<E> {
    /// A queue of at most `limit` bytes; an entry alone may have more.
    pub(super) fn new(limit: usize) -> Self {
        let state = State {
            entries: VecDeque::new(),
            bytes: 0,
            is_ended: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            limit,
        }
    }

    /// Adds an entry, or gives it back.
    pub(super) fn push(&self, entry: E, bytes: usize) -> Result<(), (E, Refusal)> {
        let mut state = self.state.lock();
        if state.is_ended {
            return Err((entry, Refusal::Ended));
        }
        if !state.entries.is_empty() && state.bytes + bytes > self.limit {
            return Err((entry, Refusal::Full));
        }
        state.entries.push_back((entry, bytes));
        state.bytes += bytes;
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for entries, and takes the oldest: as many as have `bytes` together, and one at least.
    /// None means that the queue has ended and is empty.
    pub(super) fn take(&self, bytes: usize) -> Option<Vec<E>> {
        let mut state = self.state.lock();
        let is_idle = |state: &mut State<E>| state.entries.is_empty() && !state.is_ended;
        self.changed.wait_while(&mut state, is_idle);
        let mut taken = Vec::new();
        let mut taken_bytes = 0;
        while let Some((entry, entry_bytes)) = state.entries.pop_front() {
            if !taken.is_empty() && taken_bytes + entry_bytes > bytes {
                state.entries.push_front((entry, entry_bytes));
                break;
            }
            taken_bytes += entry_bytes;
            taken.push(entry);
        }
        state.bytes -= taken_bytes;
        (!taken.is_empty()).then_some(taken)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().entries.is_empty()
    }

    /// Lets nothing in any more; what waits can still be taken.
    pub(super) fn end(&self) {
        self.state.lock().is_ended = true;
        self.changed.notify_all();
    }

    /// Ends the queue and empties it.
    pub(super) fn drain(&self) -> Vec<E> {
        let mut state = self.state.lock();
        state.is_ended = true;
        state.bytes = 0;
        let entries = std::mem::take(&mut state.entries);
        entries.into_iter().map(|(entry, _)| entry).collect()
    }
}
