//! What can be wrong with input, told so that it can be found and put right.

use std::io;
use std::path::PathBuf;
use std::str::Utf8Error;

use simshard_client::MAX_ID_BYTES;
use simshard_simhash::{ParseFingerprintError, Recipe, TakesNoTexts};

use super::decompress::damage;
#[cfg(feature = "parquet")]
use super::parquet::ParquetError;
use super::warc::WarcError;
use super::{Compression, Format, MAX_RECORD_BYTES, Skipped};
#[cfg(not(feature = "parquet"))]
use crate::without_parquet::WithoutParquet;

/// How much of a bad value is shown.
const EXCERPT_CHARS: usize = 60;

/// Why input cannot be used. Each message is complete in itself.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// One line breaks the rules of its format.
    #[error("{file}:{line}: {problem}")]
    BadLine {
        /// Its path, or `<stdin>`.
        file: String,
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// The operating system refused, at the start or midway.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// Its path, or `<stdin>`.
        file: String,
        /// The refusal.
        error: io::Error,
    },
    /// Compressed data that cannot be decompressed: cut off, or changed.
    #[error("{file}:{line}: {}", damage(*compression, error))]
    Damaged {
        /// Its path, or `<stdin>`.
        file: String,
        /// The line that could not be read to its end, from 1.
        line: u64,
        /// How it is compressed.
        compression: Compression,
        /// What the decompressor found.
        error: io::Error,
    },
    /// A pattern that no path matches.
    #[error("no file matches the pattern {pattern}")]
    NoMatch {
        /// The pattern as given.
        pattern: String,
    },
    /// A pattern that is none.
    #[error("{pattern} is neither a file nor a pattern: {reason}")]
    BadPattern {
        /// The pattern as given.
        pattern: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A folder where only files can be read.
    #[error(
        "{} is a folder: only --format files reads folders, {format} reads files",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The format in force.
        format: Format,
    },
    /// `files` has no paths, or standard input among them.
    #[error("--format files reads files and folders, not standard input: name one, and not `-`")]
    FilesFromStdin,
    /// Standard input can be read once only.
    #[error("standard input (`-`) is named more than once")]
    StdinTwice,
    /// A stream or pipe, where input is needed that can be read again by another process.
    #[error("--checkpoint needs input that can be read again, and {} cannot: write it to a file first", path.display())]
    ReadOnce {
        /// The pipe, or words for standard input.
        path: PathBuf,
    },
    /// The paths suggest more than one format, or only some of them suggest one.
    #[error(
        "{} looks like {suggested}, {} does not: say with --format what they all are",
        path.display(),
        other.display()
    )]
    MixedFormats {
        /// A path that suggests a format.
        path: PathBuf,
        /// Which.
        suggested: Format,
        /// A path that does not suggest it.
        other: PathBuf,
    },
    /// A file that would be read as lines of text, and is called as if it held something else.
    #[error(
        "the lines of {} are no texts by its name: {hint}, or --format lines if they are texts",
        path.display()
    )]
    LinesOfData {
        /// The file.
        path: PathBuf,
        /// How to read it.
        hint: &'static str,
    },
    /// A file of many documents in a folder, of which each file would be one document.
    #[error(
        "{} looks like {suggested}, and of a folder each file is read as one document: name \
         '{pattern}' instead of the folder, or add --format files",
        path.display()
    )]
    DataInFolder {
        /// The first such file.
        path: PathBuf,
        /// What it looks like.
        suggested: Format,
        /// What all such files below the folder match.
        pattern: String,
    },
    /// `files` found files, and no document among them.
    #[error("none of the files is a document, a text of at most {MAX_RECORD_BYTES} bytes: {0}")]
    NoDocuments(Skipped),
    /// The documents carry texts, and the recipe is for something else.
    #[error("{0}")]
    TakesNoTexts(TakesNoTexts),
    /// The documents carry features, and the recipe is for texts.
    #[error(
        "these documents carry features, and recipe {recipe} takes texts: add --recipe features"
    )]
    FeaturesNeedTheirRecipe {
        /// The recipe in force.
        recipe: Recipe,
    },
    /// A row of a Parquet file, or all of it.
    #[cfg(feature = "parquet")]
    #[error("{0}")]
    Parquet(ParquetError),
    /// A record of a WARC file, or all of it.
    #[error("{0}")]
    Warc(WarcError),
    /// Parquet, for a program that was built without it.
    #[cfg(not(feature = "parquet"))]
    #[error("{0}")]
    WithoutParquet(WithoutParquet),
    /// A field was named for a format that has none of the kind.
    #[error(
        "{flag} belongs to --format {}, but the format is {format}",
        listed(homes)
    )]
    FieldOfOtherFormat {
        /// What was given.
        flag: &'static str,
        /// The formats that have it.
        homes: &'static [Format],
        /// The format in force.
        format: Format,
    },
    /// The path would be part of an id, and ids are UTF-8.
    #[error(
        "{} is not a UTF-8 path, and with several paths each id begins with its path",
        path.display()
    )]
    PathIsNoId {
        /// The path.
        path: PathBuf,
    },
}

