//! The arguments that say where results go, and how they are written.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use simshard_batch::{Output, OutputFormat};

use crate::exit::UsageError;

/// Where results go, and how they are written.
#[derive(Args, Debug)]
pub struct WriteArgs {
    /// Where to write; `-` or nothing is standard output
    ///
    /// A file is written beside its place and put there when it is complete: until then, and if
    /// anything goes wrong, what stood there stays. Open descriptors, such as /dev/stdout and
    /// /dev/fd/3, are written to as they are. Outputs are not compressed.
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// How to write [default: by the output's extension, else json, or tsv for `hash` and `scan`]
    ///
    /// The extensions are .json, .jsonl, .ndjson, .tsv and, where this program was built with it,
    /// .parquet; others are refused without this option.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub output_format: Option<OutputFormatArg>,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormatArg {
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

impl From<OutputFormatArg> for OutputFormat {
    fn from(format: OutputFormatArg) -> Self {
        match format {
            OutputFormatArg::Json => Self::Json,
            OutputFormatArg::Jsonl => Self::Jsonl,
            OutputFormatArg::Parquet => Self::Parquet,
            OutputFormatArg::Tsv => Self::Tsv,
        }
    }
}

impl WriteArgs {
    /// How to write; `usual` where neither the arguments nor the output's name say it.
    ///
    /// # Errors
    /// If the output's extension names no format, or one that this program was built without.
    pub fn effective_format(&self, usual: OutputFormat) -> anyhow::Result<OutputFormat> {
        let format = match self.output_format {
            Some(format) => format.into(),
            None => OutputFormat::of_path(self.output.as_deref(), usual)?,
        };
        Ok(format.available()?)
    }

    /// Opens the output for this format; it is none of the `inputs`.
    ///
    /// # Errors
    /// If it cannot be written, or is a terminal and the format is binary.
    pub fn open(&self, format: OutputFormat, inputs: &[PathBuf]) -> anyhow::Result<Output> {
        let output = Output::open(self.output.as_deref(), inputs)?;
        if format == OutputFormat::Parquet && output.is_terminal() {
            let message = "Parquet is not for a terminal: name a file with --output";
            return Err(UsageError(message.to_owned()).into());
        }
        Ok(output)
    }
}
