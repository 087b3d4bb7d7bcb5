//! The problems of Arrow files, with the place of each.

use std::io;

use super::fault::Fault;
use crate::row_problem::RowProblem;

/// Why an Arrow file cannot be used. Each message is complete in itself. A `file` is a path, or `<stdin>`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum ArrowError {
    /// One row is no document. The rows after it can still be read.
    #[error("{file}: row {row}: {problem}")]
    BadRow {
        file: String,
        /// Its number, from 1.
        row: u64,
        problem: RowProblem,
    },
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
    #[error(
        "{file} has no column \"{column}\": its columns are {present}; say with {flags} which to \
         read"
    )]
    MissingColumn {
        file: String,
        column: String,
        present: String,
        flags: &'static str,
    },
    #[error("{file} has the column \"{column}\" more than once: write it with other names")]
    RepeatedColumn { file: String, column: String },
    #[error("{file}: the column \"{column}\" is {found}: expected {expected}")]
    WrongType {
        file: String,
        column: String,
        found: &'static str,
        expected: &'static str,
    },
}

impl ArrowError {
    /// What keeps a file from being read on after a row.
    pub(super) fn of(fault: Fault, file: &str, row: u64) -> Self {
        let file = file.to_owned();
        match fault {
            Fault::Malformed(reason) => Self::Damaged { file, row, reason },
            Fault::Unreadable(error) => Self::Unreadable { file, row, error },
        }
    }

    /// Whether one row is at fault, and the rest can be read.
    #[must_use]
    pub fn is_bad_row(&self) -> bool {
        matches!(self, Self::BadRow { .. })
    }
}
