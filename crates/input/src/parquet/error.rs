//! The problems of Parquet files, with the place of each.

use parquet::errors::ParquetError as LibraryError;

use crate::problem::beginning;
use crate::table::TableError;

/// Most characters of the library's words.
const REASON_CHARS: usize = 500;

/// How the library says that a compression is left out of it.
const LEFT_OUT: &str = "Disabled feature at compile time: ";

/// Why a Parquet file cannot be used. Each message is complete in itself. A `file` is a path, or `<stdin>`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum ParquetError {
    /// A row that is no document, or a column.
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("{file} is no whole Parquet file: {reason}")]
    NotParquet { file: String, reason: String },
    #[error("{file}: cannot read on after row {row}, in row group {group} of {groups}: {reason}")]
    Damaged {
        file: String,
        /// The row reached, from 1; 0 before the first.
        row: u64,
        /// The row group, from 1.
        group: usize,
        groups: usize,
        reason: String,
    },
    #[error("{file}: cannot copy row group {group} of {groups}: {reason}")]
    NotCopied {
        file: String,
        /// The row group, from 1.
        group: usize,
        groups: usize,
        reason: String,
    },
}

impl ParquetError {
    pub(super) fn not_parquet(file: String, error: &LibraryError) -> Self {
        let reason = reason(error);
        Self::NotParquet { file, reason }
    }

    /// Whether one row is at fault, and the rest can be read.
    #[must_use]
    pub fn is_bad_row(&self) -> bool {
        matches!(self, Self::Table(error) if error.is_bad_row())
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
