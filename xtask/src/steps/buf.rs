//! The protobuf interfaces follow the rules of `proto/buf.yaml` and are formatted.

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    let python = tools.python()?;
    for arguments in ["lint proto", "format --diff --exit-code proto"] {
        let buf = &mut python.command("buf");
        process::run(workspace.at_root(buf).args(arguments.split(' ')))?;
    }
    Ok(String::new())
}
