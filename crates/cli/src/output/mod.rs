//! Where the batch commands write, and in which form.
//!
//! | format    | a pair                                  | clusters                                     | a document                 |
//! |-----------|-----------------------------------------|----------------------------------------------|----------------------------|
//! | `json`    | `[4, 5]`, or `["a", "b"]` by ids        | `[4, 5, 7]`: all members of one on a line    | as `jsonl`                 |
//! | `jsonl`   | an object with both documents' fields   | an object a member: id, fingerprint, cluster | an object: id, fingerprint |
//! | `tsv`     | `id_a<TAB>id_b<TAB>distance`            | `id<TAB>hash<TAB>cluster`, a line a member   | `id<TAB>hash`              |
//! | `parquet` | a row with both documents' fields       | a row a member: id, fingerprint, cluster     | a row: id, fingerprint     |
//!
//! `parquet` is there in programs that were built with the feature of its name.
//!
//! Commands know [`PairSink`], [`ClusterSink`] and [`DocumentSink`] alone: a further format is one
//! more of each.

mod error;
mod escaped_json;
mod file;
mod json;
mod jsonl;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "parquet")]
mod parquet_sinks;
mod place;
mod replaced;
mod same_file;
mod text;
mod tsv;
mod unfinished;

use std::borrow::Cow;
use std::io;
use std::path::Path;

use clap::ValueEnum;
use simshard_simhash::Fingerprint;

pub use error::OutputError;
pub(crate) use escaped_json::write_json;
pub use file::{Complete, Output};
pub(crate) use replaced::Replaced;

use crate::exit::UsageError;
use crate::input::Ids;
#[cfg(not(feature = "parquet"))]
use crate::without_parquet::WithoutParquet;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// One JSON array a line: a pair, or all members of a cluster; documents with ids are strings,
    /// bare hashes are numbers; for `hash` and `scan`, the same as `jsonl`
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
    pub fn available(self) -> Result<Self, UsageError> {
        #[cfg(not(feature = "parquet"))]
        if self == Self::Parquet {
            return Err(UsageError(WithoutParquet.to_string()));
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

    /// What stands for a document of bare hashes, which have no ids.
    #[must_use]
    pub fn bare_name(self) -> BareName {
        match self {
            Self::Json => BareName::Fingerprint,
            Self::Jsonl | Self::Tsv | Self::Parquet => BareName::Line,
        }
    }

    /// A writer of pairs.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn pairs(self, output: Output) -> io::Result<Box<dyn PairSink>> {
        Ok(match self {
            Self::Json => Box::new(json::JsonPairs::new(output)),
            Self::Jsonl => Box::new(jsonl::JsonlPairs::new(output)),
            Self::Tsv => Box::new(tsv::TsvPairs::new(output)),
            #[cfg(feature = "parquet")]
            Self::Parquet => Box::new(parquet_sinks::ParquetPairs::new(output)?),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => return Err(io::Error::other(WithoutParquet)),
        })
    }

    /// A writer of clusters.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn clusters(self, output: Output) -> io::Result<Box<dyn ClusterSink>> {
        Ok(match self {
            Self::Json => Box::new(json::JsonClusters::new(output)),
            Self::Jsonl => Box::new(jsonl::JsonlClusters::new(output)),
            Self::Tsv => Box::new(tsv::TsvClusters::new(output)),
            #[cfg(feature = "parquet")]
            Self::Parquet => Box::new(parquet_sinks::ParquetClusters::new(output)?),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => return Err(io::Error::other(WithoutParquet)),
        })
    }

    /// A writer of documents.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn documents(self, output: Output) -> io::Result<Box<dyn DocumentSink>> {
        Ok(match self {
            Self::Json | Self::Jsonl => Box::new(jsonl::JsonlDocuments::new(output)),
            Self::Tsv => Box::new(tsv::TsvDocuments::new(output)),
            #[cfg(feature = "parquet")]
            Self::Parquet => Box::new(parquet_sinks::ParquetDocuments::new(output)?),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => return Err(io::Error::other(WithoutParquet)),
        })
    }
}

/// What stands for a document that has no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareName {
    /// Its fingerprint.
    Fingerprint,
    /// The number of its line.
    Line,
}

/// A document as results show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its id; `None` where its fingerprint stands for one.
    pub id: Option<Cow<'a, str>>,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
}

/// Takes pairs of documents, one by one.
pub trait PairSink: Send {
    /// Writes a pair and its distance in bits.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()>;

    /// Writes what is left. The output is not in its place before [`Complete::commit`].
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Output>;
}

/// Takes the members of clusters, cluster by cluster.
pub trait ClusterSink: Send {
    /// Writes a member of the cluster with this id: the smallest fingerprint in it.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()>;

    /// Ends a cluster that has members.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn end_cluster(&mut self) -> io::Result<()>;

    /// Writes what is left. The output is not in its place before [`Complete::commit`].
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Output>;
}

/// Takes documents, one by one.
pub trait DocumentSink: Send {
    /// Writes a document with its fingerprint.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn document(&mut self, document: &Member<'_>) -> io::Result<()>;

    /// Writes what is left. The output is not in its place before [`Complete::commit`].
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Output>;
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
