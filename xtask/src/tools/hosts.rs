//! What tests need to run processes on hosts of their own: wrong clocks, and networks.

use std::process::Command;

use super::apt;
use crate::process;

/// What they are for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  faketime, iproute2   to run a cluster on hosts with wrong clocks, whose links are cut. If they are
                       missing, root installs the Debian packages with apt-get; other users are
                       told the command.";

/// Installs what is missing.
pub(super) fn ensure() -> anyhow::Result<()> {
    for (program, package, reason) in [
        (
            "faketime",
            "faketime",
            "faketime is missing, which shifts the clocks of processes",
        ),
        (
            "ip",
            "iproute2",
            "ip is missing, which connects hosts of a test",
        ),
    ] {
        let version = if program == "ip" { "-V" } else { "--version" };
        if !process::succeeds(Command::new(program).arg(version)) {
            apt::install(package, reason)?;
        }
    }
    Ok(())
}
