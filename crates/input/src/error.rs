//! Why input cannot be used, told so that the fault can be found and put right.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use simshard_simhash::{Recipe, TakesNoTexts};

use crate::arrow::ArrowError;
use crate::decompress::{Compression, damage};
use crate::document::MAX_RECORD_BYTES;
use crate::format::Format;
use crate::kinds::Kinds;
use crate::looks::Looks;
#[cfg(feature = "parquet")]
use crate::parquet::ParquetError;
use crate::passed::Passed;
use crate::problem::{LineProblem, TABLE_REMEDY, excerpt};
use crate::skipped::Skipped;
use crate::warc::WarcError;
#[cfg(not(feature = "parquet"))]
use crate::without_parquet::WithoutParquet;

/// Why input cannot be used. Each message is complete in itself. A `file` is a path, or `<stdin>`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum InputError {
    #[error("{file}:{line}: {problem}")]
    BadLine {
        file: String,
        /// Its number, from 1.
        line: u64,
        problem: LineProblem,
    },
    #[error("cannot read {file}: {error}")]
    Unreadable { file: String, error: io::Error },
    /// Compressed data that cannot be decompressed: cut off, or changed.
    #[error("{file}:{line}: {}", damage(*compression, error))]
    Damaged {
        file: String,
        /// The line that could not be read to its end, from 1.
        line: u64,
        compression: Compression,
        error: io::Error,
    },
    #[error("{file} changed while it was read: run the command again once nothing writes to it")]
    Changed { file: String },
    /// A format whose records are not written again.
    #[error("documents of --format {format} are not written again: {}", instead(*format))]
    NotRewritten { format: Format },
    /// A preference that needs texts or fields, for a format without them.
    #[error("--keep {preference} needs {needs}, and the format is {format}: choose another")]
    NoPreference {
        preference: String,
        needs: &'static str,
        format: Format,
    },
    /// A field that ranks documents, and that none of them has.
    #[error(
        "no document has a value in the field \"{}\", so --keep {preference} prefers none: check its \
         name, or choose another",
        excerpt(field)
    )]
    NoRanks { preference: String, field: String },
    /// Rows that share a line cannot be left out by lines.
    #[error(
        "{file}:{line}: rows end in bare carriage returns, and are not written again: write the file with \
         line breaks first"
    )]
    BareReturns { file: String, line: u64 },
    #[error("no file matches the pattern {pattern}")]
    NoMatch { pattern: String },
    #[error("{pattern} is neither a file nor a pattern: {reason}")]
    BadPattern {
        pattern: String,
        reason: &'static str,
    },
    #[error(
        "{} is a folder: --format {format} reads files, name those in it",
        path.display()
    )]
    Folder { path: PathBuf, format: Format },
    #[error("--format files reads files and folders, not standard input: name one, and not `-`")]
    FilesFromStdin,
    #[error("standard input (`-`) is named more than once")]
    StdinTwice,
    /// A stream or pipe, where input is needed that can be read again by another process.
    #[error("--checkpoint needs input that can be read again, and {} cannot: write it to a file first", path.display())]
    ReadOnce { path: PathBuf },
    #[error(
        "{} looks like {suggested}, {} does not: say with --format what they all are, or with --format \
         and --skip-formats which are read",
        path.display(),
        other.display()
    )]
    MixedFormats {
        path: PathBuf,
        suggested: Format,
        other: PathBuf,
    },
    /// Content that looks like another format than its name, or the default of standard input, says.
    #[error(
        "{file} looks like {looks}, and would be read as {taken_for}: {}, or --format {taken_for} \
         if it is that",
        looks.remedy()
    )]
    OtherContent {
        file: String,
        looks: Looks,
        taken_for: Format,
    },
    /// A file of another format or of many documents among those that would be one document each.
    #[error(
        "{} looks like {looks}, and of a folder each file is read as one document: name such files alone, and \
         {}, or add --format files for all files, or --skip-formats for those of no format",
        path.display(),
        looks.remedy()
    )]
    OtherContentInFolder { path: PathBuf, looks: Looks },
    /// A name that says nothing, or a format that is not read.
    #[error("{}", unknown(path, *looks))]
    UnknownFormat { path: PathBuf, looks: Option<Looks> },
    #[error(
        "{} looks like {suggested}, and of a folder each file is read as one document: name \
         '{pattern}' instead of the folder, or add --format {suggested} for all such files in it, --format \
         files for all files, or --skip-formats for those of no format",
        path.display()
    )]
    DataInFolder {
        path: PathBuf,
        suggested: Format,
        pattern: String,
    },
    #[error("no file is {format}: {}", none_of(left_out, *passed_over))]
    NoneOfFormat {
        format: Format,
        left_out: Kinds,
        /// Whether links or hidden files are among them.
        passed_over: bool,
    },
    /// A list of the files of a set, as the library `datasets` writes it.
    #[error("{} does not list the files of a saved set: {reason}", file.display())]
    BadState { file: PathBuf, reason: String },
    #[error("there is no file to read in {folders}: {passed}")]
    NoFiles { folders: String, passed: Passed },
    #[error("none of the files is a document, a text of at most {MAX_RECORD_BYTES} bytes: {0}")]
    NoDocuments(Skipped),
    #[error(
        "no record of the input holds a text: {0}; add --skip-bad-lines if that is as it should be"
    )]
    NoTexts(Kinds),
    /// All archives are empty.
    #[error("{first}; add --skip-bad-lines if that is as it should be")]
    NoRecords { first: String },
    /// Bad lines, rows and records are skipped, and there is nothing else.
    #[error("nothing was read: {skipped}; the first: {first}")]
    AllBad { skipped: Skipped, first: String },
    /// The documents carry texts, and the recipe is for something else.
    #[error("{0}")]
    TakesNoTexts(TakesNoTexts),
    #[error(
        "these documents carry features, and recipe {recipe} takes texts: add --recipe features"
    )]
    FeaturesNeedTheirRecipe { recipe: Recipe },
    /// Only texts have words to count.
    #[error("--min-words counts the words of texts, and these documents carry none: leave it out")]
    NoWords,
    /// A row of a Parquet file, or all of it.
    #[cfg(feature = "parquet")]
    #[error("{0}")]
    Parquet(ParquetError),
    /// A row of an Arrow file, or all of it.
    #[error("{0}")]
    Arrow(ArrowError),
    /// A record of a WARC file, or all of it.
    #[error("{0}")]
    Warc(WarcError),
    /// Parquet, for a program that was built without it.
    #[cfg(not(feature = "parquet"))]
    #[error("{0}")]
    WithoutParquet(WithoutParquet),
    #[error(
        "{flag} belongs to --format {}, but the format is {format}{}",
        listed(homes),
        instead_of_tsv(*format, homes)
    )]
    FieldOfOtherFormat {
        flag: &'static str,
        homes: Vec<Format>,
        format: Format,
    },
    #[error(
        "{} is not a UTF-8 path, and with several paths each id begins with its path",
        path.display()
    )]
    PathIsNoId { path: PathBuf },
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

