//! A restore drill: `tests/python/backup_drill.py`, with a store that speaks S3.

use super::scripts;
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace) -> anyhow::Result<String> {
    let store = tools::object_store(workspace)?;
    let program = scripts::program(workspace)?;
    let mut drill = store.command("python");
    let drill = workspace
        .at_root(&mut drill)
        .arg("tests/python/backup_drill.py");
    process::run(drill.arg("--program").arg(program))?;
    Ok(String::new())
}
