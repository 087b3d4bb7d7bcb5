//! Hostile input for everything that reads text or files.
//!
//! Each target is a plain test: ten thousand cases, or a million with `SIMSHARD_LONG`. Inputs are
//! pieces of real ones, put together at random and damaged ([`splice`]). A case that fails is made
//! smaller and printed, with the seed that `BOLERO_RANDOM_SEED` takes to run it again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compressed;
mod lines;
mod names;
#[cfg(feature = "parquet")]
mod parquet;
mod patterns;
mod settings;
mod slowly;
mod splice;
mod warc;

use std::fs::File;
use std::io::{Seek, Write};

use simshard_cli::input::{Check, Content, Document, Format, InputArgs, MAX_RECORD_BYTES, Needs};

/// The longest id that a corpus takes.
const MAX_ID_BYTES: usize = 1024;

/// How many cases each target runs.
fn cases() -> usize {
    match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => 1_000_000,
        None => 10_000,
    }
}

/// What a document's content is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hashes,
    Lines,
    Tsv,
    JsonTexts,
    JsonFingerprints,
    JsonFeatures,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Hashes,
        Self::Lines,
        Self::Tsv,
        Self::JsonTexts,
        Self::JsonFingerprints,
        Self::JsonFeatures,
    ];

    fn args(self, skip_bad_lines: bool) -> InputArgs {
        let mut args = InputArgs::walking(Vec::new());
        args.skip_bad_lines = skip_bad_lines;
        args.format = Some(match self {
            Self::Hashes => Format::Hashes,
            Self::Lines => Format::Lines,
            Self::Tsv => Format::Tsv,
            Self::JsonTexts | Self::JsonFingerprints | Self::JsonFeatures => Format::Jsonl,
        });
        match self {
            Self::Hashes | Self::Lines | Self::Tsv | Self::JsonTexts => {}
            Self::JsonFingerprints => args.fingerprint_field = Some("hash".to_owned()),
            Self::JsonFeatures => args.features_field = Some("features".to_owned()),
        }
        args
    }
}

/// Those of a command that reads once.
const AS_READ: Needs = Needs {
    check: Check::AsRead,
    ..Needs::CLIENT
};

/// Makes some bytes the content of a file. A file system takes its time over one that is emptied
/// first, or made anew, a million times.
fn rewrite(mut file: &File, bytes: &[u8]) {
    file.rewind().unwrap();
    file.write_all(bytes).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
}

/// Checks what holds for every document, whatever it came from.
fn assert_within_limits(documents: &[Document]) {
    for document in documents {
        assert!(document.id.len() <= MAX_ID_BYTES);
        if let Content::Text(text) = &document.content {
            assert!(text.len() <= MAX_RECORD_BYTES);
        }
    }
}

/// Checks that a message can be printed: one line, and short whatever the input was.
fn assert_printable(message: &str) {
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.len() < 4_000, "{} bytes", message.len());
}
