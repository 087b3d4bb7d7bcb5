//! Why input cannot be used, told so that the fault can be found and put right.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use simshard_simhash::{Recipe, TakesNoTexts};

use crate::decompress::{Compression, damage};
use crate::document::MAX_RECORD_BYTES;
use crate::format::Format;
#[cfg(feature = "parquet")]
use crate::parquet::ParquetError;
use crate::problem::LineProblem;
use crate::skipped::Skipped;
use crate::warc::WarcError;
#[cfg(not(feature = "parquet"))]
use crate::without_parquet::WithoutParquet;

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
        /// The problem.
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
        /// The error of the decompressor.
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
        /// The problem.
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
        /// The format that its name suggests.
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
        /// The value that was given.
        flag: &'static str,
        /// The formats that have it.
        homes: Vec<Format>,
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

impl InputError {
    /// Makes a refusal of the system one to read this file.
    pub(crate) fn unreadable(file: impl Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Unreadable {
            file: file.to_string(),
            error,
        }
    }
}

fn listed(formats: &[Format]) -> String {
    let names: Vec<String> = formats.iter().map(Format::to_string).collect();
    names.join(" or ")
}
