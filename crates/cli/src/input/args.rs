//! The arguments that say where documents come from and how they are written.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use simshard_simhash::{Recipe, Takes};

use super::error::InputError;
#[cfg(feature = "parquet")]
use super::parquet::{ContentColumn, ParquetColumns};
use super::parse::{JsonContent, JsonFields};
use super::{Carries, paths, suggested};

/// Where documents come from and how they are written.
#[derive(Args, Clone, Debug)]
pub struct InputArgs {
    /// Files to read, or folders with `--format files`; `-` or nothing reads standard input
    ///
    /// A path with `*`, `?` or `[` in it that does not exist is a pattern: the files that match
    /// are read in the order of their names. Files may be compressed with gzip or zstd, whatever
    /// they are called.
    ///
    /// Commands that talk to a router check all input before they use any of it: a bad line stops
    /// them before anything is sent. For this, standard input and pipes are first copied to a
    /// temporary file; with --skip-bad-lines they are used as they arrive. The other commands
    /// read once. Parquet that does not stand in a file of its own is copied to a temporary file in any
    /// case.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// How documents are written [default: by the paths, else as the command says]
    ///
    /// Without this option a folder among the paths means `files`, unless it holds files with one of
    /// the extensions below: name these by a pattern. Paths that all end in .jsonl or .ndjson mean `jsonl`; likewise .tsv means `tsv`, .parquet `parquet`, .warc and .wet `warc`,
    /// each with or without a further .gz or .zst; it cannot be left out where only some end so.
    /// Anything else is `lines`, or `hashes` where a command compares fingerprints; .json and .csv are
    /// taken for `lines` only where this option says so.
    ///
    /// Input is UTF-8; a line, a text or a file is at most 8 MiB, an id at most 1024 bytes.
    #[arg(short, long, value_enum, help_heading = "Input")]
    pub format: Option<Format>,

    /// jsonl, parquet: the field or column that holds a document's id, a string or a number
    /// [default: id]
    #[arg(
        short = 'x',
        long,
        visible_alias = "id_column",
        value_name = "NAME",
        help_heading = "Input"
    )]
    pub id_field: Option<String>,

    /// jsonl, parquet: the field or column that holds a document's text [default: text]
    #[arg(
        short,
        long,
        visible_alias = "text_column",
        value_name = "NAME",
        help_heading = "Input"
    )]
    pub text_field: Option<String>,

    /// jsonl, parquet: the field or column that holds a document's fingerprint, instead of a text
    ///
    /// The fingerprint is a number or a string of decimal digits, 0 to 18446744073709551615.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "text_field",
        help_heading = "Input"
    )]
    pub fingerprint_field: Option<String>,

    /// jsonl: the field that holds a document's features, instead of a text [default: features,
    /// with the recipe `features`]
    ///
    /// Features are an object of weights by hash, {"17":2,"18":1}, or an array of hashes and
    /// [hash, weight] pairs, [[17,2],18]; hashes and weights are integers from 0 to
    /// 18446744073709551615, hashes may be strings.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["text_field", "fingerprint_field"],
        help_heading = "Input"
    )]
    pub features_field: Option<String>,

    /// Leave out lines, rows and records that cannot be read, and count them, instead of stopping
    ///
    /// Nothing is checked ahead, so standard input and pipes are used as they arrive.
    #[arg(long, help_heading = "Input")]
    pub skip_bad_lines: bool,
}

/// How documents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One fingerprint a line, a decimal number; the id is the line number, as for `lines`
    Hashes,
    /// One text a line; the id is the line number from 1, or path:line where there are several
    /// paths; blank lines are passed over
    Lines,
    /// One JSON object a line, see --id-field, --text-field, --fingerprint-field and
    /// --features-field; blank lines are passed over; also called `json`
    #[value(alias = "json")]
    Jsonl,
    /// One `id<TAB>fingerprint` a line; a first line whose second column is a word, such as
    /// `hash`, is a header; also called `hash`
    #[value(alias = "hash")]
    Tsv,
    /// A table in Parquet, a document a row, see --id-field, --text-field and --fingerprint-field;
    /// for programs that were built with it: `cargo build --release --features parquet`
    Parquet,
    /// A crawl's WET or WARC file, a document a record of plain text; the id is the address of the
    /// page; records of anything else, such as HTML, are counted and left out; also called `wet`
    #[value(alias = "wet")]
    Warc,
    /// One document a file, whatever it is called; folders are walked, without hidden files and
    /// links; the id is the path; binary files and those over 8 MiB are skipped
    Files,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hashes => "hashes",
            Self::Lines => "lines",
            Self::Jsonl => "jsonl",
            Self::Tsv => "tsv",
            Self::Parquet => "parquet",
            Self::Warc => "warc",
            Self::Files => "files",
        })
    }
}

