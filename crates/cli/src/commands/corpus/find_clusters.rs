//! `simshard corpus find-clusters`: the groups of near-duplicates of a corpus.

use std::pin::pin;

use clap::Args;
use futures_util::TryStreamExt;
use simshard_batch::{ClusterSink, Output, OutputError, OutputFormat};
use simshard_client::{ClusterMember, Fingerprint};

use super::streaming::{Plan, StreamArgs, member};
use crate::progress;

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
    #[arg(long, value_name = "BITS", help_heading = "Search")]
    pub max_distance: Option<u32>,
}

/// Writes the clusters.
pub(super) async fn run(args: &FindClustersArgs) -> anyhow::Result<()> {
    let Plan {
        client,
        format,
        output,
        ..
    } = args.stream.plan(OutputFormat::Json).await?;
    let failed = OutputError::failed(output.name().to_owned());
    let mut sink = format.clusters(output).map_err(&failed)?;
    let bar = progress::bar("finding clusters, documents", None);
    let batches = client.find_clusters(&args.stream.name, args.max_distance);
    let mut batches = pin!(batches.await?);
    let mut current: Option<Fingerprint> = None;
    while let Some(batch) = batches.try_next().await? {
        for ClusterMember { cluster, document } in &batch {
            end_other(&mut current, Some(*cluster), &mut *sink).map_err(&failed)?;
            let member = member(document.fingerprint, &document.id, format)?;
            sink.member(*cluster, &member).map_err(&failed)?;
        }
        bar.inc(batch.len() as u64);
    }
    end_other(&mut current, None, &mut *sink).map_err(&failed)?;
    let output = sink.finish().and_then(Output::complete);
    output.map_err(&failed)?.commit()?;
    bar.finish_and_clear();
    Ok(())
}

/// Ends the current cluster where another one, or none, comes next.
fn end_other(
    current: &mut Option<Fingerprint>,
    next: Option<Fingerprint>,
    sink: &mut dyn ClusterSink,
) -> std::io::Result<()> {
    let before = std::mem::replace(current, next);
    if before.is_some() && before != next {
        sink.end_cluster()?;
    }
    Ok(())
}
