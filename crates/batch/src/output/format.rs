//! The forms of results, and the writer of each.

use std::io;
use std::path::Path;

use clap::ValueEnum;
use simshard_input::{Ids, Notation, WithoutParquet};

use super::error::OutputError;
use super::file::{self, Output};
use super::json::Json;
use super::jsonl::Jsonl;
#[cfg(feature = "parquet")]
use super::parquet::Parquet;
use super::sinks::{Rows, Sink};
use super::text::Text;
use super::tsv::Tsv;
use crate::member::BareName;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// One JSON array a line: a pair, or all members of a cluster. Documents with ids are strings,
    /// bare hashes are numbers. For `hash` and `scan`, the same as `jsonl`
    Json,
    /// One JSON object a line: a pair, a member of a cluster, or a document; fingerprints are
    /// strings
    Jsonl,
    /// A table of the same columns, see `jsonl`, with numbers as numbers; for programs that were
    /// built with it: `cargo build --release --features parquet`
    Parquet,
    /// Under a header, pairs as `id_a<TAB>id_b<TAB>distance`, members of clusters as
    /// `id<TAB>hash<TAB>cluster`, documents as `id<TAB>hash`; refuses ids with tabs, line
    /// breaks and NUL bytes
    Tsv,
}

/// The extensions that name formats, in any case.
const EXTENSIONS: [(&str, OutputFormat); 5] = [
    ("json", OutputFormat::Json),
    ("jsonl", OutputFormat::Jsonl),
    ("ndjson", OutputFormat::Jsonl),
    ("tsv", OutputFormat::Tsv),
    ("parquet", OutputFormat::Parquet),
];

/// They as a sentence lists them.
fn known_extensions() -> String {
    let names = EXTENSIONS.map(|(name, _)| format!(".{name}"));
    let [others @ .., last] = &names;
    format!("{} or {last}", others.join(", "))
}

impl OutputFormat {
    /// The format that a path's extension names; `usual` for standard output and names without an
    /// extension.
    ///
    /// # Errors
    /// If the extension names no format.
    pub fn of_path(path: Option<&Path>, usual: Self) -> Result<Self, OutputError> {
        let Some((path, extension)) = path.and_then(|path| Some((path, path.extension()?))) else {
            return Ok(usual);
        };
        file::refuse_compressed(path)?;
        let is_named = |(name, _): &(&str, Self)| extension.eq_ignore_ascii_case(name);
        match EXTENSIONS.into_iter().find(is_named) {
            Some((_, format)) => Ok(format),
            None => Err(OutputError::Refused {
                output: path.display().to_string(),
                reason: format!(
                    "its extension names no format: say one with --output-format, or end the name \
                     in {}",
                    known_extensions()
                ),
            }),
        }
    }

    /// The format itself, if this program can write it.
    ///
    /// # Errors
    /// If it was built without it.
    pub fn available(self) -> Result<Self, WithoutParquet> {
        #[cfg(not(feature = "parquet"))]
        if self == Self::Parquet {
            return Err(WithoutParquet);
        }
        Ok(self)
    }

    /// The ids that it can hold.
    #[must_use]
    pub fn ids(self) -> Ids {
        match self {
            Self::Json | Self::Jsonl | Self::Parquet => Ids::Any,
            Self::Tsv => Ids::Tsv,
        }
    }

    /// The name of a document of bare hashes, which have no ids.
    #[must_use]
    pub fn bare_name(self) -> BareName {
        match self {
            Self::Json => BareName::Fingerprint,
            Self::Jsonl | Self::Tsv | Self::Parquet => BareName::Line,
        }
    }

    /// A writer of rows of this kind, with fingerprints as numbers in this notation.
    pub fn sink(self, rows: Rows, notation: Notation, output: Output) -> io::Result<Box<dyn Sink>> {
        Ok(match self {
            Self::Json => Box::new(Json::new(notation, output)),
            Self::Jsonl => Box::new(Jsonl(Text::new(notation, output))),
            Self::Tsv => Box::new(Tsv::new(rows, notation, output)),
            #[cfg(feature = "parquet")]
            Self::Parquet => Box::new(Parquet::new(rows, notation, output)?),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => return Err(io::Error::other(WithoutParquet)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_name_formats() {
        use OutputFormat::{Json, Jsonl, Parquet, Tsv};
        for (path, format) in [
            ("pairs.json", Some(Json)),
            ("pairs.jsonl", Some(Jsonl)),
            ("pairs.NDJSON", Some(Jsonl)),
            ("a.b/pairs.tsv", Some(Tsv)),
            ("a.Parquet", Some(Parquet)),
            ("tsv", Some(Tsv)),
            ("-", Some(Tsv)),
            ("/dev/null", Some(Tsv)),
            ("pairs.csv", None),
            ("pairs.tsv.gz", None),
        ] {
            let found = OutputFormat::of_path(Some(Path::new(path)), Tsv);
            assert_eq!(found.ok(), format, "{path}");
        }
        assert_eq!(OutputFormat::of_path(None, Json).unwrap(), Json);
    }

    #[test]
    fn a_refusal_lists_the_extensions() {
        assert_eq!(
            known_extensions(),
            ".json, .jsonl, .ndjson, .tsv or .parquet"
        );
    }
}
