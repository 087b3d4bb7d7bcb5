//! The scripts of `tests/python` that look at the release build: what the examples of README.md print,
//! and which fingerprints the published implementations of the recipes give.

use std::path::PathBuf;

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Runs the examples of README.md against a server.
pub(super) fn examples(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    run(workspace, tools, "readme_examples.py", "--server")
}

/// Compares fingerprints with those of the published implementations.
pub(super) fn recipes(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    run(workspace, tools, "published_recipes.py", "--program")
}

/// The release build of `simshard`, made if it is not up to date.
pub(super) fn release_program(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let build = "build --release --package simshard-cli";
    process::run(workspace.cargo().args(build.split(' ')))?;
    Ok(workspace.release_program())
}

/// Runs a script of `tests/python`, by its name and the option that takes the program.
fn run(workspace: &Workspace, tools: &Tools, script: &str, option: &str) -> anyhow::Result<String> {
    let python = tools.python()?;
    let program = release_program(workspace)?;
    let mut command = python.command("python");
    workspace.at_root(&mut command);
    command.arg(format!("tests/python/{script}")).arg(option);
    process::run(command.arg(program))?;
    Ok(String::new())
}
