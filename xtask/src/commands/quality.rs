//! `cargo xtask quality`: measures how well recipes find near-duplicates of real texts and writes
//! `docs/quality.md`.

use std::process::ExitCode;

use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// Measure how well recipes find near-duplicates, and write docs/quality.md with its plot
///
/// Fetches a few packages in several versions with pip, npm and cargo, about 100 MB, into
/// target/quality. Installs datasketch into target/tools/quality, saying so first.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::locate(false)?;
    let python = tools::datasketch(&workspace)?;
    let build = "build --release --package simshard-cli --all-features";
    process::run(workspace.cargo().args(build.split(' ')))?;
    let mut script = python.command("python");
    workspace.at_root(&mut script);
    script.args([
        "tests/python/quality.py",
        "--page",
        "docs/quality.md",
        "--program",
    ]);
    script.arg(workspace.program("release"));
    process::run(script.arg("--data").arg(workspace.quality_data()))?;
    Ok(ExitCode::SUCCESS)
}
