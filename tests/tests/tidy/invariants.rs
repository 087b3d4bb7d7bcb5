//! Every invariant that a module states by an id is named where it is tested or asserted, and listed on the page of
//! invariants.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::assert_none;
use crate::repository::{TextFile, read, rust_files};
use crate::rust_source::{code_only, has_word, lines_in_test_modules};

/// Where all of them are listed.
const PAGE: &str = "docs/design/invariants.md";

#[test]
fn every_invariant_is_named_by_a_test_or_an_assertion() -> Result<()> {
    let crates = crates()?;
    let stated: usize = crates.iter().map(|file| ids(&file.text).len()).sum();
    ensure!(stated > 20, "only {stated} invariants were found");
    assert_none(&untested(&crates));
    Ok(())
}

#[test]
fn every_invariant_is_in_the_table_of_the_page() -> Result<()> {
    assert_none(&unlisted(&crates()?, &read(PAGE)?));
    Ok(())
}

#[test]
fn the_overview_has_the_ids_of_each_section() -> Result<()> {
    let problems = overview_problems(&read(PAGE)?);
    assert_none(&problems);
    Ok(())
}

#[test]
fn an_overview_with_other_ids_than_its_sections_is_reported() {
    let sections = "## A\n| Z1-Z2 | x |\n| Z3 | y |\n## B\n| Y1 | z |\n";
    let page = |a: &str, b: &str| format!("| [A](#a) | {a} |\n| [B](#b) | {b} |\n{sections}");
    assert_none(&overview_problems(&page("Z1-Z3", "Y1")));
    for (a, b) in [("Z1, Z2", "Y1"), ("Z1-Z3", "Y1, Y2"), ("Z1-Z3, Y1", "Y1")] {
        assert_eq!(overview_problems(&page(a, b)).len(), 1, "{a} {b}");
    }
    assert_eq!(overview_problems(sections).len(), 2);
}

#[test]
fn an_invariant_that_the_table_lacks_is_reported() {
    let source = "//! - Z1: a\n//! - Z2: b\n//! - Z3: c\n//! - Y1: d\n//! - Y2: e\n";
    let file = TextFile::sample("crates/a/src/b.rs", source);
    let table = "| id | promise |\n|---|---|\n| Z1-Z3 | some, not Y1 |\n| X1, Y2 | more |\n";
    assert_eq!(
        unlisted(&[file], table),
        ["crates/a/src/b.rs: the table in docs/design/invariants.md lacks Y1"]
    );
}

#[test]
fn an_invariant_without_a_test_is_reported() {
    let source = "//! # Invariants\n//! - Z1: always\n//! - Z2: never\nfn f() {}\n";
    let test = "#[cfg(test)]\nmod tests {\n    /// Z1\n    #[test]\n    fn always() {}\n}\n";
    let both = TextFile::sample("crates/a/src/b.rs", &format!("{source}{test}"));
    let problems = untested(&[both]);
    assert_eq!(
        problems,
        ["crates/a/src/b.rs: no test or assertion names Z2"]
    );
    let stated = TextFile::sample("crates/a/src/b.rs", source);
    let elsewhere = TextFile::sample("crates/a/tests/c.rs", "//! Z1 and Z2.\n");
    assert!(untested(&[stated, elsewhere]).is_empty());
}

#[test]
fn an_assertion_counts_and_prose_does_not() {
    let assertion = "//! - Z1: x\nfn f() { debug_assert!(true, \"Z1\"); }\n";
    assert!(untested(&[TextFile::sample("crates/a/src/b.rs", assertion)]).is_empty());
    let prose = "//! - Z1: x\n// Z1 holds here.\nfn f() {}\n";
    assert_eq!(
        untested(&[TextFile::sample("crates/a/src/b.rs", prose)]).len(),
        1
    );
}

