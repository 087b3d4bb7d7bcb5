//! The JavaScript package of `clients/js`: built, its types checked, then tested with a server.

use super::scripts;
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace) -> anyhow::Result<String> {
    let node = tools::node(workspace)?;
    let program = scripts::program(workspace)?;
    let certificates = scripts::certificates(workspace)?;
    let folder = workspace.root().join("clients/js");
    for arguments in [
        "ci --no-audit --no-fund --prefer-offline",
        "run build",
        "run check",
        "test",
    ] {
        let mut npm = node.command("npm");
        workspace.at_root(&mut npm);
        npm.env("SIMSHARD_PROGRAM", &program).current_dir(&folder);
        npm.env("SIMSHARD_CERTIFICATES", &certificates);
        process::run(npm.args(arguments.split(' ')))?;
    }
    Ok(String::new())
}
