//! What lies between the two readings of an input: its documents, and which of them are kept. The second reading writes
//! these, and the list of the others.

use std::io;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use simshard_input::{Check, Format, Ids, Marks, Needs, Piece, Rewrite};
use simshard_runtime::terminal::counted;
use simshard_simhash::PairSearch;

use super::choice::{Candidates, Choice};
use super::dropped::{Dropped, Files};
use super::kept::KeptDocuments;
use super::known::Known;
use super::target::{Target, Written};
use super::{By, Dedup, Deduplicated};
use crate::documents::DocumentSet;
use crate::job::{JobError, show};
use crate::member::BareName;
use crate::output::{Output, OutputError};
use crate::progress::Progress;

/// Pieces of output that wait to be written, each of at most about 256 KiB.
const WAITING_PIECES: usize = 64;

/// Documents that were read once.
pub(super) struct Read {
    pub(super) documents: DocumentSet,
    rewrite: Rewrite,
    target: Target,
    ranks: Vec<u64>,
    marks: Marks,
    /// By source, how many documents came up to its end.
    ends: Vec<usize>,
    by: By,
    distance: u32,
    search: PairSearch,
    dropped: Option<Output>,
    start: Instant,
    /// The result, but for what was kept.
    pub(super) outcome: Deduplicated,
}

impl Read {
    /// Reads the documents.
    pub(super) fn new(job: Dedup, progress: Progress) -> Result<Self, JobError> {
        let needs = Needs {
            ids: Ids::Any,
            check: Check::AsRead,
            preferred_format: Format::Lines,
            recipe: job.recipe,
        };
        let stdin = Box::new(io::stdin());
        let mut rewrite = Rewrite::open(&job.input, needs, job.recipe, job.keep, stdin)?;
        let paths = rewrite.paths();
        let dropped = job.dropped.as_ref();
        let given = &job.input.paths;
        let (format, recompress) = (rewrite.format(), job.recompress);
        let target = Target::open(&job.output, paths, given, format, dropped, recompress)?;

        let bar = (progress.bar)("reading", None);
        let read = rewrite.read(&mut |documents| bar.inc(documents))?;
        bar.finish_and_clear();
        let recipe = read.parts.by_recipe.then_some(job.recipe);
        let mut skipped = read.parts.skipped.clone();
        let degenerate = read.parts.degenerate;
        let without_fingerprint = std::mem::take(&mut skipped.unhashable_texts);
        let documents = {
            let _spinner = (progress.spinner)("sorting");
            DocumentSet::new(read.parts, BareName::Line)?
        };
        let search = PairSearch::new(job.distance, job.blocks, documents.fingerprints().len())?;
        Ok(Self {
            documents,
            rewrite,
            target,
            ranks: read.ranks,
            marks: read.marks,
            ends: read.ends,
            by: job.by,
            distance: job.distance,
            search,
            dropped: job.dropped,
            start: job.start,
            outcome: Deduplicated {
                found: String::new(),
                without_fingerprint,
                skipped,
                degenerate,
                recipe,
                elapsed: Duration::ZERO,
            },
        })
    }

    /// The format of the input.
    pub(super) fn format(&self) -> Format {
        self.rewrite.format()
    }

    /// Chooses, and writes what is kept.
    pub(super) fn write(
        mut self,
        known: &[Known],
        progress: Progress,
    ) -> Result<(Deduplicated, KeptDocuments), JobError> {
        let bar = (progress.bar)("joining", Some(0));
        let mut choice = Choice::all_new(&self.documents, known);
        let candidates = Candidates::new(&self.documents, known, self.ranks);
        self.by
            .choose(&mut choice, &candidates, &self.search, &show(&bar));
        drop(candidates);
        bar.finish_and_clear();

        let all = self.documents.len() as u64 + self.outcome.without_fingerprint;
        let kept = all - choice.dropped().count() as u64;
        let how = self.by.in_words(self.distance);
        let paths = self.rewrite.paths();
        let list = Dropped {
            documents: &self.documents,
            choice: &choice,
            known,
            places: self.marks.places(),
            files: (paths.len() > 1).then_some(Files {
                paths,
                ends: &self.ends,
            }),
        };
        let dropped = self.dropped.map(|output| list.write(output));
        let dropped = dropped.transpose()?;
        self.marks.leave_out(|document| choice.is_dropped(document));
        let written = write_kept(self.rewrite, &self.marks, self.target, progress)?;
        if let Some(dropped) = dropped {
            dropped.commit()?;
        }
        written.commit()?;
        let done = Deduplicated {
            found: format!("kept {kept} of {}, {how}", counted(all, "document")),
            elapsed: self.start.elapsed(),
            ..self.outcome
        };
        let documents = self.documents;
        Ok((done, KeptDocuments { documents, choice }))
    }
}

/// Writes what is not left out, by a thread of its own while others are read.
fn write_kept(
    rewrite: Rewrite,
    left_out: &Marks,
    target: Target,
    progress: Progress,
) -> Result<Written, JobError> {
    let _spinner = (progress.spinner)("writing");
    let failed = OutputError::failed(target.name().to_owned());
    thread::scope(|scope| {
        let (pieces, waiting) = sync_channel::<(usize, Piece)>(WAITING_PIECES);
        let writer = scope.spawn(move || -> Result<Written, OutputError> {
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
