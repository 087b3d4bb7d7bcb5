//! Paths as they were given, patterns expanded.
//!
//! A pattern is followed name by name, and only folders that it can lead through are read. Names are
//! bytes: one that is no UTF-8 is matched with `�` for what cannot be read.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::error::InputError;

/// The characters that make a name a pattern.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// As shells have it: a wildcard does not match the dot of a hidden file.
const AS_SHELLS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A part of a pattern between two `/`.
enum Step<'a> {
    /// A name without wildcards, `/` or `..`.
    Name(&'a OsStr),
    /// A name with wildcards.
    Like(Pattern),
    /// `**`: a folder and all below it, without hidden ones and links.
    Below,
}

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The paths that `given` mean, in its order, those of one pattern sorted. What exists is no
/// pattern, whatever its name.
pub(crate) fn expand(given: &[PathBuf]) -> Result<Vec<PathBuf>, InputError> {
    let mut paths = Vec::with_capacity(given.len());
    for path in given {
        match path.to_str().filter(|path| path.contains(WILDCARDS)) {
            Some(pattern) if !path.exists() => paths.extend(matches(pattern)?),
            Some(_) | None => paths.push(path.clone()),
        }
    }
    Ok(paths)
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>, InputError> {
    let mut paths = vec![PathBuf::new()];
    for step in steps(pattern)? {
        paths = step.follow(paths)?;
    }
    if pattern.ends_with('/') {
        paths.retain(|path| path.is_dir());
    }
    if paths.is_empty() {
        let pattern = pattern.to_owned();
        return Err(InputError::NoMatch { pattern });
    }
    paths.sort();
    Ok(paths)
}

fn steps(pattern: &str) -> Result<Vec<Step<'_>>, InputError> {
    let bad = |reason| InputError::BadPattern {
        pattern: pattern.to_owned(),
        reason,
    };
    let mut steps = Vec::new();
    for component in Path::new(pattern).components() {
        let name = component.as_os_str();
        let like = name.to_str().filter(|name| name.contains(WILDCARDS));
        steps.push(match like {
            Some("**") => Step::Below,
            Some(like) => Step::Like(Pattern::new(like).map_err(|error| bad(error.msg))?),
            None if component == Component::CurDir => continue,
            None => Step::Name(name),
        });
    }
    Ok(steps)
}

impl Step<'_> {
    /// Where this leads from some paths, each once.
    fn follow(&self, from: Vec<PathBuf>) -> Result<Vec<PathBuf>, InputError> {
        let mut to = Vec::new();
        for path in from {
            match self {
                Self::Name(name) => {
                    let path = path.join(name);
                    if path.symlink_metadata().is_ok() {
                        to.push(path);
                    }
                }
                Self::Like(pattern) => {
                    for entry in entries(&path)? {
                        let name = entry.file_name();
                        if pattern.matches_with(&name.to_string_lossy(), AS_SHELLS) {
                            to.push(path.join(name));
                        }
                    }
                }
                Self::Below => to.extend(folders(path)?),
            }
        }
        if matches!(self, Self::Below) {
            // A folder found by an earlier `**` is below another.
            to.sort();
            to.dedup();
        }
        Ok(to)
    }
}

/// A folder and all below it; nothing where the path is no folder.
fn folders(top: PathBuf) -> Result<Vec<PathBuf>, InputError> {
    if !as_folder(&top).is_dir() {
        return Ok(Vec::new());
    }
    let mut folders = vec![top];
    let mut read = 0;
    while let Some(folder) = folders.get(read).cloned() {
        for entry in entries(&folder)? {
            let name = entry.file_name();
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(folder.join(name));
            }
        }
        read += 1;
    }
    Ok(folders)
}

/// The entries of a folder; none if the path is not a folder.
fn entries(path: &Path) -> Result<Vec<DirEntry>, InputError> {
    let folder = as_folder(path);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries: io::Result<Vec<DirEntry>> = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(InputError::unreadable(folder.display()))
}

/// The path to read: the empty one stands for the working folder.
fn as_folder(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        return Path::new(".");
    }
    path
}
