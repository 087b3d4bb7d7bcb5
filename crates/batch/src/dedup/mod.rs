//! The records of an input without their near-duplicates.
//!
//! The input is read twice. After the first reading, each document is kept or has another one as the
//! cause why it is dropped; the second reading writes the lines that are left.
//!
//! # Invariants
//! - DD1: every dropped document has a cause that is kept. By pairs it is within the distance, by
//!   cluster in the same cluster.
//! - DD2: by pairs, no two kept documents are within the distance; by cluster, one of each is kept.
//! - DD3: the list of what was dropped is in its place before what was kept.

mod choice;
mod greedy;
mod target;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rayon::ThreadPoolBuilder;
use simshard_input::{
    Check, DegenerateTexts, Format, Ids, InputOptions, LineMarks, Needs, Preference, Rewrite,
    Skipped,
};
use simshard_runtime::terminal::counted;
use simshard_simhash::{PairSearch, Recipe};

use crate::documents::DocumentSet;
use crate::job::{JobError, show};
use crate::member::BareName;
use crate::output::{Complete, Output, OutputError};
use crate::progress::Progress;
use choice::Choice;
use target::Target;

/// Pieces of output that wait to be written, each of about 256 KiB.
const WAITING: usize = 64;

/// Bytes gathered of the list of what was dropped before they are written.
const FULL: usize = 256 << 10;

/// What of the near-duplicates is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// One document of each cluster: of all that are linked, directly or through others
    Cluster,
    /// As many as fit, the preferred ones first, such that no two are within the distance
    Pairs,
}

/// How a choice is made.
type Choose = fn(&DocumentSet, &PairSearch, Vec<u64>, &(dyn Fn(u64, u64) + Sync)) -> Choice;

impl By {
    fn choice(self) -> Choose {
        match self {
            Self::Cluster => Choice::by_cluster,
            Self::Pairs => Choice::by_pairs,
        }
    }

    fn in_words(self, distance: u32) -> String {
        match self {
            Self::Cluster => "one of each cluster".to_owned(),
            Self::Pairs => format!("no two within {}", counted(distance, "bit")),
        }
    }
}

/// A search for what to keep. Nothing is read or changed before it runs.
pub struct Dedup {
    /// The inputs, with patterns expanded.
    pub input: InputOptions,
    /// How texts become fingerprints.
    pub recipe: Recipe,
    /// The largest distance of near-duplicates, in bits.
    pub distance: u32,
    /// The blocks that fingerprints are cut into; `None` leaves the choice to the search.
    pub blocks: Option<u32>,
    /// The threads that work; 0 means one a core.
    pub threads: usize,
    /// What is kept.
    pub by: By,
    /// Which of several is preferred.
    pub keep: Preference,
    /// Where the kept documents go.
    pub output: PathBuf,
    /// Where the list of dropped ones goes, if it is asked for.
    pub dropped: Option<Output>,
    /// When the command began.
    pub start: Instant,
}

/// The result, for people.
#[derive(Clone, Debug)]
pub struct Deduplicated {
    /// What was kept of what, such as `kept 3 of 5 documents, one of each cluster`.
    pub found: String,
    /// Texts without a fingerprint, which are kept.
    pub without_fingerprint: u64,
    /// What was left out because it could not be read.
    pub skipped: Skipped,
    /// Texts that say too little.
    pub degenerate: DegenerateTexts,
    /// How documents became fingerprints; `None` if they came as such.
    pub recipe: Option<Recipe>,
    /// How long it took.
    pub elapsed: Duration,
}

impl Dedup {
    /// Writes what is kept, and the list of what is not.
    ///
    /// # Errors
    /// If the input is bad, or an output cannot be written. Then no file is changed.
    pub fn run(self, progress: Progress) -> Result<Deduplicated, JobError> {
        let pool = ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        pool.install(|| self.run_here(progress))
    }

