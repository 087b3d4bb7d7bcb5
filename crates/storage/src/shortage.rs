//! Shortages of a system that may pass, and are no fault of the disk.

use std::io::{Error, ErrorKind};

use rustix::io::Errno;

/// The resource that ran out, for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// Space on the disk.
    #[error("the disk of the data directory is full")]
    Space,
    /// File descriptors.
    #[error(
        "the node has run out of file descriptors: raise the limit of open files of its process, or of the system, as \
         by `ulimit -n` before the start"
    )]
    Files,
    /// Memory of the system.
    #[error("the system of the node has no memory left: free some")]
    Memory,
}

impl Shortage {
    /// The shortage that an error tells of, if it does. That alone does not say that nothing was half done: see
    /// [`Self::of_space`].
    pub(crate) fn of(error: &Error) -> Option<Self> {
        match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE) => Some(Self::Files),
            Some(Errno::NOMEM) => Some(Self::Memory),
            _ => Self::of_space(error),
        }
    }

    /// The same where space is all whose want is known to pass, as it is in the middle of changes to files.
    pub(crate) fn of_space(error: &Error) -> Option<Self> {
        let is_full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind());
        is_full.then_some(Self::Space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_may_not() {
        for (errno, shortage) in [
            (Errno::NOSPC, Some(Shortage::Space)),
            (Errno::DQUOT, Some(Shortage::Space)),
            (Errno::MFILE, Some(Shortage::Files)),
            (Errno::NFILE, Some(Shortage::Files)),
            (Errno::NOMEM, Some(Shortage::Memory)),
            (Errno::IO, None),
            (Errno::ACCESS, None),
        ] {
            let error = Error::from(errno);
            let space = shortage.filter(|shortage| *shortage == Shortage::Space);
            assert_eq!(Shortage::of(&error), shortage, "{error}");
            assert_eq!(Shortage::of_space(&error), space, "{error}");
        }
        assert_eq!(
            Shortage::of(&ErrorKind::OutOfMemory.into()),
            None,
            "not the system's word"
        );
    }
}
