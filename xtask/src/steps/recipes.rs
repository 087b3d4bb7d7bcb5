//! Published implementations of the recipes beside ours, run by
//! `tests/python/published_recipes.py` on the release build.

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    let python = tools.python()?;
    let build = "build --release --package simshard-cli";
    process::run(workspace.cargo().args(build.split(' ')))?;

    let mut script = python.command("python");
    workspace.at_root(&mut script);
    script.args(["tests/python/published_recipes.py", "--program"]);
    process::run(script.arg(workspace.release_program()))?;
    Ok(String::new())
}
