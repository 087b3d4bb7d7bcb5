//! The problems of one document, with excerpts that are safe to print.

use std::str::Utf8Error;

use simshard_simhash::ParseFingerprintError;

use crate::document::{MAX_ID_BYTES, MAX_RECORD_BYTES, MAX_VALUES};
use crate::format::Format;
use crate::separator::Separator;
use crate::utf16::{UTF_16_REMEDY, is_utf16};

/// Characters of a bad value that an error shows.
const EXCERPT_CHARS: usize = 60;

/// What to do about a line that is too long.
pub(crate) const SKIP_REMEDY: &str = ": add --skip-bad-lines to leave such lines out";

/// What to do with tabs between columns that have names.
pub(crate) const TABLE_REMEDY: &str =
    "a table with a header and tabs is read with --format csv --separator tab";

/// Why a line is refused. Values are excerpts, safe to print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum LineProblem {
    #[error("the line takes more than {MAX_RECORD_BYTES} bytes, which is the limit{SKIP_REMEDY}")]
    TooLong,
    #[error("\"{value}\" is no text: its byte {byte} is not valid UTF-8")]
    NotUtf8 {
        value: String,
        /// Where the fault is, from 1.
        byte: usize,
    },
    #[error("the text looks like UTF-16: {UTF_16_REMEDY}")]
    Utf16,
    #[error("\"{value}\" is no text: its byte {byte} is NUL")]
    NulByte {
        value: String,
        /// Where it is, from 1.
        byte: usize,
    },
    #[error("the id \"{value}\" takes {bytes} bytes: at most {MAX_ID_BYTES} are allowed")]
    IdTooLong { value: String, bytes: usize },
    /// An id that TSV output cannot hold.
    #[error("the id \"{value}\" has a tab, a line break or a NUL byte, which TSV cannot hold")]
    IdNotTsv { value: String },
    #[error("\"{value}\" is no fingerprint: {error}")]
    NotFingerprint {
        value: String,
        error: ParseFingerprintError,
    },
    #[error(
        "\"{value}\" is no fingerprint: one is a number of 0 or more, unless --signed says that they are in \
         two's complement"
    )]
    Negative { value: String },
    #[error(
        "\"{value}\" is no fingerprint in two's complement, a number from -9223372036854775808 to \
         9223372036854775807: --signed says that all are"
    )]
    NotSigned { value: String },
    #[error("\"{value}\": expected two columns, id<TAB>fingerprint, found {found}")]
    NotTwoColumns { value: String, found: usize },
    /// A line of TSV that may be a row of a table.
    #[error("{problem}; {TABLE_REMEDY}")]
    Table { problem: Box<Self> },
    /// A row of CSV.
    #[error("the row has {}, and the header has {expected}", columns(*found))]
    OtherColumns { found: usize, expected: usize },
    /// A header that is one column, and has another separator in it.
    #[error(
        "the header is one column, and has {found} in it: add --separator '{found}' if that separates its values"
    )]
    OtherSeparator { found: Separator },
    /// CSV that ends within quotes: it is cut off, or a quote is missing.
    #[error("a quoted value does not end: the file is cut off, or a quote is missing")]
    OpenQuote,
    /// CSV whose quotes are escaped in another way than by a second one.
    #[error(
        "text follows the quote that ends a value: within quotes, CSV has \"\" for a quote, and not \\\"; no row \
         after it can be read"
    )]
    BehindQuote,
    /// CSV that has no line break, or in which a quote is missing.
    #[error(
        "the row takes more than {MAX_RECORD_BYTES} bytes: a quote may be missing; no row after it can be read"
    )]
    RowTooLong,
    #[error("the row has more than {MAX_VALUES} values; no row after it can be read")]
    TooManyValues,
    #[error("{value} is no JSON object: {reason}")]
    NotJsonObject { value: String, reason: String },
    /// A first line that looks like one of another format.
    #[error("{problem}: for lines such as this, add --format {format}")]
    OtherFormat { problem: Box<Self>, format: Format },
    #[error("{value} has no field \"{name}\"{}", choice(present, flags))]
    MissingField {
        value: String,
        name: String,
        /// The fields that there are, empty if there are none.
        present: String,
        flags: &'static str,
    },
    #[error("{value} has the field \"{name}\" more than once")]
    RepeatedField { value: String, name: String },
    #[error("the field \"{name}\" has weights of 2^64 or more in all")]
    WeightsTooLarge { name: String },
    #[error("the field \"{name}\" is {value}: expected {expected}")]
    WrongType {
        name: String,
        value: String,
        expected: &'static str,
    },
    /// A string of JSON that is no Unicode text.
    #[error(
        "the field \"{name}\" is no text: its {escape} is half of a surrogate pair, and the other half is missing"
    )]
    LoneSurrogate { name: String, escape: String },
    /// A value that gives its document no rank.
    #[error("the field \"{name}\" is {value}: expected {expected}, or {nothing}")]
    NoRank {
        name: String,
        value: String,
        expected: &'static str,
        /// How the lack of a value is written.
        nothing: &'static str,
    },
}

fn columns(number: usize) -> String {
    match number {
        1 => "1 column".to_owned(),
        more => format!("{more} columns"),
    }
}

fn choice(present: &str, flags: &str) -> String {
    match present {
        "" => String::new(),
        present => format!(": it has {present}; say with {flags} which to read"),
    }
}

/// The problem of a line that is not UTF-8.
pub(crate) fn not_utf8(bytes: &[u8], error: &Utf8Error) -> LineProblem {
    if is_utf16(bytes) {
        return LineProblem::Utf16;
    }
    // Enough bytes for the excerpt; a line may be long.
    let beginning = &bytes[..bytes.len().min(4 * EXCERPT_CHARS + 4)];
    LineProblem::NotUtf8 {
        value: excerpt(&String::from_utf8_lossy(beginning)),
        byte: error.valid_up_to() + 1,
    }
}

/// Refuses a text with a raw NUL byte in it.
pub(crate) fn refuse_nul(text: &str) -> Result<(), LineProblem> {
    match memchr::memchr(0, text.as_bytes()) {
        None => Ok(()),
        Some(place) => Err(LineProblem::NulByte {
            value: excerpt(text),
            byte: place + 1,
        }),
    }
}

/// The beginning of a value, control characters escaped. Quotes and backslashes stay, so that JSON
/// is shown as it was written.
pub(crate) fn excerpt(value: &str) -> String {
    beginning(value, EXCERPT_CHARS)
}

/// The first `most` characters of a text from outside, control characters escaped.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for character in text.chars().take(most) {
        match character {
            '"' | '\'' | '\\' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}
