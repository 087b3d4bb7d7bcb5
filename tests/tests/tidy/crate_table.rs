//! The crates of the project and who uses whom: the table is equal to what the manifests say. A new
//! arrow is a change of the design.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::rust_source::{code_only, has_word};
use crate::{assert_none, repository};

/// Each folder of `crates/`, the crates of ours that it uses, and those that only its tests use
/// besides.
const TABLE: [(&str, &[&str], &[&str]); 18] = [
    ("simhash", &[], &[]),
    ("topology", &[], &[]),
    ("proto", &["simhash", "topology"], &[]),
    // `runtime` owns what a process shows of itself: its metrics, and whether it is ready.
    ("transport", &["proto", "runtime"], &[]),
    ("storage", &["simhash", "topology"], &[]),
    // `runtime` owns how the place of a mistake in a TOML file is told.
    ("cluster", &["topology", "runtime"], &[]),
    ("client", &["proto", "simhash"], &[]),
    ("backup", &["client"], &[]),
    (
        "node",
        &[
            "simhash",
            "topology",
            "proto",
            "transport",
            "storage",
            "cluster",
            "runtime",
        ],
        &[],
    ),
    // It asks nodes what they hold, and `node` owns how that is done.
    ("admin", &["topology", "cluster", "node", "runtime"], &[]),
    (
        "router",
        &[
            "simhash",
            "topology",
            "proto",
            "transport",
            "cluster",
            "admin",
            "runtime",
        ],
        &[],
    ),
    ("runtime", &[], &[]),
    ("hosts", &[], &[]),
    ("input", &["simhash"], &[]),
    // `runtime` owns the rule which characters a terminal obeys, and results go to terminals.
    ("batch", &["simhash", "runtime", "input"], &[]),
    // It reads what processes take (`runtime`), and asks nodes and the layout file by themselves
    // when it measures a restart (`proto`, `topology`, `cluster`). It serves an echo on `transport`.
    (
        "bench",
        &[
            "simhash",
            "topology",
            "proto",
            "transport",
            "cluster",
            "client",
            "hosts",
            "runtime",
            "input",
            "batch",
        ],
        &[],
    ),
    (
        "cli",
        &[
            "simhash", "topology", "storage", "cluster", "client", "backup", "node", "admin",
            "router", "runtime", "input", "batch", "bench",
        ],
        &[TESTKIT],
    ),
    (
        TESTKIT,
        &["topology", "proto", "cluster", "client", "hosts", "cli"],
        &[],
    ),
];

/// No crate that ships may use it, except in tests.
const TESTKIT: &str = "testkit";

/// An arrow between two crates of ours, by folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: String,
    to: String,
    for_tests: bool,
}

fn metadata() -> Result<Metadata> {
    let command = &mut MetadataCommand::new();
    let metadata = command
        .manifest_path(repository::root().join("Cargo.toml"))
        .no_deps()
        .exec();
    metadata.context("cargo metadata failed")
}

/// The declared dependencies between packages under `crates/`, optional ones included.
fn arrows(metadata: &Metadata) -> BTreeSet<Arrow> {
    let mut arrows = BTreeSet::new();
    for package in metadata.workspace_packages() {
        let Some(from) = folder_of(package.manifest_path.parent().map(|path| path.as_str())) else {
            continue;
        };
        for dependency in &package.dependencies {
            if let Some(to) = folder_of(dependency.path.as_ref().map(|path| path.as_str())) {
                let for_tests = dependency.kind == DependencyKind::Development;
                arrows.insert(Arrow {
                    from: from.clone(),
                    to,
                    for_tests,
                });
            }
        }
    }
    arrows
}

/// The name of a folder that lies directly in `crates/`.
fn folder_of(path: Option<&str>) -> Option<String> {
    let crates = repository::root().join("crates");
    let folder = path?.strip_prefix(crates.to_str()?)?.strip_prefix('/')?;
    (!folder.contains('/')).then(|| folder.to_owned())
}

/// The arrows of the table.
fn arrows_of_the_table() -> BTreeSet<Arrow> {
    let mut arrows = BTreeSet::new();
    for (from, uses, tests_use) in TABLE {
        for (to, for_tests) in [(uses, false), (tests_use, true)]
            .into_iter()
            .flat_map(|(names, for_tests)| names.iter().map(move |to| (to, for_tests)))
        {
            arrows.insert(Arrow {
                from: from.to_owned(),
                to: (*to).to_owned(),
                for_tests,
            });
        }
    }
    arrows
}

