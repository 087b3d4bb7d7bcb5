//! `cargo xtask lint`: the checks that need no test run.

use std::process::ExitCode;

use crate::steps::{self, Step};
use crate::workspace::Workspace;

/// Check the formatting and the lints of Rust and protobuf. Changes no source file
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::locate(false)?;
    Ok(steps::run(
        &workspace,
        &[Step::Fmt, Step::Clippy, Step::Buf],
    ))
}
