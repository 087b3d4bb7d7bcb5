//! `simshard corpus find-pairs`: every pair of near-duplicates of a corpus.

use clap::Args;
use simshard_batch::{Rows, Sink};
use simshard_client::{Client, Pairs};

use super::streaming::{StreamArgs, member};

/// Arguments of `corpus find-pairs`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints each pair of documents at most --max-distance bits apart once, in no
order; documents with equal fingerprints are pairs at distance 0. Every pair is
there of documents that were inserted before the command started, and are not
removed meanwhile. The formats are those of `simshard find-pairs`, which does
the same for files; a document without an id is called by its fingerprint.

It takes as long as it takes: --timeout-seconds is how long the router may take
to say that the corpus is there. All nodes have to be there until the end.

Examples:
  simshard corpus find-pairs articles
  simshard corpus find-pairs articles --max-distance 0 -o copies.tsv
  simshard corpus find-pairs articles --output-format jsonl | head")]
pub struct FindPairsArgs {
    /// Where to search.
    #[command(flatten)]
    pub stream: StreamArgs,
    /// Find pairs up to this distance [default: the corpus's]
    #[arg(
        long,
        visible_alias = "distance",
        value_name = "BITS",
        help_heading = "Search"
    )]
    pub max_distance: Option<u32>,
}

/// Writes the pairs.
pub(super) async fn run(args: &FindPairsArgs) -> anyhow::Result<()> {
    let find = async |client: &Client, name: &str| client.find_pairs(name, args.max_distance).await;
    let write = |batch: Pairs, format, sink: &mut dyn Sink| {
        let mut written = 0;
        for pair in batch.iter() {
            let a = member(pair.fingerprint_a, pair.id_a, format)?;
            let b = member(pair.fingerprint_b, pair.id_b, format)?;
            sink.pair(&a, &b, pair.distance)?;
            written += 1;
        }
        Ok(written)
    };
    args.stream
        .write(Rows::Pairs, "finding pairs", find, write)
        .await
}
