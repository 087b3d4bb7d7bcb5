//! The text of the corpora file.
//!
//! ```toml
//! # The corpora of this cluster, kept by Simshard. Do not edit: use `simshard corpus`.
//!
//! version = 2
//! checksum = "5f0c…"
//! revision = 7
//! corpus_count = 1
//!
//! [[corpora]]
//! name = "default"
//! uid = "67e55044-10b1-426f-9247-bb680e5fe0c8"
//! blocks = 5
//! distance = 3
//! recipe = "words-v1"
//! create_time_seconds = 1700000000
//! create_time_nanos = 123456789
//! state = "deleting"
//! ```
//!
//! Corpora are sorted by name. The time is seconds since 1970 (negative before),
//! plus nanoseconds from 0 to 999,999,999, so that reading gives the exact time. The state is `creating` or
//! `deleting`; a live corpus has none.
//!
//! The checksum is the BLAKE3 hash of all bytes before its line and all bytes after it, as 64 lower-case hexadecimal
//! digits. Its line is exactly as above, so the checksum covers every byte. An error names the line of the first
//! mistake; if only the checksum is wrong, the damaged line is unknown.
//!
//! Version 1 has no checksum, revision or state. It counts as revision 1, and the next change writes version 2. In
//! version 1, only the count and the final line end reveal that a file was cut short.

use std::collections::{BTreeMap, HashSet};
use std::io;

use serde::Deserialize;
use simshard_runtime::toml_mistake::TomlMistake;
use toml::Spanned;

use crate::corpora::Corpora;
use crate::corpus::{CorpusName, CorpusRecord, CorpusState};
use crate::durable_file::Content;
use crate::raw_corpus::{RawCorpus, unix_from_time};

/// The version that this program writes.
const VERSION: u32 = 2;

/// The revision of a file of version 1. It is not 0, as the file has been written.
const REVISION_OF_VERSION_1: u64 = 1;

const HEADER: &str = "\
# The corpora of this cluster, kept by Simshard. Do not edit: use `simshard corpus`.

";

/// Why a text is no corpora file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FormatError {
    /// A later Simshard wrote it.
    UnknownVersion { found: u32 },
    /// It is damaged here.
    Corrupt(TomlMistake),
}

/// Just enough of any version to know which one it is.
#[derive(Deserialize)]
struct RawVersion {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVersion1 {
    #[serde(rename = "version")]
    _version: u32,
    corpus_count: usize,
    #[serde(default)]
    corpora: Vec<Spanned<RawCorpus>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVersion2 {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(rename = "checksum")]
    _checksum: String,
    revision: u64,
    corpus_count: usize,
    #[serde(default)]
    corpora: Vec<Spanned<RawCorpus>>,
}

impl Content for Corpora {
    type Damage = FormatError;

    fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        parse(bytes)
    }

    fn render(&self) -> io::Result<String> {
        Ok(render(self))
    }
}

/// Reads the bytes of a corpora file.
fn parse(bytes: &[u8]) -> Result<Corpora, FormatError> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let before = str::from_utf8(before).unwrap_or_default();
            let message = "this is not UTF-8".to_owned();
            return Err(corrupt_at(before, before.len(), message));
        }
    };
    let RawVersion { version } = from_toml(text)?;
    match version {
        1 => {
            let raw: RawVersion1 = from_toml(text)?;
            let by_name = records(text, raw.corpus_count, raw.corpora)?;
            Ok(Corpora::at(REVISION_OF_VERSION_1, by_name))
        }
        VERSION => {
            let raw: RawVersion2 = from_toml(text)?;
            let by_name = records(text, raw.corpus_count, raw.corpora)?;
            check_sum(text)?;
            Ok(Corpora::at(raw.revision, by_name))
        }
        found => Err(FormatError::UnknownVersion { found }),
    }
}

fn from_toml<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FormatError> {
    toml::from_str(text).map_err(|error| FormatError::Corrupt(TomlMistake::of(text, &error)))
}

/// The records of a file, which must be `expected` in number.
fn records(
    text: &str,
    expected: usize,
    raw: Vec<Spanned<RawCorpus>>,
) -> Result<BTreeMap<CorpusName, CorpusRecord>, FormatError> {
    let found = raw.len();
    if expected != found {
        let message = format!("corpus_count is {expected}, but {found} corpora are here");
        return Err(corrupt_at(text, text.len(), message));
    }
    if !text.ends_with('\n') {
        let message = "the last line has no end".to_owned();
        return Err(corrupt_at(text, text.len(), message));
    }
    let (mut by_name, mut uids) = (BTreeMap::new(), HashSet::new());
    for raw in raw {
        let start = raw.span().start;
        let at = |message| corrupt_at(text, start, message);
        let record = raw.into_inner().validated().map_err(at)?;
        if !uids.insert(record.uid) {
            return Err(at(format!("uid {} is listed twice", record.uid)));
        }
        if let Some(twice) = by_name.insert(record.name.clone(), record) {
            return Err(at(format!("corpus {} is listed twice", twice.name)));
        }
    }
    Ok(by_name)
}

/// Refuses a text of version 2 that differs in any byte from the text that was written.
fn check_sum(text: &str) -> Result<(), FormatError> {
    // The checksum is not on the first line, and no line before it looks like it.
    let Some(start) = text.find("\nchecksum = ").map(|newline| newline + 1) else {
        let message = "the line of the checksum is missing".to_owned();
        return Err(corrupt_at(text, 0, message));
    };
    let (before, rest) = text.split_at(start);
    let end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
    let (line, after) = rest.split_at(end);
    if line != checksum_line(before, after) {
        let message = "the checksum is not that of this file, which was damaged or edited";
        return Err(corrupt_at(text, start, message.to_owned()));
    }
    Ok(())
}

fn checksum_line(before: &str, after: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before.as_bytes());
    hasher.update(after.as_bytes());
    format!("checksum = \"{}\"\n", hasher.finalize().to_hex())
}

fn corrupt_at(text: &str, offset: usize, message: String) -> FormatError {
    FormatError::Corrupt(TomlMistake::at(text, offset, message))
}

/// The text of a corpora file with these corpora. Each change writes all of them, so this does without serde: for a
/// thousand corpora, serde takes 0.8 ms more, 1.7 times as long.
fn render(corpora: &Corpora) -> String {
    let before = format!("{HEADER}version = {VERSION}\n");
    let mut after = format!(
        "revision = {}\ncorpus_count = {}\n",
        corpora.revision(),
        corpora.len()
    );
    if corpora.is_empty() {
        after.push_str("corpora = []\n");
    }
    for record in corpora.records() {
        render_record(record, &mut after);
    }
    let checksum = checksum_line(&before, &after);
    before + &checksum + &after
}

fn render_record(record: &CorpusRecord, text: &mut String) {
    let (seconds, nanos) = unix_from_time(record.create_time);
    // Only a recipe may have characters to be escaped.
    let recipe = toml::Value::from(record.recipe.as_str());
    let state = match record.state {
        CorpusState::Creating => "state = \"creating\"\n",
        CorpusState::Live => "",
        CorpusState::Deleting => "state = \"deleting\"\n",
    };
    let CorpusRecord {
        name,
        uid,
        blocks,
        distance,
        ..
    } = record;
    text.push_str(&format!(
        "\n[[corpora]]\nname = \"{name}\"\nuid = \"{uid}\"\nblocks = {blocks}\ndistance = {distance}\n\
         recipe = {recipe}\ncreate_time_seconds = {seconds}\ncreate_time_nanos = {nanos}\n{state}"
    ));
}

#[cfg(test)]
mod tests;