fn crates() -> Result<Vec<TextFile>> {
    let files = rust_files()?.into_iter();
    let ours =
        |file: &TextFile| file.path.starts_with("crates/") || file.path.starts_with("tests/");
    Ok(files.filter(ours).collect())
}

/// The invariants that no row of the tables of a document is about.
fn unlisted(files: &[TextFile], document: &str) -> Vec<String> {
    let listed: BTreeSet<String> = document.lines().flat_map(listed).collect();
    let mut problems = Vec::new();
    for file in files {
        let missing = ids(&file.text)
            .into_iter()
            .filter(|id| !listed.contains(id));
        let problem = |id| format!("{}: the table in {PAGE} lacks {id}", file.path);
        problems.extend(missing.map(problem));
    }
    problems
}

/// The sections of a document of which its overview, `| [section](#place) | X1-X9 |`, has other ids than their tables.
fn overview_problems(document: &str) -> Vec<String> {
    let mut overview: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut tables: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut section = "";
    for line in document.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            section = name;
        }
        let linked = line.strip_prefix("| [");
        if let Some((name, rest)) = linked.and_then(|row| row.split_once("](")) {
            let row = rest.split_once(") ").map_or("", |(_, row)| row);
            overview.insert(name, listed(row).into_iter().collect());
        }
        let ids = listed(line);
        if !ids.is_empty() {
            tables.entry(section).or_default().extend(ids);
        }
    }
    let names: BTreeSet<&str> = overview.keys().chain(tables.keys()).copied().collect();
    let differ = |name: &&str| overview.get(name) != tables.get(name);
    let problem = |name| format!("{PAGE}: the overview has other ids than the section `{name}`");
    names.into_iter().filter(differ).map(problem).collect()
}

/// The ids in the first cell of a row: `| X1, X2 | …` or `| X1-X9 | …`.
fn listed(row: &str) -> Vec<String> {
    let cell = row.strip_prefix("| ").and_then(|row| row.split_once(" |"));
    let (cell, _) = cell.unwrap_or_default();
    cell.split(", ").flat_map(range).collect()
}

/// The ids from one to another, or the one.
fn range(ids: &str) -> Vec<String> {
    let (first, last) = ids.split_once('-').unwrap_or((ids, ids));
    let (Some((letters, first)), Some((_, last))) = (parts(first), parts(last)) else {
        return Vec::new();
    };
    let numbers = first..=last;
    numbers.map(|number| format!("{letters}{number}")).collect()
}

/// The invariants that nothing checks by name.
fn untested(files: &[TextFile]) -> Vec<String> {
    let checks: String = files.iter().map(checks).collect();
    let mut problems = Vec::new();
    for file in files {
        for id in ids(&file.text) {
            if !has_word(&checks, &id) {
                problems.push(format!("{}: no test or assertion names {id}", file.path));
            }
        }
    }
    problems
}

/// The ids that the header of a file states: `//! - X1: …`.
fn ids(source: &str) -> Vec<String> {
    let header = source.lines().take_while(|line| line.starts_with("//!"));
    let stated = header.filter_map(|line| line.strip_prefix("//! - ")?.split_once(':'));
    stated
        .map(|(id, _)| id.to_owned())
        .filter(|id| is_id(id))
        .collect()
}

fn is_id(word: &str) -> bool {
    parts(word).is_some()
}

/// The letters and the number of an id.
fn parts(word: &str) -> Option<(&str, u32)> {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let named = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_uppercase());
    let number = word[letters.len()..].parse().ok()?;
    named.then_some((letters, number))
}

/// The lines of a file that check something, comments in tests included.
fn checks(file: &TextFile) -> String {
    if file.is_test() {
        return file.text.clone();
    }
    let inside = lines_in_test_modules(&code_only(&file.text));
    let mut checks = String::new();
    for (line, inside) in file.text.lines().zip(inside) {
        if inside || line.contains("debug_assert") {
            checks.push_str(line);
            checks.push('\n');
        }
    }
    checks
}
