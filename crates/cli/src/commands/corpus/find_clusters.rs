//! `simshard corpus find-clusters`: the groups of near-duplicates of a corpus.

use clap::Args;
use simshard_batch::{Rows, Sink};
use simshard_client::{Client, ClusterMember};

use super::streaming::{StreamArgs, member};

/// Arguments of `corpus find-clusters`.
#[derive(Args, Debug)]
#[command(after_help = "\
A cluster holds each document that is at most --max-distance bits from another
one of it. Clusters come by their smallest fingerprint, which is their id, their
members by fingerprint, then id. The formats are those of `find-clusters`, which
does the same for files; a document without an id is called by its fingerprint.

It takes as long as it takes: --timeout-seconds is how long the router may take
to say that the corpus is there. All nodes have to be there until the end.

Examples:
  simshard corpus find-clusters articles
  simshard corpus find-clusters articles --max-distance 2 -o clusters.tsv
  simshard corpus find-clusters articles --output-format jsonl | head")]
pub struct FindClustersArgs {
    /// Where to search.
    #[command(flatten)]
    pub stream: StreamArgs,
    /// Link documents up to this distance [default: the corpus's]
    #[arg(
        long,
        visible_alias = "distance",
        value_name = "BITS",
        help_heading = "Search"
    )]
    pub max_distance: Option<u32>,
}

/// Writes the clusters.
pub(super) async fn run(args: &FindClustersArgs) -> anyhow::Result<()> {
    let find =
        async |client: &Client, name: &str| client.find_clusters(name, args.max_distance).await;
    let write = |batch: Vec<ClusterMember>, format, sink: &mut dyn Sink| {
        for ClusterMember { cluster, document } in &batch {
            let member = member(document.fingerprint, &document.id, format)?;
            sink.member(*cluster, &member)?;
        }
        Ok(batch.len() as u64)
    };
    args.stream
        .write(Rows::Members, "finding clusters, documents", find, write)
        .await
}
