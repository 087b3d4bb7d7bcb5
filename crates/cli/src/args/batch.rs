//! The arguments of `find-pairs` and `find-clusters`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use simshard_batch::{Job, Output, OutputFormat};

use super::{Plan, ReadArgs, SearchArgs, WriteArgs};
use crate::exit::UsageError;

/// Arguments of `find-pairs` and `find-clusters`.
#[derive(Args, Debug)]
pub struct BatchArgs {
    /// What to read.
    #[command(flatten)]
    pub reading: ReadArgs,

    /// How pairs are searched for.
    #[command(flatten)]
    pub search: SearchArgs,

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
        self.search.check()?;
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
            sample: self.reading.selection.sample,
            distance: self.search.distance,
            blocks: self.search.blocks.fixed(),
            threads: self.search.thread_count(),
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
