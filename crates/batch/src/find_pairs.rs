//! Every pair of near-duplicates among files.

use std::io;
use std::ops::ControlFlow;
use std::time::Instant;

use indicatif::{HumanCount, ProgressBar};
use simshard_runtime::terminal::counted;
use simshard_simhash::Pair;

use crate::documents::DocumentSet;
use crate::job::{Job, JobError, Sorted, Stopwatch, Summary, show};
use crate::member::Member;
use crate::output::{Output, OutputError, OutputFormat, Rows, Sink};
use crate::progress::Progress;

/// Pairs between two looks at their number.
const SHOWN_EVERY: u64 = 1 << 20;

/// Writes each pair of documents within the distance once: first those with equal fingerprints,
/// by fingerprint, then the others. The order depends on the input and the blocks alone.
///
/// # Errors
/// If the input is bad, or an output cannot be written. Then no file is changed.
pub fn find_pairs(job: Job, progress: Progress) -> Result<Summary, JobError> {
    job.run(progress, |sorted, format, output| {
        find(sorted, format, output, progress)
    })
}

fn find(
    mut sorted: Sorted,
    format: OutputFormat,
    output: Output,
    progress: Progress,
) -> Result<Summary, JobError> {
    let failed = OutputError::failed(output.name().to_owned());
    let bar = (progress.bar)("joining", Some(0));
    let most = sorted.search.layout().distance() as usize;
    let mut writer = Writer {
        documents: &sorted.documents,
        sink: format
            .sink(Rows::Pairs, sorted.notation, output)
            .map_err(&failed)?,
        by_distance: vec![0; most + 1],
        written: 0,
        bar: &bar,
    };
    let mut watch = Stopwatch::default();
    let start = Instant::now();
    watch.time(|| writer.write_repeated()).map_err(&failed)?;
    let mut outcome = Ok(());
    let set = sorted.documents.fingerprints();
    let _ = sorted.search.pairs(set, &show(&bar), &mut |pairs| {
        outcome = watch.time(|| writer.write(pairs));
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    outcome.map_err(&failed)?;
    let Writer {
        sink, by_distance, ..
    } = writer;
    let output = watch.time(|| sink.finish()?.complete()).map_err(&failed)?;
    bar.finish_and_clear();
    sorted.timings.write = watch.total;
    sorted.timings.join = start.elapsed() - watch.total;
    let mut statistics = sorted.statistics();
    statistics.pairs_by_distance = by_distance;
    let found = counted(statistics.pair_count(), "pair");
    sorted.close(output, statistics, &found)
}

/// Turns pairs of fingerprints into pairs of documents, and writes them.
struct Writer<'a> {
    documents: &'a DocumentSet,
    sink: Box<dyn Sink>,
    by_distance: Vec<u64>,
    written: u64,
    bar: &'a ProgressBar,
}

impl Writer<'_> {
    /// Writes the pairs of documents with equal fingerprints.
    fn write_repeated(&mut self) -> io::Result<()> {
        for group in self.documents.repeated() {
            for (place, a) in group.members().enumerate() {
                let others = group.members_after(place + 1);
                self.write_pairs(&a, others, 0)?;
            }
        }
        Ok(())
    }

    /// Writes the pairs of documents of these pairs of fingerprints.
    fn write(&mut self, pairs: &[Pair]) -> io::Result<()> {
        for pair in pairs {
            let distance = pair.distance();
            let others = self.documents.with(pair.b);
            for a in self.documents.with(pair.a).members() {
                self.write_pairs(&a, others.members(), distance)?;
            }
        }
        Ok(())
    }

    fn write_pairs<'a>(
        &mut self,
        a: &Member<'_>,
        others: impl Iterator<Item = Member<'a>>,
        distance: u32,
    ) -> io::Result<()> {
        for b in others {
            self.sink.pair(a, &b, distance)?;
            self.by_distance[distance as usize] += 1;
            self.written += 1;
            if self.written.is_multiple_of(SHOWN_EVERY) {
                let pairs = HumanCount(self.written);
                self.bar.set_message(format!("joining, {pairs} pairs,"));
            }
        }
        Ok(())
    }
}