/// What to do with a format that is not written again.
fn instead(format: Format) -> &'static str {
    match format {
        Format::Arrow => {
            "write the input as Parquet first, with `write_table` of pyarrow.parquet, or `to_parquet` of a set that \
             datasets saved, and give --format parquet or a name in .parquet"
        }
        Format::Hashes
        | Format::Lines
        | Format::Jsonl
        | Format::Tsv
        | Format::Csv
        | Format::Parquet
        | Format::Warc
        | Format::Files => {
            "`simshard find-clusters` lists them by cluster, for a program of your own to choose from"
        }
    }
}

fn unknown(path: &Path, looks: Option<Looks>) -> String {
    let name = path.display();
    match looks {
        Some(looks) => format!("{name} looks like {looks}: {}", looks.remedy()),
        None => format!(
            "the name of {name} does not say what it holds: add --format lines if each line is a \
             text, or --format files if the whole is one"
        ),
    }
}

fn none_of(left_out: &Kinds, passed_over: bool) -> String {
    if left_out.is_empty() {
        return "the folder has none".to_owned();
    }
    if passed_over {
        return format!("{left_out}; links and hidden files are read where they are named");
    }
    left_out.to_string()
}

/// What a table is that is no `tsv`, if it can have what was asked for.
fn instead_of_tsv(format: Format, homes: &[Format]) -> String {
    if format == Format::Tsv && homes.contains(&Format::Csv) {
        return format!("; {TABLE_REMEDY}");
    }
    String::new()
}

fn listed(formats: &[Format]) -> String {
    let names: Vec<String> = formats.iter().map(Format::to_string).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        Some(_) | None => names.concat(),
    }
}
