//! Long work without the interpreter's lock, which ends early when a signal comes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::{PyErr, PyResult, Python};

use crate::threads::threads;

/// How often signals are looked for.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// Whether the work is to end early.
#[derive(Debug, Default)]
pub(crate) struct Interrupted(AtomicBool);

impl Interrupted {
    /// Ends the work early.
    pub(crate) fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Breaks once it is.
    pub(crate) fn goes_on(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Does work on the threads that all share, and looks for signals meanwhile. The work asks now and then whether it goes on.
///
/// # Errors
/// What the handler of a signal raises, such as `KeyboardInterrupt`. Else if there can be no threads.
///
/// # Panics
/// If the work does.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupted) -> T + Send,
) -> PyResult<T> {
    let (interrupted, threads) = (Interrupted::default(), threads()?);
    let (done, ends) = mpsc::channel::<()>();
    py.detach(move || {
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                // Its end, a panic too, is what the other side waits for.
                let _done = done;
                threads.install(|| work(&interrupted))
            });
            let mut raised: Option<PyErr> = None;
            while ends.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    raised = Some(error);
                    interrupted.end();
                }
            }
            let outcome = worker.join();
            match raised {
                Some(error) => Err(error),
                None => Ok(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            }
        })
    })
}
