//! The threads that all long work shares.

use std::mem::forget;
use std::process;
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The threads, and the process that has made them.
static THREADS: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The threads of this process. A child of `fork` has none of its parent's, so it makes its own.
///
/// # Errors
/// If there can be none.
pub(crate) fn threads() -> PyResult<Arc<ThreadPool>> {
    let own = process::id();
    let mut made = THREADS.lock();
    if let Some((by, threads)) = &*made
        && *by == own
    {
        return Ok(Arc::clone(threads));
    }
    let threads = ThreadPoolBuilder::new().build();
    let threads = threads.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let threads = Arc::new(threads);
    // Those of the parent cannot be told to end.
    forget(made.replace((own, Arc::clone(&threads))));
    Ok(threads)
}
