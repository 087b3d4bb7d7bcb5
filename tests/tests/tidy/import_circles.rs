//! Within a crate, no import circle leads through files of different folders. To change one file of
//! such a circle, a reader must know all of its folders.
//!
//! A file that only declares modules and passes their names on is looked through: an import of
//! `crate::report::page` leads to the file that has `page`. A file with a folder of its name is at
//! home in that folder and beside it. Test code is left out.

mod graph;
mod reader;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::assert_none;
use crate::repository;

use graph::Graph;

/// The circles of a crate, given its files by their paths below `src`.
fn circles(files: &BTreeMap<String, String>) -> Vec<String> {
    let graph = Graph::of(files);
    let circles = graph.circles().into_iter();
    let wide = circles.filter(|circle| !graph.is_within_one_folder(circle));
    wide.map(|circle| graph.describe(&circle)).collect()
}

/// The sources of every crate: by crate, then by path below `src`.
fn crates() -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let mut crates = BTreeMap::<String, BTreeMap<String, String>>::new();
    for file in repository::rust_files()? {
        let below = file.path.strip_prefix("crates/");
        let parts = below.and_then(|path| path.split_once("/src/"));
        if let Some((name, path)) = parts.filter(|_| !file.is_test()) {
            let files = crates.entry(name.to_owned()).or_default();
            files.insert(path.to_owned(), file.text.clone());
        }
    }
    Ok(crates)
}

#[test]
fn no_import_circle_leads_through_several_folders() -> Result<()> {
    let crates = crates()?;
    ensure!(crates.len() > 5, "only {} crates were found", crates.len());
    let mut problems = Vec::new();
    for (name, files) in &crates {
        let circles = circles(files).into_iter();
        problems.extend(circles.map(|circle| format!("crates/{name}/src: {circle}")));
    }
    assert_none(&problems);
    Ok(())
}

#[test]
fn the_imports_of_the_crates_are_seen() -> Result<()> {
    let crates = crates()?;
    for (name, from, to) in [
        ("batch", "job.rs", "report/layout.rs"),
        ("input", "parse/json.rs", "problem.rs"),
        ("storage", "store/open.rs", "store/create.rs"),
    ] {
        let graph = Graph::of(&crates[name]);
        assert!(graph.has_edge(from, to), "{name}: {from} -> {to}");
    }
    Ok(())
}

fn sources(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let files = files.iter();
    files
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn a_circle_through_two_folders_is_reported() {
    for (error, parse) in [
        ("use crate::parse::Line;", "use crate::error::Error;"),
        (
            "use super::parse::Line;",
            "use crate::{error::Error, other};",
        ),
        (
            "fn f(line: crate::parse::Line) {}",
            "use super::super::error::*;",
        ),
        (
            "use crate::parse::lines;",
            "pub struct Line(crate::error::Error);",
        ),
    ] {
        let found = circles(&sources(&[
            (
                "lib.rs",
                "mod error;\nmod other;\nmod parse;\npub use error::Error;",
            ),
            ("error.rs", error),
            ("other.rs", ""),
            ("parse/mod.rs", "mod lines;\npub(crate) use lines::Line;"),
            ("parse/lines.rs", parse),
        ]));
        assert_eq!(
            found,
            ["error.rs and parse/lines.rs import each other"],
            "{error}"
        );
    }
}

#[test]
fn a_circle_through_a_head_that_does_more_than_pass_on_is_reported() {
    let found = circles(&sources(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "mod c;\nuse c::C;\npub fn f(c: C) {}"),
        ("a/c.rs", "use crate::b::B;\npub struct C(B);"),
        ("b.rs", "pub struct B;\npub fn g() { super::a::f(x) }"),
    ]));
    assert_eq!(found, ["a.rs, a/c.rs and b.rs import each other"]);
}

#[test]
fn circles_in_one_folder_names_passed_on_and_tests_are_no_problem() {
    let head = "mod c;\nmod d;\npub use c::C;\npub use d::D;";
    for files in [
        // Two files of one folder.
        &[
            ("a/mod.rs", head),
            ("a/c.rs", "use super::D;"),
            ("a/d.rs", "use super::c::C;"),
        ][..],
        // A file and the folder of its name.
        &[
            ("a.rs", "mod c;\nfn f() { c::g() }\npub struct A;"),
            ("a/c.rs", "use super::A;"),
        ],
        // The root passes on what it does not use.
        &[
            ("lib.rs", "mod a;\npub use a::c::C;"),
            ("a/c.rs", "use crate::a::d::D;"),
            ("a/d.rs", ""),
        ],
        // A test uses what the product does not.
        &[
            ("error.rs", "use crate::a::C;"),
            ("a/mod.rs", head),
            (
                "a/c.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::error::E;\n}\n",
            ),
            ("a/d.rs", "// use crate::error::E;\n"),
        ],
    ] {
        let lib = [("lib.rs", "mod a;\nmod error;")];
        let files = [&lib[..], files].concat();
        assert_none(&circles(&sources(&files)));
    }
}
