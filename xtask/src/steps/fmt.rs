//! Every Rust file is formatted.

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    tools.rust()?;
    let arguments = "fmt --all -- --check";
    process::run(workspace.cargo().args(arguments.split(' ')))?;
    Ok(String::new())
}
