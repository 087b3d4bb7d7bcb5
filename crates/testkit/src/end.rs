//! How processes of tests end.

use crate::Process;

/// How a process ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Without warning.
    Killed,
    /// When it has done what it was about: it must do so in order.
    Stopped,
}

impl End {
    pub(crate) fn of(self, process: Process) {
        match self {
            Self::Killed => process.kill(),
            Self::Stopped => assert_eq!(process.terminate(), Some(0)),
        }
    }
}
