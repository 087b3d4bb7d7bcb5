//! `cargo xtask fix`: repairs what `cargo xtask lint` can complain about, where a tool can.

use std::process::ExitCode;

use crate::process;
use crate::steps::Step;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Format Rust and protobuf files and apply clippy's suggestions. Writes source files
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::locate(false)?;
    let tools = Tools::prepare(&workspace, &[Step::Fmt, Step::Clippy, Step::Buf]);

    // Clippy first: what it rewrites may need formatting.
    tools.rust()?;
    let clippy =
        "clippy --fix --allow-dirty --allow-staged --workspace --all-targets --all-features";
    process::run(workspace.cargo().args(clippy.split(' ')))?;
    process::run(workspace.cargo().args(["fmt", "--all"]))?;
    let buf = &mut tools.python()?.command("buf");
    process::run(workspace.at_root(buf).args(["format", "--write", "proto"]))?;
    Ok(ExitCode::SUCCESS)
}