fn listed(formats: &[Format]) -> String {
    let names: Vec<String> = formats.iter().map(Format::to_string).collect();
    names.join(" or ")
}

/// What is wrong with a line. Values are excerpts, safe to print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineProblem {
    /// More than [`MAX_RECORD_BYTES`].
    #[error(
        "the line takes more than {MAX_RECORD_BYTES} bytes, which is the limit: add \
         --skip-bad-lines to leave such lines out"
    )]
    TooLong,
    /// Bytes that are no UTF-8.
    #[error("\"{value}\" is no text: its byte {byte} is not valid UTF-8")]
    NotUtf8 {
        /// The beginning of the line.
        value: String,
        /// Where the fault is, from 1.
        byte: usize,
    },
    /// A raw NUL byte, which no text has.
    #[error("\"{value}\" is no text: its byte {byte} is NUL")]
    NulByte {
        /// The beginning of the line.
        value: String,
        /// Where it is, from 1.
        byte: usize,
    },
    /// An id of more than [`MAX_ID_BYTES`].
    #[error("the id \"{value}\" takes {bytes} bytes: at most {MAX_ID_BYTES} are allowed")]
    IdTooLong {
        /// Its beginning.
        value: String,
        /// Its length.
        bytes: usize,
    },
    /// An id that cannot stand in TSV, where it is to be printed as TSV.
    #[error("the id \"{value}\" has a tab, a line break or a NUL byte, which TSV cannot hold")]
    IdNotTsv {
        /// Its beginning.
        value: String,
    },
    /// No unsigned 64-bit decimal.
    #[error("\"{value}\" is no fingerprint: {error}")]
    NotFingerprint {
        /// What is there.
        value: String,
        /// Why it is none.
        error: ParseFingerprintError,
    },
    /// A TSV line with other than two columns.
    #[error("\"{value}\": expected two columns, id<TAB>fingerprint, found {found}")]
    NotTwoColumns {
        /// The line.
        value: String,
        /// The number of its columns.
        found: usize,
    },
    /// No JSON, or JSON other than an object.
    #[error("{value} is no JSON object: {reason}")]
    NotJsonObject {
        /// The line.
        value: String,
        /// What was expected.
        reason: String,
    },
    /// A first line that is written as those of another format are.
    #[error("{problem}: for lines such as this, add --format {format}")]
    OtherFormat {
        /// What is wrong with it here.
        problem: Box<Self>,
        /// The other format.
        format: Format,
    },
    /// A JSON object without a field that it needs.
    #[error("{value} has no field \"{name}\"{}", choice(present, flags))]
    MissingField {
        /// The object.
        value: String,
        /// The field.
        name: String,
        /// The fields that there are, empty if there are none.
        present: String,
        /// The arguments that name another.
        flags: &'static str,
    },
    /// A JSON object that says something twice.
    #[error("{value} has the field \"{name}\" more than once")]
    RepeatedField {
        /// The object.
        value: String,
        /// The field.
        name: String,
    },
    /// Weights whose sum is too large to count.
    #[error("the field \"{name}\" has weights of 2^64 or more in all")]
    WeightsTooLarge {
        /// The field.
        name: String,
    },
    /// A JSON field of the wrong type.
    #[error("the field \"{name}\" is {value}: expected {expected}")]
    WrongType {
        /// The field.
        name: String,
        /// What it holds.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
}

fn choice(present: &str, flags: &str) -> String {
    match present {
        "" => String::new(),
        present => format!(": it has {present}; say with {flags} which to read"),
    }
}

/// What is wrong with bytes that are no text.
pub(super) fn not_utf8(bytes: &[u8], error: &Utf8Error) -> LineProblem {
    // More than is shown, but not more than need be.
    let beginning = &bytes[..bytes.len().min(4 * EXCERPT_CHARS + 4)];
    LineProblem::NotUtf8 {
        value: excerpt(&String::from_utf8_lossy(beginning)),
        byte: error.valid_up_to() + 1,
    }
}

/// Refuses a text with a raw NUL byte in it.
pub(super) fn refuse_nul(text: &str) -> Result<(), LineProblem> {
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
pub(super) fn excerpt(value: &str) -> String {
    beginning(value, EXCERPT_CHARS)
}

/// The first `most` characters of a text from outside, control characters escaped.
pub(super) fn beginning(text: &str, most: usize) -> String {
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
