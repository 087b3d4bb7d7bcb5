//! The scripts of `tests/python` that look at the release build: what the examples of the pages print,
//! and which fingerprints the published implementations of the recipes give.

use std::path::PathBuf;

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Runs the examples of all pages.
pub(super) fn examples(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    run(workspace, tools, "page_examples.py")
}

/// Compares fingerprints with those of the published implementations.
pub(super) fn recipes(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    run(workspace, tools, "published_recipes.py")
}

/// The release build of `simshard`, made if it is not up to date.
pub(super) fn release_program(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let build = "build --release --package simshard-cli";
    process::run(workspace.cargo().args(build.split(' ')))?;
    Ok(workspace.release_program())
}

/// Runs a script of `tests/python` with the program.
fn run(workspace: &Workspace, tools: &Tools, script: &str) -> anyhow::Result<String> {
    let python = tools.python()?;
    let program = release_program(workspace)?;
    let mut command = python.command("python");
    workspace.at_root(&mut command);
    command
        .arg(format!("tests/python/{script}"))
        .arg("--program");
    process::run(command.arg(program))?;
    Ok(String::new())
}
