//! The files of the repository: all that are not ignored, committed or not.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ignore::WalkBuilder;

/// A text file.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// Its path from the root, with forward slashes.
    pub(crate) path: String,
    /// What it says.
    pub(crate) text: String,
}

impl TextFile {
    /// A sample for the tests of the rules.
    pub(crate) fn sample(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Whether the whole file is test code.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests") || self.path.ends_with("/tests.rs")
    }
}

/// The folder with the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// One file of the repository.
pub(crate) fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}

/// All text files, by path. Files that are not UTF-8 are data, not text.
pub(crate) fn text_files() -> Result<Vec<TextFile>> {
    let root = root();
    let mut files = Vec::new();
    let walk = WalkBuilder::new(&root)
        .hidden(false)
        .git_global(false)
        .parents(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk {
        let entry = entry?;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path().strip_prefix(&root)?;
        let path = path.to_string_lossy().replace('\\', "/");
        // A file may vanish while it is being looked at, when an editor replaces it.
        if let Some(text) = fs::read(entry.path())
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        {
            files.push(TextFile { path, text });
        }
    }
    Ok(files)
}

/// All Rust files, by path.
pub(crate) fn rust_files() -> Result<Vec<TextFile>> {
    let mut files = text_files()?;
    files.retain(|file| file.path.ends_with(".rs"));
    ensure!(!files.is_empty(), "no Rust file found");
    Ok(files)
}

#[test]
fn the_walk_sees_sources_and_hidden_files_but_no_build_output() -> Result<()> {
    let files = text_files()?;
    let seen = |path: &str| files.iter().any(|file| file.path == path);
    assert!(seen("tests/tests/tidy/repository.rs"));
    assert!(seen(".ci/run"));
    assert!(seen("Cargo.toml"));
    assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    assert!(!files.iter().any(|file| file.path.starts_with(".git/")));
    Ok(())
}

#[test]
fn test_files_are_known_by_their_place() {
    for path in [
        "crates/a/tests/x.rs",
        "crates/a/src/b/tests.rs",
        "crates/a/src/tests/x.rs",
    ] {
        assert!(TextFile::sample(path, "").is_test(), "{path}");
    }
    for path in [
        "crates/a/src/lib.rs",
        "crates/a/src/contests.rs",
        "xtask/src/steps/rust_tests.rs",
    ] {
        assert!(!TextFile::sample(path, "").is_test(), "{path}");
    }
}