impl InputArgs {
    const ID_FIELD: &str = "id";
    const TEXT_FIELD: &str = "text";
    const FEATURES_FIELD: &str = "features";

    /// Arguments that walk these files and folders, for callers with arguments of their own.
    /// Nothing is measured ahead, so a caller that wants only the first documents pays for no more.
    #[must_use]
    pub fn walking(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            format: Some(Format::Files),
            id_field: None,
            text_field: None,
            fingerprint_field: None,
            features_field: None,
            skip_bad_lines: true,
        }
    }

    /// The paths with patterns expanded, and the format asked for, or the one that the paths
    /// suggest, or the one that the command prefers.
    pub(super) fn resolve(&self, preferred: Format) -> Result<(Vec<PathBuf>, Format), InputError> {
        let paths = paths::expand(&self.paths)?;
        let format = match self.format {
            Some(format) => format,
            None => match suggested::format(&paths)? {
                Some(format) => format,
                None if preferred == Format::Lines => suggested::lines(&paths)?,
                None => preferred,
            },
        };
        self.check_fields(format)?;
        Ok((paths, format))
    }

    /// Refuses a field that the format does not have: ignoring it would fingerprint, say, the JSON
    /// around it.
    fn check_fields(&self, format: Format) -> Result<(), InputError> {
        let named = [Format::Jsonl, Format::Parquet].as_slice();
        let json = [Format::Jsonl].as_slice();
        for (flag, field, homes) in [
            ("--id-field", &self.id_field, named),
            ("--text-field", &self.text_field, named),
            ("--fingerprint-field", &self.fingerprint_field, named),
            ("--features-field", &self.features_field, json),
        ] {
            if field.is_some() && !homes.contains(&format) {
                return Err(InputError::FieldOfOtherFormat {
                    flag,
                    homes,
                    format,
                });
            }
        }
        Ok(())
    }

    /// The same arguments with the files that patterns among the paths match.
    ///
    /// # Errors
    /// If a pattern matches nothing, or is none.
    pub(crate) fn expanded(self) -> Result<Self, InputError> {
        Ok(Self {
            paths: paths::expand(&self.paths)?,
            ..self
        })
    }

    /// What is read, for people.
    pub(crate) fn names(&self) -> Vec<String> {
        if self.paths.is_empty() {
            return vec!["<stdin>".to_owned()];
        }
        let name = |path: &PathBuf| match is_stdin(path) {
            true => "<stdin>".to_owned(),
            false => path.display().to_string(),
        };
        self.paths.iter().map(name).collect()
    }

    /// Whether some of the documents come from standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|path| is_stdin(path))
    }

    /// What all documents carry.
    pub(super) fn carries(&self, format: Format, recipe: Recipe) -> Carries {
        match format {
            Format::Hashes | Format::Tsv => Carries::Fingerprints,
            Format::Lines | Format::Files | Format::Warc => Carries::Texts,
            Format::Jsonl => match self.json_fields(recipe).content {
                JsonContent::Fingerprint(_) => Carries::Fingerprints,
                JsonContent::Text(_) => Carries::Texts,
                JsonContent::Features(_) => Carries::Features,
            },
            Format::Parquet => match self.fingerprint_field {
                Some(_) => Carries::Fingerprints,
                None => Carries::Texts,
            },
        }
    }

    /// The columns to read.
    #[cfg(feature = "parquet")]
    pub(super) fn parquet_columns(&self) -> ParquetColumns {
        let content = match &self.fingerprint_field {
            Some(name) => ContentColumn::Fingerprint(name.clone()),
            None => ContentColumn::Text(named(&self.text_field, Self::TEXT_FIELD)),
        };
        ParquetColumns {
            id: named(&self.id_field, Self::ID_FIELD),
            content,
        }
    }

    /// The fields to read; the recipe says whether they are texts or features unless the arguments
    /// do.
    pub(super) fn json_fields(&self, recipe: Recipe) -> JsonFields {
        let content = match (&self.fingerprint_field, &self.features_field) {
            (Some(name), _) => JsonContent::Fingerprint(name.clone()),
            (None, Some(name)) => JsonContent::Features(name.clone()),
            (None, None) if recipe.takes() == Takes::Features && self.text_field.is_none() => {
                JsonContent::Features(Self::FEATURES_FIELD.to_owned())
            }
            (None, None) => JsonContent::Text(named(&self.text_field, Self::TEXT_FIELD)),
        };
        JsonFields {
            id: named(&self.id_field, Self::ID_FIELD),
            content,
        }
    }
}

/// The name of a field, given or not.
fn named(given: &Option<String>, default: &str) -> String {
    given.clone().unwrap_or_else(|| default.to_owned())
}

/// Whether a path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}
