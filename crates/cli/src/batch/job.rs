//! The steps that the batch commands have in common, from the arguments to the sorted documents.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use rayon::{ThreadPool, ThreadPoolBuilder};
use simshard_simhash::{Layout, PairSearch, Recipe};

use super::report::{About, report};
use super::{BatchArgs, DocumentSet, Plan, Statistics, Timings};
use crate::exit::UsageError;
use crate::input::{InputArgs, columns};
use crate::output::{Complete, Output, OutputError, OutputFormat};
use crate::progress;
use crate::report::page;
use crate::say::{note, watched};

/// A command that is ready to begin: its arguments make sense, and its outputs can be written.
pub(crate) struct Job<'a> {
    task: Task<'a>,
    output: Output,
    pool: ThreadPool,
}

/// What a job does.
struct Task<'a> {
    command: &'static str,
    args: &'a BatchArgs,
    input: InputArgs,
    recipe: Recipe,
    format: OutputFormat,
    report: Option<Output>,
    start: Instant,
}

/// Documents that were read and sorted.
pub(crate) struct Sorted {
    pub(crate) documents: DocumentSet,
    pub(crate) search: PairSearch,
    pub(crate) timings: Timings,
    about: About,
    report: Option<Output>,
    start: Instant,
}

impl<'a> Job<'a> {
    /// Checks the arguments and opens the outputs, before anything is read.
    pub(crate) fn new(command: &'static str, args: &'a BatchArgs) -> anyhow::Result<Self> {
        let start = Instant::now();
        search(args, 0)?;
        let Plan {
            input,
            recipe,
            format,
            output,
        } = Plan::new(&args.reading, &args.writing, OutputFormat::Json)?;
        let report = open_report(args, &input.paths, &output)?;
        let threads = args.threads.map_or(0, usize::from);
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let task = Task {
            command,
            args,
            input,
            recipe,
            format,
            report,
            start,
        };
        Ok(Self {
            task,
            output,
            pool: pool.context("cannot start the threads")?,
        })
    }

    /// Runs the rest of the command on the job's threads.
    pub(crate) fn run(
        self,
        command: impl FnOnce(Sorted, OutputFormat, Output) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<()> {
        let Self { task, output, pool } = self;
        let format = task.format;
        pool.install(|| command(sort(task)?, format, output))
    }
}

/// Opens the place of the report, if one is asked for.
fn open_report(
    args: &BatchArgs,
    inputs: &[PathBuf],
    output: &Output,
) -> anyhow::Result<Option<Output>> {
    let Some(path) = &args.report else {
        return Ok(None);
    };
    let report = Output::open(Some(path), inputs)?;
    if report.is_stdout() {
        let message = "--report is not written to standard output: name a file for it";
        return Err(UsageError(message.to_owned()).into());
    }
    if report.is_the_same_as(output)? {
        let message = "--report and --output name the same file: choose another for one";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(Some(report))
}

fn search(args: &BatchArgs, fingerprints: usize) -> Result<PairSearch, UsageError> {
    PairSearch::new(args.distance, args.blocks.fixed(), fingerprints)
        .map_err(|error| UsageError(error.to_string()))
}

/// Reads the documents and sorts their fingerprints.
fn sort(task: Task<'_>) -> anyhow::Result<Sorted> {
    let Task { args, format, .. } = task;
    let bar = progress::bar("reading", None);
    let sample = Some(args.reading.sample);
    let columns = columns(&task.input, format.ids(), task.recipe, sample, &bar)?;
    bar.finish_and_clear();
    let read = task.start.elapsed();
    let (skipped, by_recipe) = (columns.skipped, columns.by_recipe);
    let documents = {
        let _spinner = progress::spinner("sorting");
        DocumentSet::new(columns, format.bare_name())?
    };
    let timings = Timings {
        read,
        sort: task.start.elapsed() - read,
        ..Timings::default()
    };
    let search = search(args, documents.fingerprints().len())?;
    let recipe = by_recipe.then_some(task.recipe);
    let about = About {
        command: task.command,
        inputs: task.input.names(),
        settings: settings(args, recipe, search.layout()),
        empty_text: recipe
            .and_then(|recipe| recipe.for_texts().ok())
            .map(|recipe| recipe.fingerprint("").0),
        skipped,
    };
    Ok(Sorted {
        documents,
        search,
        timings,
        about,
        report: task.report,
        start: task.start,
    })
}

/// What a result depends on, and what its time does.
fn settings(args: &BatchArgs, recipe: Option<Recipe>, layout: Layout) -> Vec<(String, String)> {
    let recipe = recipe.map_or("none: the input holds fingerprints".to_owned(), |recipe| {
        recipe.to_string()
    });
    let mut settings = vec![
        ("recipe".to_owned(), recipe),
        ("distance".to_owned(), layout.distance().to_string()),
        ("blocks".to_owned(), layout.blocks().to_string()),
        ("tables".to_owned(), layout.table_count().to_string()),
        (
            "threads".to_owned(),
            rayon::current_num_threads().to_string(),
        ),
    ];
    let sample = args.reading.sample;
    if sample > 0 {
        settings.push(("sample".to_owned(), sample.to_string()));
    }
    settings
}

fn write_report(page: &str, mut place: Output) -> Result<Complete, OutputError> {
    let name = place.name().to_owned();
    let written = place.write_all(page.as_bytes());
    let complete = written.and_then(|()| place.complete());
    complete.map_err(OutputError::failed(name))
}

impl Sorted {
    /// Writes the report, puts it and the output in their places once both are complete (W3), and
    /// says what was found, such as `3 pairs`, and what was left out.
    pub(crate) fn close(
        self,
        output: Complete,
        statistics: Statistics,
        found: &str,
    ) -> anyhow::Result<()> {
        let Self {
            documents,
            about,
            report: place,
            start,
            ..
        } = self;
        let skipped = about.skipped;
        let summary = format!(
            "{} documents, {} distinct fingerprints, {found}",
            statistics.documents, statistics.fingerprints,
        );
        let report = match place {
            Some(place) => {
                let page = page(&report(about, &documents, statistics));
                Some(write_report(&page, place)?)
            }
            None => None,
        };
        output.commit()?;
        if let Some(report) = report {
            report.commit()?;
        }
        if !skipped.is_empty() {
            note(skipped);
        }
        if watched() {
            note(format!("{summary}, {:.2} s", start.elapsed().as_secs_f64()));
        }
        Ok(())
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
