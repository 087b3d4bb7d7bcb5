//! `simhash` and `topology` stay pure: no async, no I/O, no serialisation, no clock. Time and seeds
//! come in as arguments, so that everything they do can be tested without a machine around it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::assert_none;
use crate::repository::{self, TextFile};
use crate::rust_source::{code_only, has_word, without_test_modules};

const PURE: [&str; 2] = ["simhash", "topology"];

/// What a pure crate may not use, itself or through others.
const IMPURE_PACKAGES: [&str; 6] = [
    "tokio",
    "serde",
    "serde_core",
    "tonic",
    "prost",
    "async-trait",
];

/// What its product code may not mention.
const IMPURE_WORDS: [&str; 16] = [
    "std::fs",
    "std::io",
    "std::net",
    "std::time",
    "std::env",
    "std::process",
    "std::os",
    "SystemTime",
    "Instant",
    "async",
    "await",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "tokio",
];

/// The names of all packages that a package is built from, by package name.
fn transitive(uses: &BTreeMap<String, BTreeSet<String>>, start: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start.to_owned()];
    while let Some(name) = open.pop() {
        for next in uses.get(&name).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

fn impure_packages(uses: &BTreeMap<String, BTreeSet<String>>, start: &str) -> Vec<String> {
    let all = transitive(uses, start);
    let impure = IMPURE_PACKAGES.iter().filter(|name| all.contains(**name));
    impure
        .map(|name| format!("{start} is pure and may not depend on {name}"))
        .collect()
}

/// The normal dependencies of every package, on this platform.
fn normal_dependencies(metadata: &Metadata) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let names: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.to_string()))
        .collect();
    let mut uses = BTreeMap::<String, BTreeSet<String>>::new();
    for node in &metadata
        .resolve
        .as_ref()
        .context("cargo metadata resolved nothing")?
        .nodes
    {
        let row = uses.entry(names[&node.id].clone()).or_default();
        for dependency in &node.deps {
            if dependency
                .dep_kinds
                .iter()
                .any(|info| info.kind == DependencyKind::Normal)
            {
                row.insert(names[&dependency.pkg].clone());
            }
        }
    }
    Ok(uses)
}

fn impure_words(file: &TextFile) -> Vec<String> {
    let code = without_test_modules(&code_only(&file.text));
    let grouped = grouped_modules(&code);
    let mut problems = Vec::new();
    for word in IMPURE_WORDS {
        let line = code.lines().position(|line| has_word(line, word));
        if line.is_some() || grouped.contains(word) {
            let line = line.map_or(1, |index| index + 1);
            problems.push(format!("{}:{line}: `{word}` in a pure crate", file.path));
        }
    }
    problems
}

/// The modules named by `use std::{io, …}`, written out as `std::io`.
fn grouped_modules(code: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for group in code.split("std::{").skip(1) {
        let group = group.split(';').next().unwrap_or_default();
        let names = group.split(|character: char| !character.is_alphanumeric());
        modules.extend(names.map(|name| format!("std::{name}")));
    }
    modules
}

#[test]
fn pure_crates_depend_on_no_async_or_serialisation_package() -> Result<()> {
    let metadata = MetadataCommand::new()
        .manifest_path(repository::root().join("Cargo.toml"))
        .other_options(["--filter-platform".to_owned(), "host-tuple".to_owned()])
        .exec()
        .context("cargo metadata failed")?;
    let uses = normal_dependencies(&metadata)?;
    ensure!(
        transitive(&uses, "simshard-node").contains("tokio"),
        "the graph has holes"
    );
    let mut problems = Vec::new();
    for name in PURE {
        let package = format!("simshard-{name}");
        ensure!(uses.contains_key(&package), "there is no package {package}");
        problems.extend(impure_packages(&uses, &package));
    }
    assert_none(&problems);
    Ok(())
}

#[test]
fn pure_crates_mention_no_io_clock_or_async() -> Result<()> {
    let files = repository::rust_files()?;
    let mut problems = Vec::new();
    for name in PURE {
        let folder = format!("crates/{name}/src/");
        let sources = files
            .iter()
            .filter(|file| file.path.starts_with(&folder) && !file.is_test());
        let sources: Vec<_> = sources.collect();
        ensure!(!sources.is_empty(), "{folder} is empty");
        problems.extend(sources.into_iter().flat_map(impure_words));
    }
    assert_none(&problems);
    Ok(())
}

#[test]
fn an_impure_dependency_of_a_dependency_is_reported() {
    let uses = BTreeMap::from([
        ("pure".to_owned(), BTreeSet::from(["middle".to_owned()])),
        (
            "middle".to_owned(),
            BTreeSet::from(["serde".to_owned(), "pure".to_owned()]),
        ),
    ]);
    assert_eq!(impure_packages(&uses, "pure").len(), 1);
    assert_none(&impure_packages(&uses, "other"));
}

#[test]
fn impure_code_is_reported() {
    for code in [
        "use std::fs::File;",
        "use std::{collections::BTreeMap, io};",
        "use std::time::Duration;",
        "fn f(now: Instant) {}",
        "async fn f() {}",
        "fn f() { println!(); }",
        "fn f() { std::env::var(x); }",
    ] {
        assert_eq!(
            impure_words(&TextFile::sample("a.rs", code)).len(),
            1,
            "{code}"
        );
    }
}

#[test]
fn pure_code_comments_and_test_modules_are_not_reported() {
    for code in [
        "use std::collections::BTreeMap;",
        "// no std::io and no Instant\nfn f() -> &'static str { \"std::fs\" }",
        "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n",
    ] {
        assert_none(&impure_words(&TextFile::sample("a.rs", code)));
    }
}
