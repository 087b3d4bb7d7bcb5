//! The problems of WARC files, with the place of each.

use std::io;

use super::MAX_HEADER_BYTES;
use super::version::VERSIONS;
use crate::document::MAX_RECORD_BYTES;
use crate::problem::LineProblem;

/// Why a WARC file cannot be used. Each message is complete in itself. A `file` is a path, or `<stdin>`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum WarcError {
    /// One record is no document. The records after it can still be read.
    #[error("{file}: record {record} at byte {offset}: {problem}")]
    BadRecord {
        file: String,
        /// Its number, from 1.
        record: u64,
        /// Where it begins, in the uncompressed file, from 0.
        offset: u64,
        problem: RecordProblem,
    },
    /// No record, or half a one. Where the next one begins is not known.
    #[error("{file}: record {record} at byte {offset}: {problem}{}", problem.remedy())]
    Broken {
        file: String,
        /// Its number, from 1.
        record: u64,
        /// Where it begins, in the uncompressed file, from 0.
        offset: u64,
        problem: BrokenProblem,
    },
    #[error("{file}: record {record} at byte {offset}: cannot read on: {error}")]
    Unreadable {
        file: String,
        /// The record reached, from 1.
        record: u64,
        /// Where it begins, in the uncompressed file, from 0.
        offset: u64,
        error: io::Error,
    },
}

/// Why a record cannot be used. The reader can skip it and go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum RecordProblem {
    #[error(
        "its text or markup takes more than {MAX_RECORD_BYTES} bytes, which is the limit: add \
         --skip-bad-lines to leave such records out"
    )]
    TooLong,
    /// Nothing says what it holds.
    #[error("it has no WARC-Type")]
    NoType,
    /// Nothing to call it by.
    #[error("it has neither a WARC-Target-URI nor a WARC-Record-ID")]
    NoId,
    #[error("its payload cannot be decoded as {coding}: {reason}")]
    BadPayload {
        coding: &'static str,
        reason: String,
    },
    /// A value that no format takes.
    #[error(transparent)]
    Value(#[from] LineProblem),
    /// It is broken, and the next record was found.
    #[error(transparent)]
    Broken(BrokenProblem),
}

/// Problems of a record after which it is not known where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum BrokenProblem {
    #[error(
        "\"{value}\" is no beginning of a WARC record, which is WARC/1.0 or WARC/1.1: the file is \
         no WARC file"
    )]
    NoRecord { value: String },
    #[error(
        "\"{value}\" is no beginning of an ARC record, which is an address, an IP, a date, a type and \
         a length: its own length, or the one before, is wrong"
    )]
    NoArcRecord { value: String },
    #[error("its block does not end where the next record of ARC begins: its own length is wrong")]
    NoArcEnd,
    #[error("its version, {value}, is not known here: known are {}", VERSIONS.join(", "))]
    UnknownVersion { value: String },
    #[error(
        "after its block stands \"{value}\" instead of the two line breaks that end a record: its \
         Content-Length is wrong"
    )]
    NoEnd { value: String },
    #[error(
        "after its block stands \"{value}\" instead of the two line breaks that end a record: its \
         Content-Length is wrong, and records among the {claimed} bytes that it claims may be lost"
    )]
    NoEndOfLong { value: String, claimed: u64 },
    /// It is cut off, as a member of gzip may be, and the next record follows on the same line.
    #[error("its header ends within a line, in which the next record begins")]
    CutHeader,
    #[error("its header takes more than {MAX_HEADER_BYTES} bytes, which is the limit")]
    HeaderTooLong,
    #[error("it has no Content-Length")]
    NoLength,
    #[error("its Content-Length, \"{value}\", is no number of bytes")]
    BadLength { value: String },
    #[error("it has two Content-Lengths, \"{first}\" and \"{other}\"")]
    TwoLengths { first: String, other: String },
    #[error("the file ends within it")]
    CutShort,
    #[error("{problem}; records among the {bytes} bytes behind it may be lost")]
    NotSearched { problem: Box<Self>, bytes: u64 },
}

impl BrokenProblem {
    /// Whether it is that of one record, whatever follows.
    pub(super) fn is_of_a_whole_record(&self) -> bool {
        match self {
            Self::NoRecord { .. } | Self::NoArcRecord { .. } | Self::NoArcEnd | Self::CutShort => {
                false
            }
            Self::NotSearched { problem, .. } => problem.is_of_a_whole_record(),
            Self::UnknownVersion { .. }
            | Self::NoEnd { .. }
            | Self::NoEndOfLong { .. }
            | Self::CutHeader
            | Self::HeaderTooLong
            | Self::NoLength
            | Self::BadLength { .. }
            | Self::TwoLengths { .. } => true,
        }
    }

    /// The same where bytes behind it are not looked through: those that it claims, if its length is wrong.
    pub(super) fn not_searched(self, claimed: u64, bytes: u64) -> Self {
        if let Self::NoEnd { value } = self {
            return Self::NoEndOfLong { value, claimed };
        }
        let problem = Box::new(self);
        Self::NotSearched { problem, bytes }
    }

    fn remedy(&self) -> &'static str {
        if self.is_of_a_whole_record() {
            "; add --skip-bad-lines to leave it out and go on at the next record"
        } else {
            ""
        }
    }
}

impl WarcError {
    /// Whether one record is at fault, and the rest can be read.
    #[must_use]
    pub fn is_bad_record(&self) -> bool {
        matches!(self, Self::BadRecord { .. })
    }
}
