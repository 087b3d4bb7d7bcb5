//! The problem of a row of a table with types.

use crate::document::MAX_RECORD_BYTES;
use crate::problem::LineProblem;

/// The problem of a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum RowProblem {
    #[error("the column \"{column}\" is null")]
    Null { column: String },
    #[error("the column \"{column}\" takes {bytes} bytes: at most {MAX_RECORD_BYTES} are allowed")]
    TooLong { column: String, bytes: usize },
    #[error(
        "the column \"{column}\" is {value}, and fingerprints are not negative, unless --signed says \
         that they are in two's complement"
    )]
    Negative { column: String, value: i64 },
    /// A value that no format takes.
    #[error(transparent)]
    Value(#[from] LineProblem),
}
