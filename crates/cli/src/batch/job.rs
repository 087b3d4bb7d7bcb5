//! The steps that the batch commands have in common, from the arguments to the sorted documents.

use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use rayon::{ThreadPool, ThreadPoolBuilder};
use simshard_simhash::{PairSearch, Recipe};

use super::{BatchArgs, DocumentSet, Statistics, Timings};
use crate::exit::UsageError;
use crate::input::{InputArgs, Skipped, columns};
use crate::output::{Output, OutputFormat};
use crate::progress;
use crate::say::{note, watched};

/// A command that is ready to begin: its arguments make sense, and its output can be written.
pub(crate) struct Job<'a> {
    args: &'a BatchArgs,
    input: InputArgs,
    recipe: Recipe,
    format: OutputFormat,
    output: Output,
    pool: ThreadPool,
    start: Instant,
}

/// Documents that were read and sorted.
pub(crate) struct Sorted {
    pub(crate) documents: DocumentSet,
    pub(crate) search: PairSearch,
    pub(crate) timings: Timings,
    skipped: Skipped,
    start: Instant,
}

impl<'a> Job<'a> {
    /// Checks the arguments and opens the output, before anything is read.
    pub(crate) fn new(args: &'a BatchArgs) -> anyhow::Result<Self> {
        let start = Instant::now();
        search(args, 0)?;
        let recipe = args.effective_recipe()?;
        let input = args.input_args();
        let output = Output::open(args.output.as_deref(), &input.paths)?;
        let threads = args.threads.map_or(0, usize::from);
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        Ok(Self {
            args,
            input,
            recipe,
            format: args.effective_output_format(),
            output,
            pool: pool.context("cannot start the threads")?,
            start,
        })
    }

    /// Runs the rest of the command on the job's threads.
    pub(crate) fn run(
        self,
        command: impl FnOnce(Sorted, OutputFormat, Output) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<()> {
        let Self {
            args,
            input,
            recipe,
            format,
            output,
            pool,
            start,
        } = self;
        pool.install(|| command(sort(args, &input, recipe, format, start)?, format, output))
    }
}

fn search(args: &BatchArgs, fingerprints: usize) -> Result<PairSearch, UsageError> {
    PairSearch::new(args.distance, args.blocks.fixed(), fingerprints)
        .map_err(|error| UsageError(error.to_string()))
}

fn sort(
    args: &BatchArgs,
    input: &InputArgs,
    recipe: Recipe,
    format: OutputFormat,
    start: Instant,
) -> anyhow::Result<Sorted> {
    let bar = progress::bar("reading", None);
    let columns = columns(input, format.ids(), recipe, Some(args.sample), &bar)?;
    bar.finish_and_clear();
    let read = start.elapsed();
    let skipped = columns.skipped;
    let documents = {
        let _spinner = progress::spinner("sorting");
        DocumentSet::new(columns, format.bare_name())?
    };
    let timings = Timings {
        read,
        sort: start.elapsed() - read,
        ..Timings::default()
    };
    Ok(Sorted {
        search: search(args, documents.fingerprints().len())?,
        documents,
        timings,
        skipped,
        start,
    })
}

impl Sorted {
    /// Says what was found, such as `3 pairs`, and what was left out.
    pub(crate) fn close(&self, found: &str) {
        if !self.skipped.is_empty() {
            note(self.skipped);
        }
        if !watched() {
            return;
        }
        note(format!(
            "{} documents, {} distinct fingerprints, {found}, {:.2} s",
            self.documents.len(),
            self.documents.fingerprints().len(),
            self.start.elapsed().as_secs_f64(),
        ));
    }

    /// The statistics of what was read, with the times so far.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            documents: self.documents.len() as u64,
            fingerprints: self.documents.fingerprints().len() as u64,
            layout: self.search.layout(),
            pairs_by_distance: Vec::new(),
            clusters: super::ClusterSizes::default(),
            timings: self.timings,
        }
    }
}

/// Adds up the time that one of several tasks by turns takes.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    pub(crate) total: Duration,
}

impl Stopwatch {
    /// Does something and counts the time.
    pub(crate) fn time<T>(&mut self, task: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = task();
        self.total += start.elapsed();
        done
    }
}

/// Shows how far a search is.
pub(crate) fn show(bar: &ProgressBar) -> impl Fn(u64, u64) + Sync + '_ {
    |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    }
}
