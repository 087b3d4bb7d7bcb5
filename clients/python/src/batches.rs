//! All pairs of near-duplicates, in batches that are taken one after another.

use std::io;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};

use numpy::{PyArray1, PyArray2};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::{Bound, PyErr, PyRef, PyResult, Python, pyclass, pyfunction, pymethods};
use simshard_simhash::{Fingerprint, FingerprintSet, Pair, PairSearch};

use crate::interruptible::{INTERVAL, Interrupted};
use crate::pairs::{as_pairs, searched};

/// Batches that wait to be taken. The search waits too once there are this many.
const WAITING: usize = 1;

/// What the operating system calls the threads of such a search.
const THREADS: &str = "simshard-pairs";

/// An iterator of batches. A thread searches for them; it ends when this is dropped.
#[pyclass(frozen, module = "simshard._simshard")]
#[derive(Debug)]
pub(crate) struct PairBatches {
    batches: Mutex<Receiver<Vec<u64>>>,
    search: Mutex<Option<JoinHandle<()>>>,
    interrupted: Arc<Interrupted>,
    /// The process that searches. A child of `fork` has none of its threads.
    process: u32,
}

/// The pairs that `find_pairs` gives, in the same order, in batches of this many.
#[pyfunction]
pub(crate) fn pair_batches(
    fingerprints: &Bound<'_, PyArray1<u64>>,
    distance: u32,
    blocks: Option<u32>,
    size: usize,
) -> PyResult<PairBatches> {
    let (fingerprints, search) = searched(fingerprints, distance, blocks)?;
    // What runs between two batches may need the threads that all share, so the search has others.
    let threads = rayon::ThreadPoolBuilder::new().thread_name(|_| THREADS.to_owned());
    let threads = threads.build();
    let threads = threads.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let interrupted = Arc::new(Interrupted::default());
    let (found, batches) = mpsc::sync_channel(WAITING);
    let work = {
        let interrupted = Arc::clone(&interrupted);
        move || threads.install(|| send(fingerprints, search, size, &interrupted, &found))
    };
    let thread = thread::Builder::new().name(THREADS.to_owned()).spawn(work);
    let thread = thread.map_err(|error: io::Error| PyErr::from(error))?;
    Ok(PairBatches {
        batches: Mutex::new(batches),
        search: Mutex::new(Some(thread)),
        interrupted,
        process: process::id(),
    })
}

/// Sends the pairs in batches, until they are no longer wanted.
fn send(
    fingerprints: Vec<Fingerprint>,
    search: PairSearch,
    size: usize,
    interrupted: &Interrupted,
    found: &SyncSender<Vec<u64>>,
) {
    let set = FingerprintSet::from_unsorted(fingerprints);
    let mut batch = Vec::new();
    let mut visit = |pairs: &[Pair]| {
        for pair in pairs {
            batch.extend([pair.a.0, pair.b.0]);
            if batch.len() >= size.saturating_mul(2)
                && found.send(std::mem::take(&mut batch)).is_err()
            {
                return ControlFlow::Break(());
            }
        }
        interrupted.goes_on()
    };
    let flow = search.pairs(&set, &|_, _| interrupted.goes_on(), &mut visit);
    if flow.is_continue() && !batch.is_empty() {
        // An error says that they are no longer wanted.
        let _ = found.send(batch);
    }
}

#[pymethods]
impl PairBatches {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<u64>>>> {
        if process::id() != self.process {
            return Err(PyRuntimeError::new_err(
                "the search was begun before this process was forked from another: begin it again",
            ));
        }
        loop {
            match py.detach(|| self.batches.lock().recv_timeout(INTERVAL)) {
                Ok(numbers) => return as_pairs(py, numbers).map(Some),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| self.interrupted.end())?;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let search = self.search.lock().take();
                    if let Some(Err(panic)) = search.map(JoinHandle::join) {
                        resume_unwind(panic);
                    }
                    return Ok(None);
                }
            }
        }
    }
}

impl Drop for PairBatches {
    fn drop(&mut self) {
        self.interrupted.end();
    }
}
