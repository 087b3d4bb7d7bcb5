//! How far a job is. The caller makes what people see of that.

use indicatif::ProgressBar;

/// Makes a bar or a spinner for each phase of a job.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// For a phase of this number of steps; `None` where the number is not known.
    pub bar: fn(&str, Option<u64>) -> ProgressBar,
    /// For a phase without steps: it is over when this is dropped.
    pub spinner: fn(&str) -> ProgressBar,
}
