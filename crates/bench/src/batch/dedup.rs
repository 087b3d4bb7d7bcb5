//! `dedup` of a compressed file of JSON lines that are made from real texts, as a process. Its time is measured against
//! what it cannot do without, and its memory against that of `find-clusters`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use serde::Serialize;
use simshard_input::{Compression, Compressor};

use super::Settings;
use super::made::{Made, NEAR_EVERY, Wanted, run};
use crate::figure;

/// The time of `dedup`.
#[derive(Serialize)]
struct Speed {
    case: &'static str,
    documents: usize,
    megabytes: f64,
    kept: usize,
    seconds: f64,
    hash_seconds: f64,
    decompress_seconds: f64,
    compress_seconds: f64,
    /// Its time by the sum of the three.
    against_sum: f64,
}

/// The memory of `dedup`.
#[derive(Serialize)]
struct Memory {
    case: &'static str,
    documents: usize,
    peak_bytes: u64,
    find_clusters_peak_bytes: u64,
    more_bytes_per_document: f64,
}

/// Compares its time with that of `hash`, of another decompression and of compressing what is kept.
pub(super) fn speed(settings: &Settings) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(&settings.folder)?;
    let most_bytes = u64::from(settings.dedup_mib) << 20;
    let made = Made::new(settings, &folder, &Wanted::Bytes(most_bytes))?;
    let output = folder.path().join("kept.jsonl.zst");
    let hash = run(folder.path(), &["hash", "in.jsonl.zst", "-o", "hashes.tsv"])?;
    let dedup = run(
        folder.path(),
        &["dedup", "in.jsonl.zst", "-o", "kept.jsonl.zst"],
    )?;
    let start = Instant::now();
    io::copy(
        &mut decoder(&folder.path().join("in.jsonl.zst"))?,
        &mut io::sink(),
    )?;
    let decompress_seconds = start.elapsed().as_secs_f64();
    let mut kept = Vec::new();
    io::copy(&mut decoder(&output)?, &mut kept)?;
    let start = Instant::now();
    let mut compressor = Compressor::new(Some(Compression::Zstd), io::sink())?;
    compressor.write_all(&kept)?;
    compressor.finish()?;
    let compress_seconds = start.elapsed().as_secs_f64();
    let lines = kept.lines().count();
    // Those that differ from the one before in a word are dropped, and few others.
    let most = made.documents - made.documents / NEAR_EVERY;
    ensure!(
        lines <= most && lines > most / 2,
        "dedup kept {lines} of {} documents",
        made.documents
    );
    let figure = Speed {
        case: "dedup",
        documents: made.documents,
        megabytes: made.bytes as f64 / 1e6,
        kept: lines,
        seconds: dedup.seconds,
        hash_seconds: hash.seconds,
        decompress_seconds,
        compress_seconds,
        against_sum: dedup.seconds / (hash.seconds + decompress_seconds + compress_seconds),
    };
    figure::print(&figure, settings.json, || {
        format!(
            "dedup            {:8.1} MB/s {:8.3} s  {:.2} of hash, decompression and compression",
            figure.megabytes / figure.seconds,
            figure.seconds,
            figure.against_sum
        )
    })
}

/// Compares its memory with that of `find-clusters` of the same.
pub(super) fn memory(settings: &Settings) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(&settings.folder)?;
    let made = Made::new(settings, &folder, &Wanted::Short(settings.n))?;
    let dedup = run(
        folder.path(),
        &["dedup", "in.jsonl.zst", "-o", "kept.jsonl.zst"],
    )?;
    let clusters = run(
        folder.path(),
        &["find-clusters", "in.jsonl.zst", "-o", "clusters.tsv"],
    )?;
    let more = dedup.peak_bytes as f64 - clusters.peak_bytes as f64;
    let figure = Memory {
        case: "dedup_memory",
        documents: made.documents,
        peak_bytes: dedup.peak_bytes,
        find_clusters_peak_bytes: clusters.peak_bytes,
        more_bytes_per_document: more / made.documents as f64,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "dedup_memory     {:8.1} bytes a document more than find-clusters, {:.3} GB at most",
            figure.more_bytes_per_document,
            figure.peak_bytes as f64 / 1e9
        )
    })
}

fn decoder(path: &Path) -> io::Result<impl io::Read> {
    zstd::stream::read::Decoder::with_buffer(BufReader::new(File::open(path)?))
}
