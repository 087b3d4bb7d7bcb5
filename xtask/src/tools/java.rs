//! A Java to run Spark with.

use std::process::Command;

use anyhow::bail;

use super::apt;
use crate::process;

/// What it is for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  java                 to run Spark. If it is missing, root installs the Debian package
                       default-jre-headless with apt-get; other users are told the command.";

/// Installs it if it is missing.
pub(super) fn ensure() -> anyhow::Result<()> {
    if starts() {
        return Ok(());
    }
    apt::install("default-jre-headless", "Java is missing, which runs Spark")?;
    if !starts() {
        bail!("Java is installed and does not start: `java -version` may say why");
    }
    Ok(())
}

fn starts() -> bool {
    process::succeeds(Command::new("java").arg("-version"))
}
