//! The formats that documents are written in.

use std::fmt;

/// How documents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One fingerprint a line, a decimal number.
    Hashes,
    /// One text a line.
    Lines,
    /// One JSON object a line.
    Jsonl,
    /// One `id<TAB>fingerprint` a line.
    Tsv,
    /// A table in Parquet, a document a row.
    Parquet,
    /// A crawl's WET or WARC file, a document a record of plain text.
    Warc,
    /// One document a file, whatever it is called.
    Files,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] = [
        Self::Hashes,
        Self::Lines,
        Self::Jsonl,
        Self::Tsv,
        Self::Parquet,
        Self::Warc,
        Self::Files,
    ];
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
