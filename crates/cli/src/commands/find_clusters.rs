//! `simshard find-clusters`: the groups of documents that pairs link, directly or through others.

use std::io;
use std::time::Instant;

use clap::Args;

use crate::batch::{BatchArgs, DocumentClusters, Job, Sorted, Statistics, show};
use crate::output::{ClusterSink, Output, OutputError, OutputFormat};
use crate::progress;

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
    /// What both commands take.
    #[command(flatten)]
    pub batch: BatchArgs,
    /// Write documents without near-duplicates too, each as a cluster of its own
    #[arg(long, help_heading = "Output")]
    pub singletons: bool,
}

/// Writes the clusters.
///
/// # Errors
/// If the arguments or the input are bad, or the output cannot be written.
pub fn run(args: &FindClustersArgs) -> anyhow::Result<()> {
    let singletons = args.singletons;
    Job::new("find-clusters", &args.batch)?
        .run(|sorted, format, output| find(sorted, format, output, singletons))
}

fn find(
    mut sorted: Sorted,
    format: OutputFormat,
    output: Output,
    singletons: bool,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let bar = progress::bar("joining", Some(0));
    let set = sorted.documents.fingerprints();
    let linked = sorted.search.clusters(set, &show(&bar));
    let clusters = DocumentClusters::new(&sorted.documents, &linked);
    bar.finish_and_clear();
    sorted.timings.join = start.elapsed();

    let start = Instant::now();
    let failed = OutputError::failed(output.name().to_owned());
    let mut statistics = sorted.statistics();
    let write = || {
        let mut sink = format.clusters(output)?;
        write(&clusters, singletons, &mut *sink, &mut statistics)?;
        sink.finish()?.complete()
    };
    let output = write().map_err(failed)?;
    statistics.timings.write = start.elapsed();
    let found = format!("{} clusters", statistics.clusters.count());
    sorted.close(output, statistics, &found)
}

/// Writes those of two documents and more, or all of them.
fn write(
    clusters: &DocumentClusters<'_>,
    singletons: bool,
    sink: &mut dyn ClusterSink,
    statistics: &mut Statistics,
) -> io::Result<()> {
    let bar = progress::bar("writing", Some(statistics.documents));
    for cluster in clusters.iter() {
        let size = cluster.document_count();
        bar.inc(size);
        if size > 1 {
            statistics.clusters.add(cluster, size);
        } else if !singletons {
            continue;
        }
        for member in cluster.members() {
            sink.member(cluster.id(), &member)?;
        }
        sink.end_cluster()?;
    }
    bar.finish_and_clear();
    Ok(())
}
