//! The problems that tables of all formats have.

use crate::row_problem::RowProblem;

/// Why a row is no document, or a table has not the columns that are named. Each message is complete in itself. A `file`
/// is a path, or `<stdin>`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum TableError {
    /// One row is no document. The rows after it can still be read.
    #[error("{file}: row {row}: {problem}")]
    BadRow {
        file: String,
        /// Its number, from 1.
        row: u64,
        problem: RowProblem,
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
        found: String,
        expected: &'static str,
    },
}

impl TableError {
    /// Whether one row is at fault, and the rest can be read.
    #[must_use]
    pub fn is_bad_row(&self) -> bool {
        matches!(self, Self::BadRow { .. })
    }
}
