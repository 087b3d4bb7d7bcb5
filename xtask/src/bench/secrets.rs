//! Certificates and a token for a cluster that is measured.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::process;
use crate::workspace::Workspace;

/// Makes them in a folder below `folder`, as operators do, and tells which that is.
pub(super) fn make(workspace: &Workspace, folder: &Path) -> anyhow::Result<String> {
    let secrets = folder.join("secrets");
    // The script calls the program.
    let program = workspace.program("release");
    let own = program.parent().map(Path::to_path_buf);
    let others = env::var_os("PATH").unwrap_or_default();
    let paths = env::join_paths(own.into_iter().chain(env::split_paths(&others)))?;
    let mut script = Command::new("sh");
    let script = workspace.at_root(&mut script);
    script.arg("deploy/secrets.sh").arg(&secrets);
    // Where clients reach the router, and etcd, which there is none of.
    script.args(["127.0.0.1", "localhost"]).env("PATH", paths);
    process::run(script)?;
    let secrets = secrets.to_str().context("the folder is no text")?;
    Ok(secrets.to_owned())
}
