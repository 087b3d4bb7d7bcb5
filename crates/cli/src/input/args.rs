//! The arguments that say where documents come from and how they are written.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};

use super::error::InputError;
use super::json::{JsonContent, JsonFields};

/// Where documents come from and how they are written.
///
/// All input is read and checked before the first document is used, so that a bad line stops the
/// command before it has sent or printed anything.
#[derive(Args, Clone, Debug)]
pub struct InputArgs {
    /// Files to read, or folders with `--format files`; `-` or nothing reads standard input
    ///
    /// All input is checked before any of it is used: a bad line stops the command before
    /// anything is sent or printed. For this, standard input and pipes are first copied to a
    /// temporary file; with --skip-bad-lines they are used as they arrive.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// How documents are written [default: by the paths, else lines]
    ///
    /// Without this option a folder among the paths means `files`; paths that all end in .jsonl
    /// or .ndjson mean `jsonl`; paths that all end in .tsv mean `tsv`; it cannot be left out where
    /// only some end so. Anything else is `lines`.
    ///
    /// Input is UTF-8; a line or a file is at most 8 MiB, an id at most 1024 bytes.
    #[arg(long, value_enum, help_heading = "Input")]
    pub format: Option<Format>,

    /// jsonl: the field that holds a document's id, a string or a number [default: id]
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub id_field: Option<String>,

    /// jsonl: the field that holds a document's text [default: text]
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub text_field: Option<String>,

    /// jsonl: the field that holds a document's fingerprint, instead of a text
    ///
    /// The fingerprint is a number or a string of decimal digits, 0 to 18446744073709551615.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "text_field",
        help_heading = "Input"
    )]
    pub fingerprint_field: Option<String>,

    /// Leave out lines that cannot be read, and count them, instead of stopping
    ///
    /// Nothing is checked ahead, so standard input and pipes are used as they arrive.
    #[arg(long, help_heading = "Input")]
    pub skip_bad_lines: bool,
}

/// How documents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One text a line; the id is the line number from 1, or path:line where there are several
    /// paths; blank lines are passed over
    Lines,
    /// One JSON object a line, see --id-field, --text-field and --fingerprint-field; blank lines
    /// are passed over
    Jsonl,
    /// One `id<TAB>fingerprint` a line; a first line whose second column is a word, such as
    /// `hash`, is a header
    Tsv,
    /// One document a file; folders are walked, without hidden files and links; the id is the
    /// path; binary files are skipped
    Files,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "lines",
            Self::Jsonl => "jsonl",
            Self::Tsv => "tsv",
            Self::Files => "files",
        })
    }
}

impl InputArgs {
    const ID_FIELD: &str = "id";
    const TEXT_FIELD: &str = "text";

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
            skip_bad_lines: true,
        }
    }

    /// The format asked for, or the one that the paths suggest.
    pub(super) fn effective_format(&self) -> Result<Format, InputError> {
        let format = match self.format {
            Some(format) => format,
            None => suggested_format(&self.paths)?,
        };
        // Ignoring a field would fingerprint the JSON around it.
        for (flag, field) in [
            ("--id-field", &self.id_field),
            ("--text-field", &self.text_field),
            ("--fingerprint-field", &self.fingerprint_field),
        ] {
            if field.is_some() && format != Format::Jsonl {
                return Err(InputError::FieldNeedsJsonl { flag, format });
            }
        }
        Ok(format)
    }

    /// Whether some of the documents come from standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|path| is_stdin(path))
    }

    pub(super) fn json_fields(&self) -> JsonFields {
        let name = |given: &Option<String>, default: &str| match given {
            Some(name) => name.clone(),
            None => default.to_owned(),
        };
        let content = match &self.fingerprint_field {
            Some(name) => JsonContent::Fingerprint(name.clone()),
            None => JsonContent::Text(name(&self.text_field, Self::TEXT_FIELD)),
        };
        JsonFields {
            id: name(&self.id_field, Self::ID_FIELD),
            content,
        }
    }
}

/// Whether a path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn suggested_format(paths: &[PathBuf]) -> Result<Format, InputError> {
    if paths.iter().any(|path| !is_stdin(path) && path.is_dir()) {
        return Ok(Format::Files);
    }
    let suggestions = || paths.iter().map(|path| (path, by_extension(path)));
    let Some((path, suggested)) = suggestions().find_map(|(path, format)| Some((path, format?)))
    else {
        return Ok(Format::Lines);
    };
    // Reading all of them as lines would fingerprint the JSON or the TSV.
    match suggestions().find(|(_, format)| *format != Some(suggested)) {
        None => Ok(suggested),
        Some((other, _)) => Err(InputError::MixedFormats {
            path: path.clone(),
            suggested,
            other: other.clone(),
        }),
    }
}

fn by_extension(path: &Path) -> Option<Format> {
    let extension = path.extension()?;
    if extension.eq_ignore_ascii_case("jsonl") || extension.eq_ignore_ascii_case("ndjson") {
        return Some(Format::Jsonl);
    }
    if extension.eq_ignore_ascii_case("tsv") {
        return Some(Format::Tsv);
    }
    None
}
