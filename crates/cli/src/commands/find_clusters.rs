//! `simshard find-clusters`: the groups of documents that pairs link, directly or through others.

use clap::Args;
use simshard_batch::find_clusters;

use crate::args::BatchArgs;
use crate::progress::SHOWN;
use crate::say;

/// Arguments of `find-clusters`.
#[derive(Args, Debug)]
#[command(after_help = "\
A cluster holds each document that is at most --distance bits from another one
of it. Clusters come by their smallest fingerprint, which is their id, so that
the order of the input does not matter; their members by fingerprint, then in
the order of the input.

Bare hashes are one decimal number a line; a repeated line is a repeated
document: [5, 5]. Other formats than json give their line numbers as ids.

Examples:
  simshard find-clusters --input hashes.txt --output clusters.json
  simshard find-clusters pages.jsonl --text-field body -o clusters.tsv
  printf '4\\n5\\n4095\\n' | simshard find-clusters --output-format tsv")]
pub struct FindClustersArgs {
    /// The arguments of both commands.
    #[command(flatten)]
    pub batch: BatchArgs,
    /// Write documents without near-duplicates too, each as a cluster of its own
    #[arg(long, help_heading = "Output")]
    pub singletons: bool,
}

/// Writes the clusters.
pub fn run(args: &FindClustersArgs) -> anyhow::Result<()> {
    let job = args.batch.job("find-clusters")?;
    say::summary(&find_clusters(job, args.singletons, SHOWN)?);
    Ok(())
}
