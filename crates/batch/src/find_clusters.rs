//! The groups of documents that pairs link, directly or through others.

use std::io;
use std::time::Instant;

use simshard_runtime::terminal::counted;

use crate::clusters::DocumentClusters;
use crate::job::{Job, JobError, Sorted, Summary, show};
use crate::output::{Output, OutputError, OutputFormat, Rows, Sink};
use crate::progress::Progress;
use crate::statistics::Statistics;

/// Writes the clusters by their smallest fingerprint, those of one document only with
/// `singletons`.
///
/// # Errors
/// If the input is bad, or an output cannot be written. Then no file is changed.
pub fn find_clusters(job: Job, singletons: bool, progress: Progress) -> Result<Summary, JobError> {
    job.run(progress, |sorted, format, output| {
        find(sorted, format, output, singletons, progress)
    })
}

fn find(
    mut sorted: Sorted,
    format: OutputFormat,
    output: Output,
    singletons: bool,
    progress: Progress,
) -> Result<Summary, JobError> {
    let start = Instant::now();
    let bar = (progress.bar)("joining", Some(0));
    let set = sorted.documents.fingerprints();
    let linked = sorted.search.clusters(set, &show(&bar));
    let clusters = DocumentClusters::new(&sorted.documents, linked);
    bar.finish_and_clear();
    sorted.timings.join = start.elapsed();

    let start = Instant::now();
    let failed = OutputError::failed(output.name().to_owned());
    let mut statistics = sorted.statistics();
    let write = || {
        let mut sink = format.sink(Rows::Members, sorted.notation, output)?;
        write(&clusters, singletons, &mut *sink, &mut statistics, progress)?;
        sink.finish()?.complete()
    };
    let output = write().map_err(failed)?;
    statistics.timings.write = start.elapsed();
    let found = counted(statistics.clusters.count(), "cluster");
    sorted.close(output, statistics, &found)
}

/// Writes those of two documents and more, or all of them.
fn write(
    clusters: &DocumentClusters<'_>,
    singletons: bool,
    sink: &mut dyn Sink,
    statistics: &mut Statistics,
    progress: Progress,
) -> io::Result<()> {
    let bar = (progress.bar)("writing", Some(statistics.documents));
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
    }
    bar.finish_and_clear();
    Ok(())
}
