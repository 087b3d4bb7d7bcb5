//! Why nothing can be measured as it is asked for.

/// Settings that contradict each other, or this machine: the same command fails again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSettings(pub String);
