//! The threads of the engine: for each class of work a queue and threads of its own.
//!
//! The classes share the cores through the scheduler of the system, which divides them among all threads that have work,
//! a few milliseconds at a time. So no class needs to split its work for the others, and none starves.
//!
//! # Invariants
//! - N4: no class of work waits for another to be done: small searches, large ones, and changes.
//! - N5: few large searches are at work at once, and the others wait in order. One that waits holds only its request,
//!   and leaves the queue when it is cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The classes of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Done in milliseconds.
    Small,
    /// Searches that may take longer, and pages of documents.
    Large,
    /// Changes of documents.
    Change,
}

/// The threads of one node.
#[derive(Debug)]
pub(crate) struct Threads {
    small: ThreadPool,
    large: ThreadPool,
    changes: ThreadPool,
    /// A permit for each piece of large work that is begun.
    turns: Arc<Semaphore>,
    /// How often there was work.
    given: AtomicU64,
}

impl Threads {
    /// Starts `number` threads for each class.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub(crate) fn start(number: usize) -> Result<Self, ThreadPoolBuildError> {
        Ok(Self {
            small: pool("small", number)?,
            large: pool("large", number)?,
            changes: pool("changes", number)?,
            // One more than threads: they have work while the next piece is fetched.
            turns: Arc::new(Semaphore::new(number + 1)),
            given: AtomicU64::new(0),
        })
    }

    /// How many threads each class has.
    pub(crate) fn number(&self) -> usize {
        self.small.current_num_threads()
    }

    /// How often there was work: searches, batches of changes, and pages of documents or pairs.
    pub(crate) fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// Takes note of work for a request.
    pub(super) fn note_work(&self) {
        self.given.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs work on the threads for changes, and waits for it.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.changes.install(work)
    }

    /// Runs work after all that its class was given before.
    pub(super) fn spawn(&self, class: Class, work: impl FnOnce() + Send + 'static) {
        match class {
            Class::Small => self.small.spawn(work),
            Class::Large => self.large.spawn(work),
            Class::Change => self.changes.spawn(work),
        }
    }

    /// Waits until work of a class may begin. Other large work may once the permit is dropped.
    pub(super) async fn turn(&self, class: Class) -> Option<OwnedSemaphorePermit> {
        match class {
            Class::Large => Arc::clone(&self.turns).acquire_owned().await.ok(),
            Class::Small | Class::Change => None,
        }
    }
}

/// Threads of one class. A panic on one of them ends the process: better than to go on with tables that are half
/// changed.
fn pool(class: &'static str, number: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    ThreadPoolBuilder::new()
        .num_threads(number)
        .thread_name(move |number| format!("{class}-{number}"))
        .build()
}

#[cfg(test)]
impl Threads {
    /// Has all threads of a class do nothing until what is returned is dropped.
    pub(crate) fn hold_up(&self, class: Class) -> Vec<std::sync::mpsc::Sender<()>> {
        let pool = match class {
            Class::Small => &self.small,
            Class::Large => &self.large,
            Class::Change => &self.changes,
        };
        let hold_up = |_| {
            let (held, until_dropped) = std::sync::mpsc::channel();
            pool.spawn(move || {
                let _ = until_dropped.recv();
            });
            held
        };
        (0..pool.current_num_threads()).map(hold_up).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// N5.
    #[tokio::test]
    async fn few_large_searches_have_their_turn_at_once() {
        let threads = Threads::start(2).unwrap();
        let mut turns = Vec::new();
        for _ in 0..3 {
            turns.push(threads.turn(Class::Large).now_or_never().unwrap());
        }
        let mut waiting = Box::pin(threads.turn(Class::Large));
        let mut next = Box::pin(threads.turn(Class::Large));
        assert!((&mut waiting).now_or_never().is_none());
        assert!((&mut next).now_or_never().is_none());
        for class in [Class::Small, Class::Change] {
            assert!(threads.turn(class).now_or_never().is_some());
        }
        // A cancelled waiter loses its place in the queue.
        drop(waiting);
        turns.pop();
        assert!(next.now_or_never().is_some());
    }
}
