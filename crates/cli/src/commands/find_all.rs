//! `simshard find-all`: every pair of near-duplicates of a set.

use std::io;
use std::ops::ControlFlow;

use clap::Args;
use indicatif::{HumanCount, ProgressBar};
use simshard_simhash::Pair;

use crate::batch::{BatchArgs, DocumentSet, Job, Sorted, Stopwatch, show};
use crate::output::{Member, Output, OutputError, OutputFormat, PairSink};
use crate::progress;

/// Arguments of `find-all`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints each pair of documents at most --distance bits apart once: first those
with equal fingerprints, by fingerprint, then the others, the document of the
smaller fingerprint first. The order depends on the input and --blocks alone.

Bare hashes are one decimal number a line; a repeated line is a repeated
document: [5, 5]. Other formats than json give their line numbers as ids.

Examples:
  simshard find-all --input hashes.txt --output pairs.json
  simshard find-all pages.jsonl --text-field body -o pairs.tsv --distance 4
  printf '4\\n5\\n4095\\n' | simshard find-all")]
pub struct FindAllArgs {
    /// What both commands take.
    #[command(flatten)]
    pub batch: BatchArgs,
}

/// Writes the pairs.
///
/// # Errors
/// If the arguments or the input are bad, or the output cannot be written.
pub fn run(args: &FindAllArgs) -> anyhow::Result<()> {
    Job::new("find-all", &args.batch)?.run(find)
}

fn find(mut sorted: Sorted, format: OutputFormat, output: Output) -> anyhow::Result<()> {
    let failed = OutputError::failed(output.name().to_owned());
    let bar = progress::bar("joining", Some(0));
    let most = sorted.search.layout().distance() as usize;
    let mut writer = Writer {
        documents: &sorted.documents,
        sink: format.pairs(output).map_err(&failed)?,
        by_distance: vec![0; most + 1],
        written: 0,
        bar: &bar,
    };
    let mut watch = Stopwatch::default();
    let start = std::time::Instant::now();
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
    let found = format!("{} pairs", statistics.pair_count());
    sorted.close(output, statistics, &found)
}

/// Turns pairs of fingerprints into pairs of documents, and writes them.
struct Writer<'a> {
    documents: &'a DocumentSet,
    sink: Box<dyn PairSink>,
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
                let message = format!("joining, {} pairs,", HumanCount(self.written));
                self.bar.set_message(message);
            }
        }
        Ok(())
    }
}

/// Pairs between two looks at their number.
const SHOWN_EVERY: u64 = 1 << 20;
