//! The output of the demo: clusters, the shards of each node, and timings.

use std::io::Write;
use std::time::Duration;

use simshard_client::v1;
use simshard_runtime::terminal::escaped;
use simshard_simhash::Recipe;

use super::Timings;
use super::walk::Files;
use crate::commands::corpus::picture;

/// Clusters that are printed.
const CLUSTERS: usize = 5;

/// Files of each that are printed.
const FILES: usize = 6;

pub(super) fn print(
    files: &Files,
    clusters: &[Vec<usize>],
    recipe: Recipe,
    contents: &v1::GetCorpusResponse,
    timings: Timings,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let mib = files.bytes as f64 / f64::from(1 << 20);
    writeln!(
        out,
        "{} text files, {mib:.1} MiB, from {}",
        files.len(),
        escaped(&files.roots_text())
    )?;
    if !files.skipped.is_empty() {
        writeln!(out, "{}", files.skipped)?;
    }
    if let Some(doubts) = files.skipped.doubts() {
        writeln!(out, "{doubts}")?;
    }
    print_clusters(&mut out, files, clusters, recipe)?;
    writeln!(out, "\nWho holds what (a document is in several shards)\n")?;
    write!(out, "{}", picture(&contents.nodes))?;
    print_timings(&mut out, files, timings)?;
    Ok(())
}

fn print_clusters(
    out: &mut impl Write,
    files: &Files,
    clusters: &[Vec<usize>],
    recipe: Recipe,
) -> anyhow::Result<()> {
    if clusters.is_empty() {
        writeln!(out, "\nNo two of them are near-duplicates.")?;
        return Ok(());
    }
    let members: usize = clusters.iter().map(Vec::len).sum();
    writeln!(
        out,
        "\nClusters of near-duplicates: {}, with {members} files. Each file is near another one\n\
         of its cluster, not always near the first. The largest:",
        clusters.len()
    )?;
    let mut largest: Vec<&Vec<usize>> = clusters.iter().collect();
    largest.sort_by_key(|cluster| std::cmp::Reverse(cluster.len()));
    for cluster in largest.into_iter().take(CLUSTERS) {
        let first = cluster[0];
        writeln!(
            out,
            "\n  {} files, distances from the first:",
            cluster.len()
        )?;
        for &file in cluster.iter().take(FILES) {
            let distance = files.fingerprints[first].distance(files.fingerprints[file]);
            let path = escaped(files.short_path(file));
            let similarity = recipe.similarity(distance);
            let similarity = similarity.map(|share| format!("  ~{:>3.0} %", 100.0 * share));
            let similarity = similarity.unwrap_or_default();
            writeln!(out, "  {distance:>4}{similarity}  {path}")?;
        }
        if cluster.len() > FILES {
            writeln!(out, "        and {} more", cluster.len() - FILES)?;
        }
    }
    Ok(())
}

fn print_timings(out: &mut impl Write, files: &Files, timings: Timings) -> anyhow::Result<()> {
    let count = files.len() as f64;
    let mb = files.bytes as f64 / 1e6;
    let rate = |amount: f64, time: Duration| amount / time.as_secs_f64();
    let Timings { read, insert, find } = timings;
    writeln!(out)?;
    for (step, time, rate, unit) in [
        ("read and fingerprint", read, rate(mb, read), "MB/s"),
        ("insert, streamed", insert, rate(count, insert), "files/s"),
        ("find all of each", find, rate(count, find), "files/s"),
    ] {
        writeln!(
            out,
            "{step:22} {:8.3} s {rate:10.0} {unit}",
            time.as_secs_f64()
        )?;
    }
    writeln!(out)?;
    Ok(())
}
