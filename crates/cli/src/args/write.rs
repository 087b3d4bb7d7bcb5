//! The arguments that say where results go, and how they are written.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_batch::{Output, OutputFormat};

use crate::exit::UsageError;

/// Where results go, and how they are written.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct WriteArgs {
    /// Where to write; `-` or nothing is standard output
    ///
    /// A file is written beside its place and put there when it is complete: until then, and if
    /// anything goes wrong, what stood there stays. Open descriptors, such as /dev/stdout and
    /// /dev/fd/3, are written to as they are. Outputs are not compressed.
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// How to write [default: by the output's extension, else json, or tsv for `hash` and `scan`]
    ///
    /// The extensions are .json, .jsonl, .ndjson, .tsv and, where this program was built with it,
    /// .parquet; others are refused without this option.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,
}

impl WriteArgs {
    /// How to write; `usual` where neither the arguments nor the output's name say it.
    ///
    /// # Errors
    /// If the output's extension names no format, or one that this program was built without.
    pub fn effective_format(&self, usual: OutputFormat) -> anyhow::Result<OutputFormat> {
        let format = match self.output_format {
            Some(format) => format,
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