    fn run_here(self, progress: Progress) -> Result<Deduplicated, JobError> {
        let ids = if self.dropped.is_some() {
            Ids::Tsv
        } else {
            Ids::Any
        };
        let needs = Needs {
            ids,
            check: Check::AsRead,
            preferred_format: Format::Lines,
            recipe: self.recipe,
        };
        let stdin = Box::new(io::stdin());
        let mut rewrite = Rewrite::open(&self.input, needs, self.recipe, self.keep.clone(), stdin)?;
        let target = Target::open(&self.output, &self.input.paths, rewrite.format())?;

        let bar = (progress.bar)("reading", None);
        let mut read = rewrite.read(&mut |documents| bar.inc(documents))?;
        bar.finish_and_clear();
        let recipe = read.parts.by_recipe.then_some(self.recipe);
        let (mut skipped, degenerate) = (read.parts.skipped, read.parts.degenerate);
        let without_fingerprint = std::mem::take(&mut skipped.unhashable_texts);
        let documents = {
            let _spinner = (progress.spinner)("sorting");
            DocumentSet::new(read.parts, BareName::Line)?
        };
        let set = documents.fingerprints();
        let search = PairSearch::new(self.distance, self.blocks, set.len())?;
        let bar = (progress.bar)("joining", Some(0));
        let choose = self.by.choice();
        let choice = choose(&documents, &search, read.ranks, &show(&bar));
        bar.finish_and_clear();

        let all = documents.len() as u64 + without_fingerprint;
        let kept = all - choice.dropped().count() as u64;
        let dropped = match self.dropped {
            Some(output) => Some(write_dropped(&documents, &choice, output)?),
            None => None,
        };
        read.marks.leave_out(|document| choice.is_dropped(document));
        // What was needed to choose makes room for what is needed to write.
        drop((documents, choice));
        let written = write_kept(rewrite, &read.marks, target, progress)?;
        if let Some(dropped) = dropped {
            dropped.commit()?;
        }
        written.commit()?;
        let how = self.by.in_words(self.distance);
        Ok(Deduplicated {
            found: format!("kept {kept} of {}, {how}", counted(all, "document")),
            without_fingerprint,
            skipped,
            degenerate,
            recipe,
            elapsed: self.start.elapsed(),
        })
    }
}

/// Writes the list of dropped documents: what they are called, why they were dropped, and how far
/// apart the two are.
fn write_dropped(
    documents: &DocumentSet,
    choice: &Choice,
    mut output: Output,
) -> Result<Complete, OutputError> {
    use std::io::Write;

    let failed = OutputError::failed(output.name().to_owned());
    let mut write = || {
        let mut text = b"id\tkept\tdistance\n".to_vec();
        for (document, cause, distance) in choice.dropped() {
            let id = |document| documents.id_of(document).unwrap_or_default();
            writeln!(text, "{}\t{}\t{distance}", id(document), id(cause))?;
            if text.len() >= FULL {
                output.write_all(&text)?;
                text.clear();
            }
        }
        output.write_all(&text)
    };
    write().and_then(|()| output.complete()).map_err(failed)
}

/// Writes the lines that are not left out, by a thread of its own while others are read.
fn write_kept(
    rewrite: Rewrite,
    left_out: &LineMarks,
    target: Target,
    progress: Progress,
) -> Result<target::Written, JobError> {
    let _spinner = (progress.spinner)("writing");
    let failed = OutputError::failed(target.name().to_owned());
    thread::scope(|scope| {
        let (pieces, waiting) = sync_channel::<(usize, Vec<u8>)>(WAITING);
        let writer = scope.spawn(move || -> Result<target::Written, OutputError> {
            let mut target = target;
            for (source, piece) in waiting {
                target.write(source, &piece)?;
            }
            target.complete()
        });
        let sent = rewrite.write(left_out, |source, piece| {
            // The writer has ended: its own error says why.
            let ended = |_| failed(io::ErrorKind::BrokenPipe.into());
            Ok::<(), JobError>(pieces.send((source, piece)).map_err(ended)?)
        });
        drop(pieces);
        let written = writer.join();
        let written = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (written, sent) {
            (Err(error), _) => Err(error.into()),
            (Ok(_), Err(error)) => Err(error),
            (Ok(written), Ok(())) => Ok(written),
        }
    })
}
