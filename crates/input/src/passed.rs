//! What a walk through folders passes over, for messages.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ignore::DirEntry;

use crate::files::{is_candidate, walker};

/// What a walk passes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    hidden: u64,
    links: u64,
    /// Named pipes and the like.
    others: u64,
}

impl Passed {
    /// Hands the files below these folders to `take`, in their order, or an error of a folder that cannot be read.
    /// Returns what is passed over, without what is in a hidden folder.
    pub(crate) fn over(roots: &[PathBuf], mut take: impl FnMut(io::Result<PathBuf>)) -> Self {
        let hidden = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&hidden);
        let mut walker = walker(roots);
        walker.hidden(false).filter_entry(move |entry| {
            let is_hidden = entry.depth() > 0 && has_dot(entry.path());
            count.fetch_add(is_hidden.into(), Ordering::Relaxed);
            !is_hidden
        });
        let mut passed = Self::default();
        for entry in walker.build() {
            match entry {
                Ok(entry) if is_candidate(&entry) => take(Ok(entry.into_path())),
                Ok(entry) => passed.count(&entry),
                Err(error) => take(Err(io::Error::other(error))),
            }
        }
        passed.hidden = hidden.load(Ordering::Relaxed);
        passed
    }

    /// Counts what is no file to be read.
    fn count(&mut self, entry: &DirEntry) {
        let Some(kind) = entry.file_type().filter(|_| entry.depth() > 0) else {
            return;
        };
        if kind.is_symlink() {
            self.links += 1;
        } else if !kind.is_dir() {
            self.others += 1;
        }
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
