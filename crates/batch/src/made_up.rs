//! Documents for tests, read as any others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Display;
use std::fs;

use simshard_input::{Format, Ids, InputOptions, parts};
use simshard_simhash::Recipe;

use crate::documents::DocumentSet;
use crate::member::BareName;

/// Documents without ids.
pub(crate) fn bare(fingerprints: &[u64], bare_name: BareName) -> DocumentSet {
    read(fingerprints, None, bare_name)
}

/// Documents with ids.
pub(crate) fn named(documents: &[(&str, u64)], bare_name: BareName) -> DocumentSet {
    let line = |(id, fingerprint): &(&str, u64)| format!("{id}\t{fingerprint}");
    let lines: Vec<String> = documents.iter().map(line).collect();
    read(&lines, Some(Format::Tsv), bare_name)
}

fn read(lines: &[impl Display], format: Option<Format>, bare_name: BareName) -> DocumentSet {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(file.path(), lines).unwrap();
    let options = InputOptions {
        format,
        skip_bad_lines: false,
        ..InputOptions::walking(vec![file.path().to_owned()])
    };
    let parts = parts(&options, Ids::Any, Recipe::default(), None, &mut |_| {}).unwrap();
    DocumentSet::new(parts, bare_name).unwrap()
}
