//! The arguments of `find-all` and `find-clusters`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use simshard_batch::{Job, Output, OutputFormat};
use simshard_simhash::PairSearch;

use super::{Blocks, Plan, ReadArgs, WriteArgs};
use crate::exit::UsageError;

/// Arguments of `find-all` and `find-clusters`.
#[derive(Args, Debug)]
pub struct BatchArgs {
    /// What to read.
    #[command(flatten)]
    pub reading: ReadArgs,

    /// The largest distance of a pair, in bits; 0 finds equal fingerprints
    #[arg(
        short,
        long,
        value_name = "BITS",
        default_value_t = 3,
        help_heading = "Search"
    )]
    pub distance: u32,
    /// The number of blocks that fingerprints are cut into: `auto`, or a number above the distance
    ///
    /// It affects the time and the order of the pairs, not which pairs are found.
    #[arg(
        short,
        long,
        value_name = "N",
        default_value = "auto",
        help_heading = "Search"
    )]
    pub blocks: Blocks,
    /// Use this many threads, 1 to 256 [default: one a core]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256),
        help_heading = "Search"
    )]
    pub threads: Option<u16>,

    /// Where results go.
    #[command(flatten)]
    pub writing: WriteArgs,
    /// Write a page about the result too, for a browser: distances or clusters, crowded
    /// fingerprints, timings; into a file, not to standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub report: Option<PathBuf>,
}

impl BatchArgs {
    /// The job that these arguments ask for, its outputs open; nothing is read before.
    pub(crate) fn job(&self, command: &'static str) -> anyhow::Result<Job> {
        let start = Instant::now();
        let blocks = self.blocks.fixed();
        PairSearch::new(self.distance, blocks, 0).map_err(|error| UsageError(error.to_string()))?;
        let Plan {
            input,
            recipe,
            format,
            output,
        } = Plan::new(&self.reading, &self.writing, OutputFormat::Json)?;
        let report = open_report(self.report.as_deref(), &input.paths)?;
        if let Some(report) = &report
            && report.is_the_same_as(&output)?
        {
            let message = "--report and --output name the same file: choose another for one";
            return Err(UsageError(message.to_owned()).into());
        }
        Ok(Job {
            command,
            input,
            recipe,
            sample: self.reading.sample,
            distance: self.distance,
            blocks,
            threads: self.threads.map_or(0, usize::from),
            format,
            output,
            report,
            start,
        })
    }
}

/// Opens the place of a report, if one is asked for.
pub(crate) fn open_report(
    path: Option<&Path>,
    inputs: &[PathBuf],
) -> anyhow::Result<Option<Output>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let report = Output::open(Some(path), inputs)?;
    if report.is_stdout() {
        let message = "--report is not written to standard output: name a file for it";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(Some(report))
}
