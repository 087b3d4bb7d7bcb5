//! The steps that both searches have in common, from the options to the sorted documents and from
//! the result to its place.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use rayon::{ThreadPoolBuildError, ThreadPoolBuilder};
use simshard_input::{DegenerateTexts, InputError, InputOptions, Notation, Skipped, parts};
use simshard_runtime::terminal::counted;
use simshard_simhash::{Layout, LayoutError, PairSearch, Recipe};

use crate::documents::{DocumentSet, TooManyDocuments};
use crate::output::{Complete, Output, OutputError, OutputFormat};
use crate::progress::Progress;
use crate::report::page;
use crate::reported::{About, report};
use crate::statistics::{ClusterSizes, Statistics, Timings};

/// A search that is ready to begin: its outputs can be written.
pub struct Job {
    /// The command's name, for the report.
    pub command: &'static str,
    /// The inputs, with patterns expanded.
    pub input: InputOptions,
    /// How texts become fingerprints.
    pub recipe: Recipe,
    /// How many documents are read, the first ones; 0 means all.
    pub sample: u64,
    /// The largest distance of a pair, in bits.
    pub distance: u32,
    /// The blocks that fingerprints are cut into; `None` leaves the choice to the search.
    pub blocks: Option<u32>,
    /// The threads that work; 0 means one a core.
    pub threads: usize,
    /// How the result is written.
    pub format: OutputFormat,
    /// Where the result goes.
    pub output: Output,
    /// Where the report goes, if one is asked for.
    pub report: Option<Output>,
    /// When the command began.
    pub start: Instant,
}

/// Why a job failed. Each message is that of its cause.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// No search has this distance and these blocks.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The documents cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The documents cannot be numbered.
    #[error(transparent)]
    TooMany(#[from] TooManyDocuments),
    /// A result cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The documents are to be written to one file, and come from several.
    #[error("{0}")]
    Target(String),
    /// The system gives no threads.
    #[error("cannot start the threads")]
    Threads(#[from] ThreadPoolBuildError),
}

impl JobError {
    /// Whether the arguments or the input are to blame: then the same job fails again.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Layout(_) | Self::Input(_) | Self::TooMany(_) | Self::Target(_) => true,
            Self::Output(error) => error.is_bad_argument(),
            Self::Threads(_) => false,
        }
    }
}

/// The result of a job, for people.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The numbers of inputs and results, such as `5 documents, 4 distinct fingerprints, 3 pairs`.
    pub found: String,
    /// The skipped lines and texts.
    pub skipped: Skipped,
    /// Texts that say too little.
    pub degenerate: DegenerateTexts,
    /// How documents became fingerprints; `None` if they came as such.
    pub recipe: Option<Recipe>,
    /// How long the command took.
    pub elapsed: Duration,
}

/// Documents that were read and sorted.
pub(crate) struct Sorted {
    pub(crate) documents: DocumentSet,
    pub(crate) search: PairSearch,
    pub(crate) timings: Timings,
    /// How fingerprints are written.
    pub(crate) notation: Notation,
    about: About,
    recipe: Option<Recipe>,
    report: Option<Output>,
    start: Instant,
}

impl Job {
    /// Reads and sorts the documents, and does the rest of the command with them, on the job's
    /// threads.
    pub(crate) fn run(
        self,
        progress: Progress,
        search: impl FnOnce(Sorted, OutputFormat, Output) -> Result<Summary, JobError> + Send,
    ) -> Result<Summary, JobError> {
        let pool = ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        pool.install(|| {
            let format = self.format;
            let (sorted, output) = self.sort(progress)?;
            search(sorted, format, output)
        })
    }

    /// Reads the documents and sorts their fingerprints.
    fn sort(self, progress: Progress) -> Result<(Sorted, Output), JobError> {
        let bar = (progress.bar)("reading", None);
        let parts = parts(
            &self.input,
            self.format.ids(),
            self.recipe,
            Some(self.sample),
            &mut |documents| bar.inc(documents),
        )?;
        bar.finish_and_clear();
        let read = self.start.elapsed();
        let skipped = parts.skipped.clone();
        let (degenerate, lengths) = (parts.degenerate, parts.lengths);
        let by_recipe = parts.by_recipe;
        let documents = {
            let _spinner = (progress.spinner)("sorting");
            DocumentSet::new(parts, self.format.bare_name())?
        };
        let timings = Timings {
            read,
            sort: self.start.elapsed() - read,
            ..Timings::default()
        };
        let fingerprints = documents.fingerprints().len();
        let search = PairSearch::new(self.distance, self.blocks, fingerprints)?;
        let recipe = by_recipe.then_some(self.recipe);
        let notation = self.input.notation;
        let about = About {
            command: self.command,
            settings: settings(self.sample, recipe, search.layout()),
            recipe: recipe.and_then(|recipe| recipe.for_texts().ok()),
            ids: self.format.ids(),
            input: self.input,
            skipped,
            degenerate,
            lengths,
        };
        let sorted = Sorted {
            documents,
            search,
            timings,
            notation,
            about,
            recipe,
            report: self.report,
            start: self.start,
        };
        Ok((sorted, self.output))
    }
}

/// The settings that a result depends on, and those that only its time depends on.
fn settings(sample: u64, recipe: Option<Recipe>, layout: Layout) -> Vec<(String, String)> {
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
    if sample > 0 {
        settings.push(("sample".to_owned(), sample.to_string()));
    }
    settings
}

impl Sorted {
    /// Writes the report, and puts it and the output in their places once both are complete (W3).
    /// Then tells what was found, such as `3 pairs`, and what was left out.
    pub(crate) fn close(
        self,
        output: Complete,
        statistics: Statistics,
        found: &str,
    ) -> Result<Summary, JobError> {
        let Self {
            documents,
            about,
            recipe,
            report: place,
            start,
            ..
        } = self;
        let (skipped, degenerate) = (about.skipped.clone(), about.degenerate);
        let found = format!(
            "{}, {}, {found}",
            counted(statistics.documents, "document"),
            counted(statistics.fingerprints, "distinct fingerprint"),
        );
        let report = match place {
            Some(place) => {
                let page = page(&report(about, &documents, statistics)?);
                Some(place.write_whole(&page)?)
            }
            None => None,
        };
        output.commit()?;
        if let Some(report) = report {
            report.commit()?;
        }
        Ok(Summary {
            found,
            skipped,
            degenerate,
            recipe,
            elapsed: start.elapsed(),
        })
    }

    /// The statistics of what was read, with the times so far.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            documents: self.documents.len() as u64,
            fingerprints: self.documents.fingerprints().len() as u64,
            pairs_by_distance: Vec::new(),
            clusters: ClusterSizes::up_to(self.search.layout().distance()),
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

/// Tells how far a search is.
pub(crate) fn show(bar: &ProgressBar) -> impl Fn(u64, u64) -> ControlFlow<()> + Sync + '_ {
    |done, steps| {
        bar.set_length(steps);
        bar.set_position(done);
        ControlFlow::Continue(())
    }
}
