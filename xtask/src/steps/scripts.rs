//! The scripts of `tests/python` that run the program: what the examples of the pages print,
//! and which fingerprints the published implementations of the recipes give.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// What is built in one go, as for the Rust tests: with examples and all features, dependencies have the features that they
/// have for tests.
const FOR_TESTS: &str =
    "build --workspace --all-features --bin simshard --example report_page --example certificates";

/// `simshard`, built if it is not up to date: as for the Rust tests, or for long runs the release.
pub(super) fn program(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let (build, profile) = if workspace.is_long() {
        ("build --release --package simshard-cli", "release")
    } else {
        (FOR_TESTS, "debug")
    };
    process::run(workspace.cargo().args(build.split(' ')))?;
    Ok(workspace.program(profile))
}

/// A folder with certificates of a server on loopback and of a client, made anew.
pub(super) fn certificates(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    process::run(workspace.cargo().args(FOR_TESTS.split(' ')))?;
    let folder = workspace.tools().join("certificates");
    fs::create_dir_all(&folder)?;
    let example = workspace.program("debug").with_file_name("examples");
    process::run(Command::new(example.join("certificates")).arg(&folder))?;
    Ok(folder)
}

/// Runs a script of `tests/python` with the program.
pub(super) fn run(workspace: &Workspace, tools: &Tools, script: &str) -> anyhow::Result<String> {
    let python = tools.python()?;
    let program = program(workspace)?;
    let mut command = python.command("python");
    workspace.at_root(&mut command);
    command
        .arg(format!("tests/python/{script}"))
        .arg("--program");
    process::run(command.arg(program))?;
    Ok(String::new())
}
