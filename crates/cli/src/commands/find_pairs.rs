//! `simshard find-pairs`: every pair of near-duplicates of a set.

use clap::Args;
use simshard_batch::find_pairs;

use crate::args::BatchArgs;
use crate::progress::SHOWN;
use crate::say;

/// Arguments of `find-pairs`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints each pair of documents at most --distance bits apart once: first those
with equal fingerprints, by fingerprint, then the others, the document of the
smaller fingerprint first. The order depends on the input and --blocks alone.

Bare hashes are one decimal number a line; a repeated line is a repeated
document: [5, 5]. Other formats than json give their line numbers as ids.

Examples:
  simshard find-pairs --input hashes.txt --output pairs.json
  simshard find-pairs pages.jsonl --text-field body -o pairs.tsv --distance 4
  printf '4\\n5\\n4095\\n' | simshard find-pairs")]
pub struct FindPairsArgs {
    /// The arguments of both commands.
    #[command(flatten)]
    pub batch: BatchArgs,
}

/// Writes the pairs.
pub fn run(args: &FindPairsArgs) -> anyhow::Result<()> {
    let job = args.batch.job("find-pairs")?;
    say::summary(&find_pairs(job, SHOWN)?);
    Ok(())
}
