//! The problems of Arrow files, with the place of each.

use std::io;

use super::fault::Fault;
use crate::table::TableError;

/// Why an Arrow file cannot be used. Each message is complete in itself. A `file` is a path, or `<stdin>`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum ArrowError {
    /// A row that is no document, or a column.
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("{file} cannot be read as Arrow after row {row}: {reason}")]
    Damaged {
        file: String,
        /// The row reached, from 1; 0 before the first.
        row: u64,
        reason: &'static str,
    },
    #[error("cannot read {file} on after row {row}: {error}")]
    Unreadable {
        file: String,
        row: u64,
        error: io::Error,
    },
}

impl ArrowError {
    /// What keeps a file from being read on after a row.
    pub(super) fn of(fault: Fault, file: String, row: u64) -> Self {
        match fault {
            Fault::Malformed(reason) => Self::Damaged { file, row, reason },
            Fault::Unreadable(error) => Self::Unreadable { file, row, error },
        }
    }

    /// Whether one row is at fault, and the rest can be read.
    #[must_use]
    pub fn is_bad_row(&self) -> bool {
        matches!(self, Self::Table(error) if error.is_bad_row())
    }
}
