//! `dedup` of a compressed file of JSON lines that are made from real texts, as a process. Its time is measured against
//! what it cannot do without, and its memory against that of `find-clusters`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;
use simshard_input::{Compression, Compressor};
use tempfile::TempDir;
use wait4::Wait4;

use super::{Settings, text};
use crate::figure;

/// Words of a document where there are to be many.
const FEW_WORDS: usize = 30;

/// Every how many documents one is nearly the one before it.
const NEAR_EVERY: usize = 3;

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

/// What a process took.
struct Cost {
    seconds: f64,
    peak_bytes: u64,
}

/// Compares its time with that of `hash`, of another decompression and of compressing what is kept.
pub(super) fn speed(settings: &Settings) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(&settings.folder)?;
    let most = u64::from(settings.dedup_mib) << 20;
    let made = Made::new(settings, &folder, None, most)?;
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
    let made = Made::new(settings, &folder, Some(settings.n), u64::MAX)?;
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

/// The file `in.jsonl.zst` of a folder.
struct Made {
    documents: usize,
    bytes: u64,
}

impl Made {
    /// Writes documents, of few words if they are `count`, else whole texts, up to `most` bytes.
    ///
    /// A document is the halves of two texts, other ones in each round; every third is the one before, and a word more.
    fn new(
        settings: &Settings,
        folder: &TempDir,
        count: Option<usize>,
        most: u64,
    ) -> anyhow::Result<Self> {
        let texts = text::collect(&settings.texts, settings.max_mib)?.texts;
        let file = BufWriter::new(File::create(folder.path().join("in.jsonl.zst"))?);
        let mut out = Compressor::new(Some(Compression::Zstd), file)?;
        let mut made = Self {
            documents: 0,
            bytes: 0,
        };
        let mut before = String::new();
        while made.bytes < most && count.is_none_or(|count| made.documents < count) {
            let number = made.documents;
            let text = if number % NEAR_EVERY == NEAR_EVERY - 1 {
                format!("{before} again")
            } else {
                let (round, place) = (number / texts.len(), number % texts.len());
                let other = &texts[(place + 1 + 31 * round) % texts.len()];
                match count {
                    None => halves(&texts[place], other),
                    Some(_) => words(&texts[place], number),
                }
            };
            let id = format!("https://example.org/{number:09}");
            let line = json!({ "id": id, "number": number, "text": text }).to_string() + "\n";
            out.write_all(line.as_bytes())?;
            made.documents += 1;
            made.bytes += line.len() as u64;
            before = text;
        }
        out.finish()?
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        Ok(made)
    }
}

/// The first half of a text and the second of another.
fn halves(text: &str, other: &str) -> String {
    let first = &text[..text.floor_char_boundary(text.len() / 2)];
    let second = &other[other.ceil_char_boundary(other.len() / 2)..];
    format!("{first} {second}")
}

/// Some words of a text, from a place that the number says.
fn words(text: &str, number: usize) -> String {
    let all: Vec<&str> = text.split_whitespace().collect();
    let from = (number * FEW_WORDS).checked_rem(all.len()).unwrap_or(0);
    let words = all.into_iter().skip(from).take(FEW_WORDS);
    format!("{} {number}", words.collect::<Vec<_>>().join(" "))
}

fn decoder(path: &Path) -> io::Result<impl io::Read> {
    zstd::stream::read::Decoder::with_buffer(BufReader::new(File::open(path)?))
}

/// Runs this program, which must succeed.
fn run(folder: &Path, arguments: &[&str]) -> anyhow::Result<Cost> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).arg("--quiet").current_dir(folder);
    let start = Instant::now();
    let child = command.stdin(Stdio::null()).spawn()?;
    let ended = child.wait4()?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(
        ended.status.success(),
        "`simshard {}` failed",
        arguments.join(" ")
    );
    Ok(Cost {
        seconds,
        peak_bytes: ended.rusage.maxrss,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_parts_of_texts() {
        assert_eq!(halves("ab", "cd"), "a d");
        assert_eq!(halves("é", "é"), " ");
        assert_eq!(words("", 7), " 7");
        assert_eq!(words("a b c", 1), "a b c 1");
    }
}
