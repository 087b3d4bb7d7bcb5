//! Why a log cannot be read.

use std::io;
use std::path::PathBuf;

use uuid::Uuid;

use super::frame::{FileHeaderError, MAX_FILE_BYTES};
use super::record::DecodeError;
use crate::error::REMEDY;

/// Why a log cannot be read. Nothing was changed, but for unfinished files, which are gone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{} at byte 0: {why}; use the version of Simshard that wrote it, or, {REMEDY}", path.display(), REMEDY = REMEDY
    )]
    Header { path: PathBuf, why: FileHeaderError },
    #[error(
        "{} at byte 16: it belongs to store {found}, and this is store {expected}; put back the files \
         that belong here", path.display()
    )]
    OtherStore {
        path: PathBuf,
        /// The store that it names.
        found: Uuid,
        /// The store of the directory.
        expected: Uuid,
    },
    #[error(
        "{} at byte 32: its first record is {found}, which is not what its name says; give it its own \
         name back", path.display()
    )]
    OtherName {
        path: PathBuf,
        /// The sequence in its header.
        found: u64,
    },
    #[error(
        "{} at byte {offset}: {what}; delete nothing, as records behind it were acknowledged: {REMEDY}",
        path.display(), REMEDY = REMEDY
    )]
    Damaged {
        path: PathBuf,
        /// Where the bytes start.
        offset: usize,
        /// How that is known.
        what: Damage,
    },
    #[error(
        "{} at byte 32: its first record is {found}, and the file before it ends before record {expected}; \
         put back the file that is missing, or, {REMEDY}",
        path.display(), REMEDY = REMEDY
    )]
    OutOfOrder {
        path: PathBuf,
        /// The sequence in its header.
        found: u64,
        /// The one after the last of the file before.
        expected: u64,
    },
    #[error(
        "{}: no file has record {sequence}, or ends right before it; put back the file that is missing, or, {REMEDY}",
        path.display(), REMEDY = REMEDY
    )]
    Missing {
        path: PathBuf,
        /// The first record that is needed.
        sequence: u64,
    },
}

/// How it is known that bytes are damaged, rather than never finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("damaged, as the frame at byte {witness} shows that this was on disk before")]
    Witnessed {
        /// Where that frame starts.
        witness: usize,
    },
    #[error("damaged, as a later file shows that this one was finished")]
    NotLast,
    #[error("{0}, although the frame is sound: this program did not write it")]
    Record(#[from] DecodeError),
    #[error("longer than {MAX_FILE_BYTES} bytes, which no file of a log is")]
    TooLong,
}
