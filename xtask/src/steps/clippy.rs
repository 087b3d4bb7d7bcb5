//! No lint of rustc or clippy fires anywhere.

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    tools.rust()?;
    let arguments = "clippy --workspace --all-targets --all-features -- -D warnings";
    process::run(workspace.cargo().args(arguments.split(' ')))?;
    Ok(String::new())
}
