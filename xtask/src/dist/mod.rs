//! The archives of a release: a static program for each processor, with what operators need beside it.
//!
//! The bytes of an archive are meant to depend on the sources and the tools alone. Paths of this machine are replaced,
//! times are those of the last commit, and files have one order and no owner.

mod build;
mod pages;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::cross::Target;
use crate::process;
use crate::tools::PythonTools;
use crate::workspace::Workspace;

/// What lies beside the program.
const BESIDE: [&str; 6] = [
    "README.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "deploy",
    "docs",
    "proto",
];

/// Builds the program for a target, packs the archive, and tries it.
pub(crate) fn archive(
    workspace: &Workspace,
    compiler: &PythonTools,
    target: Target,
) -> anyhow::Result<PathBuf> {
    let program = build::program(workspace, compiler, target)?;
    let archive = pack(workspace, &program, target)?;
    trial::run(workspace, &archive, target)?;
    Ok(archive)
}

/// Packs a folder with the program and what lies beside it.
fn pack(workspace: &Workspace, program: &Path, target: Target) -> anyhow::Result<PathBuf> {
    let name = format!("simshard-{}-{}", env!("CARGO_PKG_VERSION"), target.triple());
    let dist = workspace.dist();
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove the old {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut copy = Command::new("cp");
    let copy = workspace.at_root(&mut copy).arg(program).arg(&folder);
    process::run(copy)?;
    let mut copy = Command::new("cp");
    let copy = workspace.at_root(&mut copy).arg("--parents");
    let packed = beside(workspace)?;
    process::run(copy.args(&packed).arg(&folder))?;
    pages::rewrite(&folder, &packed)?;
    let archive = dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    workspace.at_root(&mut tar).args([
        "--create",
        "--use-compress-program=gzip -9 -n",
        "--sort=name",
        "--format=gnu",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
    ]);
    let time = build::last_commit(workspace);
    tar.arg(format!("--mtime=@{time}"))
        .arg("--file")
        .arg(&archive);
    process::run(tar.arg("--directory").arg(&dist).arg(&name))?;
    Ok(archive)
}

/// The files beside the program: those that are under version control, and no others that lie there.
fn beside(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut list = Command::new("git");
    let list = workspace.at_root(&mut list).args(["ls-files", "--"]);
    let files = process::output_of(list.args(BESIDE)).context("`git ls-files` failed")?;
    Ok(files.lines().map(str::to_owned).collect())
}

/// Writes the checksums of archives beside them, in the form of `sha256sum`.
pub(crate) fn write_checksums(workspace: &Workspace, archives: &[PathBuf]) -> anyhow::Result<()> {
    if archives.is_empty() {
        return Ok(());
    }
    let mut sums = Command::new("sha256sum");
    sums.current_dir(workspace.dist());
    sums.args(archives.iter().filter_map(|archive| archive.file_name()));
    let text = process::output_of(&mut sums).context("`sha256sum` failed")?;
    let file = workspace.dist().join("SHA256SUMS");
    fs::write(&file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}