/// Arrows that the table lacks, and arrows that only the table has.
fn differences(found: &BTreeSet<Arrow>) -> Vec<String> {
    let table = arrows_of_the_table();
    let verb = |arrow: &Arrow| if arrow.for_tests { "test with" } else { "use" };
    let added = found.difference(&table).map(|arrow| {
        let (Arrow { from, to, .. }, verb) = (arrow, verb(arrow));
        format!(
            "crates/{from} may not {verb} crates/{to}: change the design first, or move the code"
        )
    });
    let gone = table.difference(found).map(|arrow| {
        let (Arrow { from, to, .. }, verb) = (arrow, verb(arrow));
        format!("crates/{from} does not {verb} crates/{to}: take the arrow out of the table")
    });
    added.chain(gone).collect()
}

fn strange_folders(folders: &BTreeSet<String>) -> Vec<String> {
    let known: BTreeSet<String> = TABLE.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let strange = folders.difference(&known);
    let mut problems: Vec<String> = strange
        .map(|name| format!("crates/{name} is not in the table of crates"))
        .collect();
    for missing in known.difference(folders) {
        problems.push(format!(
            "crates/{missing} is in the table of crates and does not exist"
        ));
    }
    problems
}

/// Complains about a package whose name does not follow from its folder.
fn misnamed(folder: &str, package: &str) -> Option<String> {
    (package != format!("simshard-{folder}"))
        .then(|| format!("crates/{folder} must be the package simshard-{folder}, not {package}"))
}

#[test]
fn the_folders_of_crates_are_those_of_the_table() -> Result<()> {
    let mut folders = BTreeSet::new();
    for entry in fs::read_dir(repository::root().join("crates"))? {
        folders.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    assert_none(&strange_folders(&folders));
    Ok(())
}

#[test]
fn packages_are_named_after_their_folders() -> Result<()> {
    let metadata = metadata()?;
    let mut problems = Vec::new();
    for package in metadata.workspace_packages() {
        if let Some(folder) = folder_of(package.manifest_path.parent().map(|path| path.as_str())) {
            problems.extend(misnamed(&folder, package.name.as_str()));
        }
    }
    assert_none(&problems);
    Ok(())
}

#[test]
fn crates_use_what_the_table_says_and_nothing_else() -> Result<()> {
    assert_none(&differences(&arrows(&metadata()?)));
    Ok(())
}

/// A manifest may name a crate that the code does not: then the arrow is none.
#[test]
fn every_arrow_is_drawn_by_code() -> Result<()> {
    let files = repository::rust_files()?;
    let mut problems = Vec::new();
    for Arrow { from, to, .. } in arrows(&metadata()?) {
        let folder = format!("crates/{from}/");
        let name = format!("simshard_{to}");
        let mut sources = files.iter().filter(|file| file.path.starts_with(&folder));
        if !sources.any(|file| has_word(&code_only(&file.text), &name)) {
            problems.push(format!(
                "crates/{from} names crates/{to} only in its manifest"
            ));
        }
    }
    assert_none(&problems);
    Ok(())
}

#[test]
fn developer_commands_use_no_crate_of_the_product() -> Result<()> {
    let metadata = metadata()?;
    let packages = metadata.workspace_packages();
    let xtask = packages
        .iter()
        .find(|package| package.name.as_str() == "simshard-xtask");
    let dependencies = &xtask.context("no package simshard-xtask")?.dependencies;
    assert!(
        dependencies
            .iter()
            .all(|dependency| dependency.path.is_none())
    );
    Ok(())
}

#[test]
fn an_arrow_outside_the_table_is_reported() {
    let arrow = |from: &str, to: &str, for_tests| Arrow {
        from: from.to_owned(),
        to: to.to_owned(),
        for_tests,
    };
    assert_none(&differences(&arrows_of_the_table()));
    for bad in [
        arrow("simhash", "topology", false),
        arrow("client", "node", false),
        arrow("client", "node", true),
        arrow("input", "proto", false),
        arrow("node", TESTKIT, false),
        arrow("cli", TESTKIT, false),
        arrow("cli", "proto", false),
        arrow("utils", "simhash", false),
    ] {
        let mut found = arrows_of_the_table();
        found.insert(bad.clone());
        assert_eq!(differences(&found).len(), 1, "{bad:?}");
    }
}

#[test]
fn an_arrow_that_only_the_table_has_is_reported() {
    for unused in arrows_of_the_table() {
        let mut found = arrows_of_the_table();
        found.remove(&unused);
        assert_eq!(differences(&found).len(), 1, "{unused:?}");
    }
}

#[test]
fn an_unknown_or_missing_folder_is_reported() {
    let mut folders: BTreeSet<String> = TABLE.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_none(&strange_folders(&folders));
    folders.remove("node");
    folders.insert("utils".to_owned());
    assert_eq!(strange_folders(&folders).len(), 2);
}

#[test]
fn a_package_with_another_name_is_reported() {
    assert_eq!(misnamed("node", "simshard-node"), None);
    assert!(misnamed("node", "node").is_some());
}
