//! Threads whose panic ends the process. A panic can leave data half changed, which no other thread may read. Nor may
//! another thread wait for one that panicked. A new process recovers all that was acknowledged.
//!
//! # Invariants
//! - TH1: a panic on a thread of the storage, or while an [`AbortOnPanic`] is held, ends the process at once.

use std::io;
use std::panic::resume_unwind;
use std::process::abort;
use std::thread::{self, JoinHandle};

/// Ends the process if it is dropped by a panic. One that is taken after a lock ends it before others get the lock.
#[derive(Debug)]
pub struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            abort();
        }
    }
}

/// A thread of the storage.
#[derive(Debug)]
pub(crate) struct Thread<T>(JoinHandle<T>);

impl<T: Send + 'static> Thread<T> {
    /// Starts a thread. The values that it would drop in a panic must not wait for another thread.
    pub(crate) fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let thread = thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || {
            let _guard = AbortOnPanic;
            work()
        });
        started.map(Self)
    }
}

impl<T> Thread<T> {
    /// Waits for its end. A panic never comes so far.
    pub(crate) fn join(self) -> T {
        self.0.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::RwLock;

    use super::*;
    use crate::tests::ends_by_abort;

    #[test]
    fn a_thread_hands_over_its_outcome() {
        let thread = Thread::start("a thread", || 7).unwrap();
        assert_eq!(thread.join(), 7);
    }

    /// TH1.
    #[test]
    fn a_thread_that_panics_ends_the_process() {
        ends_by_abort(
            "thread::tests::a_thread_that_panics_ends_the_process",
            || {
                let panic = || panic!("a test of what happens then");
                Thread::start("a thread", panic).unwrap().join();
            },
        );
    }

    /// TH1.
    #[test]
    fn no_thread_gets_a_lock_whose_holder_panics_under_a_guard() {
        let name = "thread::tests::no_thread_gets_a_lock_whose_holder_panics_under_a_guard";
        ends_by_abort(name, || {
            let lock = RwLock::new(());
            thread::scope(|scope| {
                let (locked, is_locked) = std::sync::mpsc::channel();
                let lock = &lock;
                scope.spawn(move || {
                    let _lock = lock.write();
                    let _guard = AbortOnPanic;
                    locked.send(()).unwrap();
                    panic!("a test of what happens then");
                });
                is_locked.recv().unwrap();
                drop(lock.read());
                std::process::exit(0);
            });
        });
    }
}
