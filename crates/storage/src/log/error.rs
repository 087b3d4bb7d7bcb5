//! Why a log cannot be read.

use std::io;
use std::path::PathBuf;

use uuid::Uuid;

use super::frame::{FileHeaderError, MAX_FILE_BYTES};
use super::record::DecodeError;

/// Why a log cannot be read. Nothing was changed, but for unfinished files, which are gone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// The system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file is not one of a log, or of another format.
    #[error(
        "{} at byte 0: {why}; use the version of Simshard that wrote it, or restore the data directory \
         from a replica or a backup", path.display()
    )]
    Header {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: FileHeaderError,
    },
    /// A file is that of another data directory.
    #[error(
        "{} at byte 16: it belongs to store {found}, and this is store {expected}; put back the files \
         that belong here", path.display()
    )]
    OtherStore {
        /// The file.
        path: PathBuf,
        /// The store that it names.
        found: Uuid,
        /// The store of the directory.
        expected: Uuid,
    },
    /// A file has the name of another.
    #[error(
        "{} at byte 32: its first record is {found}, which is not what its name says; give it its own \
         name back", path.display()
    )]
    OtherName {
        /// The file.
        path: PathBuf,
        /// The sequence in its header.
        found: u64,
    },
    /// A file has bytes that were good once.
    #[error(
        "{} at byte {offset}: {what}; do not delete anything, as records behind it were acknowledged: \
         restore the data directory from a replica or a backup", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the bytes start.
        offset: usize,
        /// How that is known.
        what: Damage,
    },
    /// A file does not go on where the one before it ends.
    #[error(
        "{} at byte 32: its first record is {found}, and the file before it ends before record {expected}; \
         put back the file that is missing, or restore the data directory from a replica or a backup",
        path.display()
    )]
    OutOfOrder {
        /// The file.
        path: PathBuf,
        /// The sequence in its header.
        found: u64,
        /// The one after the last of the file before.
        expected: u64,
    },
    /// The manifest knows of records that no file has.
    #[error(
        "{}: no file has record {sequence}, or ends right before it; put back the file that is missing, or \
         restore the data directory from a replica or a backup", path.display()
    )]
    Missing {
        /// The directory.
        path: PathBuf,
        /// The first record that is needed.
        sequence: u64,
    },
}

/// How it is known that bytes are damaged, rather than never finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    /// A later frame was written when these bytes were on disk.
    #[error("damaged, as the frame at byte {witness} shows that this was on disk before")]
    Witnessed {
        /// Where that frame starts.
        witness: usize,
    },
    /// A file was finished before the next one began.
    #[error("damaged, as a later file shows that this one was finished")]
    NotLast,
    /// A frame is sound, and its record is not.
    #[error("{0}, although the frame is sound: this program did not write it")]
    Record(#[from] DecodeError),
    /// No file grows so long.
    #[error("longer than {MAX_FILE_BYTES} bytes, which no file of a log is")]
    TooLong,
}
