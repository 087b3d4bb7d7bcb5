//! The problems of Parquet files, with the place of each.

use parquet::errors::ParquetError as LibraryError;

use crate::document::MAX_RECORD_BYTES;
use crate::problem::{LineProblem, beginning};

/// Most characters of the library's words.
const REASON_CHARS: usize = 500;

/// How the library says that a compression is left out of it.
const LEFT_OUT: &str = "Disabled feature at compile time: ";

/// Why a Parquet file cannot be used. Each message is complete in itself.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// One row is no document. The rows after it can still be read.
    #[error("{file}: row {row}: {problem}")]
    BadRow {
        /// Its path, or `<stdin>`.
        file: String,
        /// Its number, from 1.
        row: u64,
        /// The problem.
        problem: RowProblem,
    },
    /// No Parquet file, or one without an end.
    #[error("{file} is no whole Parquet file: {reason}")]
    NotParquet {
        /// Its path, or `<stdin>`.
        file: String,
        /// The value that was found.
        reason: String,
    },
    /// A file that contradicts itself, or that cannot be read midway.
    #[error("{file}: cannot read on after row {row}, in row group {group} of {groups}: {reason}")]
    Damaged {
        /// Its path, or `<stdin>`.
        file: String,
        /// The row reached, from 1; 0 before the first.
        row: u64,
        /// The row group, from 1.
        group: usize,
        /// How many there are.
        groups: usize,
        /// The value that was found.
        reason: String,
    },
    /// No column of this name.
    #[error(
        "{file} has no column \"{column}\": its columns are {present}; say with {flags} which to \
         read"
    )]
    MissingColumn {
        /// Its path, or `<stdin>`.
        file: String,
        /// The name.
        column: String,
        /// Those that there are.
        present: String,
        /// The arguments that name another.
        flags: &'static str,
    },
    /// More than one column of this name, and no way to tell which is meant.
    #[error("{file} has the column \"{column}\" more than once: write it with other names")]
    RepeatedColumn {
        /// Its path, or `<stdin>`.
        file: String,
        /// The name.
        column: String,
    },
    /// A column of a type that cannot be what it is to be.
    #[error("{file}: the column \"{column}\" is {found}: expected {expected}")]
    WrongType {
        /// Its path, or `<stdin>`.
        file: String,
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// The types that would do.
        expected: &'static str,
    },
}

/// The problem of a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowProblem {
    /// No value.
    #[error("the column \"{column}\" is null")]
    Null {
        /// The column.
        column: String,
    },
    /// More than [`MAX_RECORD_BYTES`].
    #[error("the column \"{column}\" takes {bytes} bytes: at most {MAX_RECORD_BYTES} are allowed")]
    TooLong {
        /// The column.
        column: String,
        /// Their number.
        bytes: usize,
    },
    /// A negative fingerprint.
    #[error(
        "the column \"{column}\" is {value}, and fingerprints are not negative: write the column \
         as unsigned integers"
    )]
    Negative {
        /// The column.
        column: String,
        /// Its content.
        value: i64,
    },
    /// A value that no format takes.
    #[error(transparent)]
    Value(#[from] LineProblem),
}

impl ParquetError {
    pub(super) fn not_parquet(file: String, error: &LibraryError) -> Self {
        let reason = reason(error);
        Self::NotParquet { file, reason }
    }

    /// Whether one row is at fault, and the rest can be read.
    #[must_use]
    pub fn is_bad_row(&self) -> bool {
        matches!(self, Self::BadRow { .. })
    }
}

/// The library's words, without the kind of error that it puts before them. They may quote the file.
pub(super) fn reason(error: &LibraryError) -> String {
    let text = beginning(&error.to_string(), REASON_CHARS);
    if let Some(codec) = text.split_once(LEFT_OUT).map(|(_, codec)| codec) {
        return format!(
            "{codec} compression is not supported: write the file with snappy, zstd, gzip or lz4"
        );
    }
    for kind in ["Parquet error: ", "EOF: ", "External: ", "NYI: "] {
        if let Some(words) = text.strip_prefix(kind) {
            return words.to_owned();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_quotes_is_one_short_line() {
        let quoted = format!("no field 'a\u{1c}\n\0' {}", "x".repeat(5000));
        let shown = reason(&LibraryError::General(quoted));
        assert!(shown.starts_with(r"no field 'a\u{1c}\n\0' xxx"), "{shown}");
        assert!(shown.chars().count() < 1000, "{shown}");
    }
}
