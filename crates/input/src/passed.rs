//! What a walk through folders passes over, for messages.

use std::fmt;
use std::path::{Path, PathBuf};

use ignore::DirEntry;

use crate::files::walker;

/// What a walk passes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    hidden: u64,
    links: u64,
    /// Named pipes and the like.
    others: u64,
}

impl Passed {
    /// What is passed over below these folders, without what is in a hidden folder.
    pub(crate) fn over(roots: &[PathBuf]) -> Self {
        let mut passed = Self::default();
        let is_hidden = |entry: &DirEntry| entry.depth() > 0 && has_dot(entry.path());
        let in_hidden =
            |entry: &DirEntry| entry.depth() > 1 && entry.path().parent().is_some_and(has_dot);
        let mut walker = walker(roots);
        let all = walker
            .hidden(false)
            .filter_entry(move |entry| !in_hidden(entry))
            .build();
        for entry in all.flatten() {
            let kind = entry.file_type();
            if is_hidden(&entry) {
                passed.hidden += 1;
            } else if entry.depth() == 0 || kind.is_some_and(|kind| kind.is_file()) {
                // It is read, or left out for what it is.
            } else if kind.is_some_and(|kind| kind.is_symlink()) {
                passed.links += 1;
            } else if kind.is_some_and(|kind| !kind.is_dir()) {
                passed.others += 1;
            }
        }
        passed
    }

    /// What there is, with its number.
    pub(crate) fn counts(self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = [
            ("hidden", self.hidden),
            ("links", self.links),
            ("neither files nor folders", self.others),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0)
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.counts().map(|(what, count)| format!("{count} {what}"));
        let seen: Vec<String> = seen.collect();
        if seen.is_empty() {
            return f.write_str("nothing is in it");
        }
        write!(
            f,
            "of what is in it, {} are passed over unless named",
            seen.join(", ")
        )
    }
}

/// Whether a name begins with a dot.
fn has_dot(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}
