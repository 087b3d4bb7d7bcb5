//! `unsafe` stands only where processor instructions need it, and on the settings of the allocator. The workspace's
//! lints deny it too; this rule checks that no file allows it elsewhere.

use anyhow::{Result, ensure};

use crate::assert_none;
use crate::repository::{self, TextFile};
use crate::rust_source::{code_only, has_word};

/// The one folder that may hold it.
const SCANS: &str = "crates/simhash/src/scan/";

/// The one file elsewhere: it names a symbol that the allocator looks for.
const ALLOCATOR: &str = "crates/runtime/src/allocator.rs";

fn misplaced(file: &TextFile) -> Vec<String> {
    if file.path.starts_with(SCANS) || file.path == ALLOCATOR {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (index, line) in code_only(&file.text).lines().enumerate() {
        // `forbid` and `deny` may name the lint anywhere.
        let allows =
            has_word(line, "unsafe_code") && !line.contains("deny") && !line.contains("forbid");
        if allows || has_word(line, "unsafe") {
            let place = format!("{}:{}", file.path, index + 1);
            problems.push(format!("{place}: unsafe code belongs into {SCANS}"));
        }
    }
    problems
}

#[test]
fn unsafe_code_stands_only_among_the_scans() -> Result<()> {
    let files = repository::rust_files()?;
    ensure!(
        files.iter().any(|file| file.path.starts_with(SCANS)),
        "{SCANS} is empty"
    );
    let problems: Vec<_> = files.iter().flat_map(misplaced).collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn the_workspace_denies_unsafe_code() -> Result<()> {
    let manifest = repository::read("Cargo.toml")?;
    assert!(
        manifest
            .lines()
            .any(|line| line == "unsafe_code = \"deny\"")
    );
    Ok(())
}

#[test]
fn every_crate_keeps_the_lints_of_the_workspace() -> Result<()> {
    for file in repository::text_files()? {
        if file.path.ends_with("/Cargo.toml") {
            assert!(
                file.text.contains("[lints]\nworkspace = true"),
                "{}",
                file.path
            );
        }
    }
    Ok(())
}

#[test]
fn unsafe_code_elsewhere_is_reported() {
    for code in [
        "unsafe { f() }",
        "pub unsafe fn f() {}",
        "#![allow(unsafe_code)]",
        "#[expect(\n    unsafe_code\n)]",
    ] {
        assert_eq!(
            misplaced(&TextFile::sample("crates/node/src/a.rs", code)).len(),
            1,
            "{code}"
        );
        let scan = format!("{SCANS}a.rs");
        assert_none(&misplaced(&TextFile::sample(&scan, code)));
    }
}

#[test]
fn talk_of_unsafe_code_is_not_reported() {
    for code in [
        "// unsafe",
        "let a = \"unsafe\";",
        "#![forbid(unsafe_code)]",
    ] {
        assert_none(&misplaced(&TextFile::sample("crates/node/src/a.rs", code)));
    }
}
