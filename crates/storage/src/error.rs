//! Why files of a data directory cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use simshard_topology::ShardId;
use uuid::Uuid;

use crate::shortage::Shortage;

/// The problem of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They start with another magic.
    Foreign { expected: &'static str },
    /// A later format version wrote them.
    Newer { version: u32, reads: u32 },
    /// They are of another store.
    OtherStore { found: Uuid, expected: Uuid },
    /// They are not what was written.
    Damaged { offset: u64, what: &'static str },
}

impl Fault {
    /// Damage at an offset.
    pub(crate) fn damaged(offset: usize, what: &'static str) -> Self {
        let offset = offset as u64;
        Self::Damaged { offset, what }
    }

    /// The same fault of a file in which the bytes start at an offset.
    #[must_use]
    pub(crate) fn shifted(self, start: u64) -> Self {
        match self {
            Self::Damaged { offset, what } => Self::Damaged {
                offset: start + offset,
                what,
            },
            Self::Foreign { .. } | Self::Newer { .. } | Self::OtherStore { .. } => self,
        }
    }

    /// The error that tells of this fault in a file.
    pub(crate) fn in_file(self, path: &Path) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::Foreign { expected } => ReadError::Foreign { path, expected },
            Self::Newer { version, reads } => ReadError::Newer {
                path,
                version,
                reads,
            },
            Self::OtherStore { found, expected } => ReadError::OtherStore {
                path,
                found,
                expected,
            },
            Self::Damaged { offset, what } => ReadError::Corrupt { path, offset, what },
        }
    }
}

/// What to do about a directory that is damaged. The store cannot tell whether there are replicas; a copy of the directory of
/// another node would be no help, as it is that node's.
pub(crate) const REMEDY: &str = "if other nodes hold its shards, move the data directory away and start the node with an \
    empty one, else restore a backup";

/// What to do about a file that cannot be read. One that is gone is damage.
fn remedy_of(source: &io::Error) -> String {
    if source.kind() == io::ErrorKind::NotFound {
        return format!("as it is gone: {REMEDY}");
    }
    "check the disk and the permissions".to_owned()
}

/// Why a file of a data directory cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum ReadError {
    /// A shard that is not there is no empty one.
    #[error("shard {0} is not in this store")]
    ShardAbsent(ShardId),
    #[error("cannot read {}, {}", path.display(), remedy_of(source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is no {expected} of simshard, give another directory or move it away", path.display())]
    Foreign {
        path: PathBuf,
        expected: &'static str,
    },
    #[error(
        "{} has format version {version}, this program reads {reads}: use a newer simshard",
        path.display()
    )]
    Newer {
        path: PathBuf,
        version: u32,
        /// The last version that this program reads of such a file.
        reads: u32,
    },
    #[error(
        "{} belongs to store {found}, not to {expected}: put the file of this store in its place",
        path.display()
    )]
    OtherStore {
        path: PathBuf,
        found: Uuid,
        expected: Uuid,
    },
    #[error(
        "{} is damaged at byte {offset}, {what}: check the disk; {REMEDY}",
        path.display(), REMEDY = REMEDY
    )]
    Corrupt {
        path: PathBuf,
        offset: u64,
        what: &'static str,
    },
}

/// Why a file of a data directory cannot be written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum WriteError {
    /// A file cannot be made. Nothing was changed.
    #[error("cannot create {}, check the disk, its space and the permissions", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot {doing} {}, check the disk, its space and the permissions", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "element {element} of {} does not come after the one before it, push them in ascending order",
        path.display()
    )]
    OutOfOrder {
        path: PathBuf,
        /// Its place in the segment, from 0.
        element: u64,
    },
    #[error(
        "element {element} of {} has an id of {bytes} bytes, the limit is {}",
        path.display(),
        crate::MAX_ID_BYTES
    )]
    IdTooLong {
        path: PathBuf,
        /// Its place in the segment, from 0.
        element: u64,
        bytes: usize,
    },
    #[error("writing {} failed before, start it anew", path.display())]
    Abandoned { path: PathBuf },
    #[error("{} is not written, for it could not be read again: report this as a bug", path.display())]
    Refused {
        path: PathBuf,
        source: Box<ReadError>,
    },
}

impl WriteError {
    /// Makes an error of the system one of writing.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// What there was too little of, if that is all that is wrong. A file that could not be made leaves nothing half
    /// done, whatever the system lacked.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Create { source, .. } => Shortage::of(source),
            Self::Io { source, .. } => Shortage::of_space(source),
            Self::OutOfOrder { .. }
            | Self::IdTooLong { .. }
            | Self::Abandoned { .. }
            | Self::Refused { .. } => None,
        }
    }
}

/// Why segments could not be written or merged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MaintenanceError {
    /// A segment cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot delete files of the log")]
    Trim(#[source] io::Error),
    /// There is no time for it any more.
    #[error("the store is being closed")]
    Stopped,
    /// Shards begin anew or end their copy first.
    #[error("merging waits for a change of shards")]
    Interrupted,
}

impl MaintenanceError {
    /// What there was too little of, if that is all that is wrong: then it may work later. A file that could not be
    /// read leaves nothing half done, whatever the system lacked.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Write(error) => error.shortage(),
            Self::Read(ReadError::Io { source, .. }) => Shortage::of(source),
            Self::Trim(source) => Shortage::of_space(source),
            Self::Read(_) | Self::Stopped | Self::Interrupted => None,
        }
    }
}
