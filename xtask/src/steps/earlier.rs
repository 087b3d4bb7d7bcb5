//! The program of an earlier version, which is upgraded in a test.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::process;
use crate::workspace::Workspace;

/// The commit of that version: the last one that knows nothing of levels, nor of moves of shards.
const COMMIT: &str = "a64f300d7befaf722548097f2eea7300a14f2fc9";

/// By this variable, the tests of processes learn where the program is.
pub(super) const VARIABLE: &str = "SIMSHARD_TEST_EARLIER";

/// The release program of that version. It is built once, which takes some minutes.
pub(super) fn program(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let folder = workspace.target().join("earlier").join(COMMIT);
    let (source, target) = (folder.join("source"), folder.join("target"));
    let program = target.join("release/simshard");
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&source).with_context(|| format!("cannot make {}", source.display()))?;
    let archive = folder.join("source.tar");
    let mut git = Command::new("git");
    let git = workspace.at_root(&mut git).arg("archive").arg("--output");
    process::run(git.arg(&archive).arg(COMMIT))
        .context("the earlier version is not in this clone: `git fetch --unshallow` gets it")?;
    let mut tar = Command::new("tar");
    process::run(tar.arg("-xf").arg(&archive).arg("-C").arg(&source))?;
    let mut build = workspace.cargo();
    build.args(["build", "--release", "--locked", "--all-features"]);
    build.args(["--package", "simshard-cli", "--target-dir"]);
    process::run(build.arg(&target).current_dir(&source))?;
    Ok(program)
}
