//! The records of an input without their near-duplicates.
//!
//! The input is read twice. After the first reading, each document is kept or has another one as the
//! cause why it is dropped; the second reading writes what is left.
//!
//! # Invariants
//! - DD1: every dropped document has a cause that is kept, or that a corpus has. By pairs, and of a corpus, it
//!   is within the distance, by cluster in the same cluster.
//! - DD2: by pairs, no two kept documents are within the distance; by cluster, one of each is kept. None is
//!   within the distance of a document of the corpus that is searched.
//! - DD3: the list of what was dropped is in its place before what was kept.

mod choice;
mod dropped;
mod greedy;
mod kept;
mod known;
mod names;
mod read;
mod target;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rayon::{ThreadPool, ThreadPoolBuilder};
use simshard_input::{DegenerateTexts, Format, InputOptions, Preference, Skipped};
use simshard_runtime::terminal::counted;
use simshard_simhash::{Fingerprint, PairProgress, PairSearch, Recipe};

use crate::job::JobError;
use crate::output::Output;
use crate::progress::Progress;
use choice::{Candidates, Choice};
pub use kept::KeptDocuments;
pub use known::Known;
pub use names::Recompress;
use read::Read;

/// What of the near-duplicates is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// One document of each cluster: of all that are linked, directly or through others
    Cluster,
    /// As many as fit, the preferred ones first, such that no two are within the distance
    Pairs,
}

impl By {
    fn choose(
        self,
        choice: &mut Choice,
        candidates: &Candidates<'_>,
        search: &PairSearch,
        progress: &PairProgress<'_>,
    ) {
        match self {
            Self::Cluster => choice.by_cluster(candidates, search, progress),
            Self::Pairs => choice.by_pairs(candidates, search, progress),
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
    /// How files are written in a folder whose own compression is only read.
    pub recompress: Option<Recompress>,
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

/// Documents that were read, and are to be chosen from.
pub struct ReadDocuments {
    pool: ThreadPool,
    read: Read,
}

impl Dedup {
    /// Reads the documents, and opens the output.
    ///
    /// # Errors
    /// If the input is bad, or an output cannot be made.
    pub fn read(self, progress: Progress) -> Result<ReadDocuments, JobError> {
        let pool = ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        let read = pool.install(|| Read::new(self, progress))?;
        Ok(ReadDocuments { pool, read })
    }
}

impl ReadDocuments {
    /// The distinct fingerprints of the documents, ascending.
    #[must_use]
    pub fn fingerprints(&self) -> &[Fingerprint] {
        self.read.documents.fingerprints().as_slice()
    }

    /// The format that they were in, which is that of the output.
    #[must_use]
    pub fn format(&self) -> Format {
        self.read.format()
    }

    /// Writes what is kept beside the documents that are known, and the list of what is not.
    ///
    /// # Errors
    /// If a file changed, or an output cannot be written. Then no file is changed.
    pub fn write(
        self,
        known: &[Known],
        progress: Progress,
    ) -> Result<(Deduplicated, KeptDocuments), JobError> {
        let Self { pool, read } = self;
        pool.install(|| read.write(known, progress))
    }
}
