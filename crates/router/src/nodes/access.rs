//! How nodes are reached.

use simshard_runtime::observed::Observed;
use simshard_transport::{Budget, Dialer};

/// How nodes are reached.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// How connections are made.
    pub(crate) dialer: Dialer,
    /// The memory for their answers.
    pub(crate) budget: Budget,
    /// What counts their work.
    pub(crate) observed: Observed,
}

#[cfg(test)]
impl Access {
    /// Without certificates, and with little memory.
    pub(crate) fn of_tests() -> Self {
        Self {
            dialer: Dialer::PLAIN,
            budget: Budget::new(1 << 20),
            observed: Observed::default(),
        }
    }
}
