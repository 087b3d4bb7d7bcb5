//! The problems of WARC files, with the place of each.

use std::io;

use super::MAX_HEADER_BYTES;
use super::record::VERSIONS;
use crate::document::MAX_RECORD_BYTES;
use crate::problem::LineProblem;

/// Why a WARC file cannot be used. Each message is complete in itself.
#[derive(Debug, thiserror::Error)]
pub enum WarcError {
    /// One record is no document. The records after it can still be read.
    #[error("{file}: record {record} at byte {offset}: {problem}")]
    BadRecord {
        /// Its path, or `<stdin>`.
        file: String,
        /// Its number, from 1.
        record: u64,
        /// Where it begins, in the uncompressed file, from 0.
        offset: u64,
        /// The problem.
        problem: RecordProblem,
    },
    /// No record, or half a one. Where the next one begins is not known.
    #[error("{file}: record {record} at byte {offset}: {problem}")]
    Broken {
        /// Its path, or `<stdin>`.
        file: String,
        /// Its number, from 1.
        record: u64,
        /// Where it begins, in the uncompressed file, from 0.
        offset: u64,
        /// The problem.
        problem: BrokenProblem,
    },
    /// The operating system or the decompressor refused.
    #[error("cannot read {file} on, in record {record}: {error}")]
    Unreadable {
        /// Its path, or `<stdin>`.
        file: String,
        /// The record reached, from 1.
        record: u64,
        /// The refusal.
        error: io::Error,
    },
    /// Content, and none of it text.
    #[error(
        "{file} holds no text: its records, {others} of them, hold other content, such as images"
    )]
    NoTexts {
        /// Its path, or `<stdin>`.
        file: String,
        /// How many records hold content.
        others: u64,
    },
}

/// Why a record cannot be used. The reader can skip it and go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    /// More than [`MAX_RECORD_BYTES`].
    #[error("its text takes more than {MAX_RECORD_BYTES} bytes, which is the limit")]
    TooLong,
    /// Nothing to call it by.
    #[error("it has neither a WARC-Target-URI nor a WARC-Record-ID")]
    NoId,
    /// A payload that cannot be decoded.
    #[error("its payload cannot be decoded as {coding}: {reason}")]
    BadPayload {
        /// The coding that the HTTP header names.
        coding: &'static str,
        /// The value that was found.
        reason: String,
    },
    /// A value that no format takes.
    #[error(transparent)]
    Value(#[from] LineProblem),
}

/// Problems of a record after which the file cannot be read further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenProblem {
    /// Something else where a record should begin.
    #[error(
        "\"{value}\" is no beginning of a WARC record, which is WARC/1.0 or WARC/1.1: the file is \
         no WARC file, or the Content-Length before is wrong"
    )]
    NoRecord {
        /// The bytes that were found.
        value: String,
    },
    /// A version of the format whose rules may be others.
    #[error("its version, {value}, is not known here: known are {}", VERSIONS.join(", "))]
    UnknownVersion {
        /// The bytes that were found.
        value: String,
    },
    /// A block that does not end where its record does.
    #[error(
        "after its block stands \"{value}\" instead of the two line breaks that end a record: its \
         Content-Length is wrong"
    )]
    NoEnd {
        /// The bytes that were found.
        value: String,
    },
    /// A header that does not end.
    #[error("its header takes more than {MAX_HEADER_BYTES} bytes, which is the limit")]
    HeaderTooLong,
    /// A record that does not say how long it is.
    #[error("it has no Content-Length")]
    NoLength,
    /// A length that is no number.
    #[error("its Content-Length, \"{value}\", is no number of bytes")]
    BadLength {
        /// The bytes that were found.
        value: String,
    },
    /// Lengths that differ.
    #[error("it has two Content-Lengths, \"{first}\" and \"{other}\"")]
    TwoLengths {
        /// One of them.
        first: String,
        /// Another.
        other: String,
    },
    /// The end of the file within a record.
    #[error("the file ends within it")]
    CutShort,
}

impl WarcError {
    /// Whether one record is at fault, and the rest can be read.
    #[must_use]
    pub fn is_bad_record(&self) -> bool {
        matches!(self, Self::BadRecord { .. })
    }
}
