//! curl, by which pages show requests in JSON.

use std::process::Command;

use super::apt;
use crate::process;

/// What it is for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  curl                 to run the examples of the pages. If it is missing, root installs the Debian
                       package with apt-get; other users are told the command.";

/// Installs it if it is missing.
pub(super) fn ensure() -> anyhow::Result<()> {
    if process::succeeds(Command::new("curl").arg("--version")) {
        return Ok(());
    }
    apt::install("curl", "curl is missing, by which pages show requests")
}
