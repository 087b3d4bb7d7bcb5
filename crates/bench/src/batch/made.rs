//! A compressed file of JSON lines that are made from real texts, and this program as a process that reads it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::ensure;
use serde_json::json;
use simshard_input::{Compression, Compressor};
use tempfile::TempDir;
use wait4::Wait4;

use super::{Settings, text};

/// Words of a short document.
const FEW_WORDS: usize = 30;

/// Every how many documents one is nearly the one before it.
pub(super) const NEAR_EVERY: usize = 3;

/// The documents that are made.
pub(super) enum Wanted {
    /// Whole texts, of this many bytes.
    Bytes(u64),
    /// This many whole texts.
    Whole(usize),
    /// This many of a few words.
    Short(usize),
}

/// What a process took.
pub(super) struct Cost {
    pub(super) seconds: f64,
    pub(super) peak_bytes: u64,
}

/// The file `in.jsonl.zst` of a folder.
pub(super) struct Made {
    pub(super) documents: usize,
    pub(super) bytes: u64,
}

impl Made {
    /// Writes the documents that are wanted.
    ///
    /// A whole one is the halves of two texts, other ones in each round; every third is the one before, and a word more.
    pub(super) fn new(
        settings: &Settings,
        folder: &TempDir,
        wanted: &Wanted,
    ) -> anyhow::Result<Self> {
        let texts = text::collect(&settings.texts, settings.max_mib)?.texts;
        let file = BufWriter::new(File::create(folder.path().join("in.jsonl.zst"))?);
        let mut out = Compressor::new(Some(Compression::Zstd), file)?;
        let mut made = Self {
            documents: 0,
            bytes: 0,
        };
        let mut before = String::new();
        while made.is_less_than(wanted) {
            let number = made.documents;
            let text = if number % NEAR_EVERY == NEAR_EVERY - 1 {
                format!("{before} again")
            } else {
                let (round, place) = (number / texts.len(), number % texts.len());
                let other = &texts[(place + 1 + 31 * round) % texts.len()];
                match wanted {
                    Wanted::Bytes(_) | Wanted::Whole(_) => halves(&texts[place], other),
                    Wanted::Short(_) => words(&texts[place], number),
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

    fn is_less_than(&self, wanted: &Wanted) -> bool {
        match *wanted {
            Wanted::Bytes(bytes) => self.bytes < bytes,
            Wanted::Whole(documents) | Wanted::Short(documents) => self.documents < documents,
        }
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

/// Runs this program in a folder. It must succeed, and what it prints is the file `printed` there.
pub(super) fn run(folder: &Path, arguments: &[&str]) -> anyhow::Result<Cost> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).arg("--quiet").current_dir(folder);
    command.stdin(Stdio::null());
    command.stdout(File::create(folder.join("printed"))?);
    let start = Instant::now();
    let child = command.spawn()?;
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
