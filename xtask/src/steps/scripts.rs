//! The scripts of `tests/python` that run the program: what the examples of the pages print,
//! and which fingerprints the published implementations of the recipes give.

use std::path::PathBuf;

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// `simshard`, built if it is not up to date: as for the Rust tests, or for long runs the release.
pub(super) fn program(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let (build, profile) = if workspace.is_long() {
        ("build --release --package simshard-cli", "release")
    } else {
        // With an example and all features, dependencies have the features that they have for tests.
        let build = "build --workspace --all-features --bin simshard --example report_page";
        (build, "debug")
    };
    process::run(workspace.cargo().args(build.split(' ')))?;
    Ok(workspace.program(profile))
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
