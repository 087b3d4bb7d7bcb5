//! The formats that documents are written in.

use std::fmt;

use clap::ValueEnum;
use clap::builder::PossibleValue;

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
    /// A table of comma-separated values with a header, a document a row, see --separator, --id-field,
    /// --text-field and --fingerprint-field; quoted values may hold separators and line breaks
    Csv,
    /// A table in Parquet, a document a row, see --id-field, --text-field and --fingerprint-field;
    /// for programs that were built with it: `cargo build --release --features parquet`
    Parquet,
    /// A table in Arrow, as a file (Feather 2) or a stream, a document a row, see --id-field, --text-field and
    /// --fingerprint-field; also called `feather`
    #[value(alias = "feather")]
    Arrow,
    /// A crawl's WET or WARC file, a document a record of plain text or HTML, see --html; the id is the address of the
    /// page. Records of anything else are counted and left out. Also called `wet`
    #[value(alias = "wet")]
    Warc,
    /// One document a file, whatever it is called; the id is the path. Folders are walked, without hidden files and
    /// links. Binary files and those over 8 MiB are skipped. Files .html, .htm and .xhtml are pages, see --html
    Files,
}

impl Format {
    /// The options about fields and pages that this format takes.
    const fn takes(self) -> &'static [&'static str] {
        match self {
            Self::Hashes | Self::Lines | Self::Tsv => &[],
            Self::Warc | Self::Files => &["--html"],
            Self::Csv => &[
                "--id-field",
                "--id",
                "--text-field",
                "--fingerprint-field",
                "--separator",
                "--html",
            ],
            Self::Parquet | Self::Arrow => &[
                "--id-field",
                "--id",
                "--text-field",
                "--fingerprint-field",
                "--html",
            ],
            Self::Jsonl => &[
                "--id-field",
                "--id",
                "--text-field",
                "--fingerprint-field",
                "--features-field",
                "--html",
            ],
        }
    }

    /// Whether ids are the numbers of lines, which name their file where there are several.
    #[must_use]
    pub const fn has_line_ids(self) -> bool {
        match self {
            Self::Hashes | Self::Lines => true,
            Self::Jsonl
            | Self::Tsv
            | Self::Csv
            | Self::Parquet
            | Self::Arrow
            | Self::Warc
            | Self::Files => false,
        }
    }

    /// Whether names of files say that they are of it, so that a folder can be searched for them.
    pub(crate) const fn has_names(self) -> bool {
        match self {
            Self::Hashes | Self::Lines => false,
            Self::Jsonl
            | Self::Tsv
            | Self::Csv
            | Self::Parquet
            | Self::Arrow
            | Self::Warc
            | Self::Files => true,
        }
    }

    /// Whether a file is a table of columns, which would be no text as one document.
    pub(crate) const fn is_table(self) -> bool {
        match self {
            Self::Parquet | Self::Arrow => true,
            Self::Hashes
            | Self::Lines
            | Self::Jsonl
            | Self::Tsv
            | Self::Csv
            | Self::Warc
            | Self::Files => false,
        }
    }

    /// Whether documents have fields beside those that are read.
    pub(crate) const fn has_other_fields(self) -> bool {
        match self {
            Self::Jsonl | Self::Csv | Self::Parquet | Self::Arrow | Self::Warc => true,
            Self::Hashes | Self::Lines | Self::Tsv | Self::Files => false,
        }
    }

    /// Whether bare fingerprints are all that it has: its documents are kept without ids.
    pub(crate) const fn is_bare(self) -> bool {
        match self {
            Self::Hashes => true,
            Self::Lines
            | Self::Jsonl
            | Self::Tsv
            | Self::Csv
            | Self::Parquet
            | Self::Arrow
            | Self::Warc
            | Self::Files => false,
        }
    }

    /// The formats that take an option.
    pub(crate) fn that_take(option: &str) -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|format| format.takes().contains(&option))
            .collect()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}
