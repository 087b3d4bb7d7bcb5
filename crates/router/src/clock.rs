//! The clock that stamps changes: wall time, made to ascend.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use simshard_topology::{Clock, Version};

/// A hybrid logical clock over the system's.
#[derive(Debug, Default)]
pub(crate) struct SystemClock(Mutex<Clock>);

impl SystemClock {
    /// A version above all that were given out or observed before.
    pub(crate) fn now(&self) -> Version {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let milliseconds = since.unwrap_or_default().as_millis();
        self.clock()
            .tick(u64::try_from(milliseconds).unwrap_or(u64::MAX))
    }

    /// Takes note of a version that another router gave out.
    pub(crate) fn observe(&self, version: Version) {
        self.clock().observe(version);
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
