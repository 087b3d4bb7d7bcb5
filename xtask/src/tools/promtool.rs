//! promtool, which comes with Prometheus.

use std::process::Command;

use anyhow::bail;

use super::apt;
use crate::process;

/// What it is for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  promtool             to check the rules of alerts. If it is missing, root installs the Debian package
                       prometheus with apt-get, which starts it where systemd runs; other users
                       are told the command.";

/// Installs it if it is missing.
pub(super) fn ensure() -> anyhow::Result<()> {
    if starts() {
        return Ok(());
    }
    apt::install(
        "prometheus",
        "promtool is missing, which checks the rules of alerts",
    )?;
    if !starts() {
        bail!(
            "Prometheus is installed, and promtool does not start: `promtool --version` may say why"
        );
    }
    Ok(())
}

fn starts() -> bool {
    process::succeeds(Command::new("promtool").arg("--version"))
}
