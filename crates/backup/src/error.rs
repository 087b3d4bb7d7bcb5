//! Why a backup cannot be made or restored.

use simshard_client::ClientError;

use crate::segment::{SegmentFault, SegmentHash};

/// Why a backup cannot be made, read or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The place is no folder or URL that this program knows.
    #[error("{place:?} is no place for backups: {problem}")]
    Place {
        /// The place.
        place: String,
        /// The problem.
        problem: String,
    },
    /// The place cannot be read or written.
    #[error("cannot {act} at {place}: {problem}")]
    Store {
        /// What was tried.
        act: &'static str,
        /// The place.
        place: String,
        /// The problem, with all that led to it.
        problem: String,
    },
    /// There is no backup of this name.
    #[error(
        "there is no backup {id} at {place}: `simshard backup list` shows those that there are"
    )]
    NoBackup {
        /// The name.
        id: String,
        /// The place.
        place: String,
    },
    /// There is no backup at all.
    #[error("there is no backup at {0}")]
    NoBackups(String),
    /// A manifest is damaged.
    #[error("the manifest of backup {id} at {place} is damaged: restore another one")]
    Manifest {
        /// The name of the backup.
        id: String,
        /// The place.
        place: String,
        /// The problem.
        #[source]
        source: serde_json::Error,
    },
    /// A manifest is of another version.
    #[error(
        "backup {id} is of format {format}, which this version does not know: take a newer one"
    )]
    Newer {
        /// The name of the backup.
        id: String,
        /// Its format.
        format: u64,
    },
    /// A segment is damaged.
    #[error(
        "segment {name} at {place} is damaged: remove {object} there, and make a backup again, which writes it anew"
    )]
    Segment {
        /// The segment.
        name: SegmentHash,
        /// The place.
        place: String,
        /// What holds it.
        object: String,
        /// The problem.
        #[source]
        source: SegmentProblem,
    },
    /// A manifest lists segments that do not fit it.
    #[error(
        "backup {id} is damaged: the segments of corpus {name} are not those that its manifest tells of"
    )]
    Wrong {
        /// The name of the backup.
        id: String,
        /// The corpus.
        name: String,
    },
    /// A segment could not be compressed.
    #[error("a segment cannot be compressed")]
    Compression(#[source] std::io::Error),
    /// The cluster or the backup has no such corpus.
    #[error("{what} has no corpus {name}")]
    NoCorpus {
        /// The cluster or a backup.
        what: String,
        /// The corpus.
        name: String,
    },
    /// The corpus that is to be restored is there already, with other settings.
    #[error(
        "there is a corpus {0} with other blocks, another distance or another recipe: delete it, or restore with --as"
    )]
    OtherCorpus(String),
    /// The corpus that is to be restored has documents.
    #[error(
        "corpus {name} has {documents} documents: give --continue if they are of a restore that was cut short, or restore with --as"
    )]
    Occupied {
        /// The corpus.
        name: String,
        /// How many documents it has; `None` unless all nodes serve.
        documents: OrUnknown,
    },
    /// What is restored is not what the backup has.
    #[error(
        "corpus {name} is not what the backup has: {differing} of {all} segments differ, as if others changed it meanwhile"
    )]
    Differs {
        /// The corpus.
        name: String,
        /// Segments of the backup that the corpus does not have.
        differing: usize,
        /// Segments of the backup.
        all: usize,
    },
    /// The router refused or failed a request.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// A count that may not be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrUnknown(pub Option<u64>);

impl std::fmt::Display for OrUnknown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(count) => count.fmt(out),
            None => out.write_str("an unknown number of"),
        }
    }
}

/// Why a segment is damaged.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SegmentProblem(#[from] SegmentFault);

impl BackupError {
    /// Whether the same command fails until it, or what it is about, is another.
    #[must_use]
    pub fn is_bad_argument(&self) -> bool {
        match self {
            Self::Place { .. }
            | Self::NoBackup { .. }
            | Self::NoBackups(_)
            | Self::Newer { .. }
            | Self::NoCorpus { .. }
            | Self::OtherCorpus(_)
            | Self::Occupied { .. } => true,
            Self::Client(error) => error.is_bad_request(),
            Self::Store { .. }
            | Self::Manifest { .. }
            | Self::Segment { .. }
            | Self::Wrong { .. }
            | Self::Compression(_)
            | Self::Differs { .. } => false,
        }
    }
}
