//! The crates of the project and who may use whom. A new arrow is a change of the design.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::{assert_none, repository};

/// Each folder of `crates/` and the crates of ours that it may use.
const TABLE: [(&str, &[&str]); 11] = [
    ("simhash", &[]),
    ("topology", &[]),
    ("proto", &["simhash", "topology"]),
    ("storage", &["simhash", "topology"]),
    ("cluster", &["topology"]),
    ("client", &["proto", "simhash", "topology"]),
    (
        "node",
        &["simhash", "topology", "proto", "storage", "cluster"],
    ),
    (
        "router",
        &["simhash", "topology", "proto", "cluster", "client"],
    ),
    ("runtime", &[]),
    ("cli", ALL_BUT_TESTKIT),
    ("testkit", ALL_BUT_TESTKIT),
];

const ALL_BUT_TESTKIT: &[&str] = &[
    "simhash", "topology", "proto", "storage", "cluster", "client", "node", "router", "runtime",
    "cli",
];

/// Whoever tests may use it; nothing that ships may.
const TESTKIT: &str = "testkit";

/// An arrow between two crates of ours, by folder.
#[derive(Debug)]
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
fn arrows(metadata: &Metadata) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(from) = folder_of(package.manifest_path.parent().map(|path| path.as_str())) else {
            continue;
        };
        for dependency in &package.dependencies {
            if let Some(to) = folder_of(dependency.path.as_ref().map(|path| path.as_str())) {
                let for_tests = dependency.kind == DependencyKind::Development;
                arrows.push(Arrow {
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

fn forbidden_arrows(arrows: &[Arrow]) -> Vec<String> {
    let mut problems = Vec::new();
    for Arrow {
        from,
        to,
        for_tests,
    } in arrows
    {
        let row = TABLE.iter().find(|(name, _)| name == from);
        let in_table = row.is_some_and(|(_, uses)| uses.contains(&to.as_str()));
        let allowed = in_table || (*for_tests && to == TESTKIT);
        if !allowed {
            problems.push(format!(
                "crates/{from} may not use crates/{to}: change the design first, or move the code"
            ));
        }
    }
    problems
}

fn strange_folders(folders: &BTreeSet<String>) -> Vec<String> {
    let known: BTreeSet<String> = TABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
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
fn crates_use_only_what_the_table_allows() -> Result<()> {
    let arrows = arrows(&metadata()?);
    assert!(
        arrows
            .iter()
            .any(|arrow| arrow.from == "node" && arrow.to == "simhash")
    );
    assert_none(&forbidden_arrows(&arrows));
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
    for bad in [
        arrow("simhash", "topology", false),
        arrow("client", "node", false),
        arrow("client", "node", true),
        arrow("node", TESTKIT, false),
        arrow("cli", TESTKIT, false),
        arrow("utils", "simhash", false),
    ] {
        assert_eq!(
            forbidden_arrows(std::slice::from_ref(&bad)).len(),
            1,
            "{bad:?}"
        );
    }
    for good in [
        arrow("router", "client", false),
        arrow("node", TESTKIT, true),
    ] {
        assert_none(&forbidden_arrows(&[good]));
    }
}

#[test]
fn an_unknown_or_missing_folder_is_reported() {
    let mut folders: BTreeSet<String> = TABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
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
