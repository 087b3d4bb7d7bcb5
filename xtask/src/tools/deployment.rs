//! Programs of the system by which the files of `deploy` are checked and tried.

use std::process::Command;

use super::apt;
use crate::process;

/// What they are for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  openssl,             to make the certificates of a cluster as its operators do, and to check the
  systemd-analyze      units of systemd. If one is missing, root installs the Debian package openssl
                       or systemd with apt-get; other users are told the command.";

/// The programs, their packages, and what they are for.
const PROGRAMS: [[&str; 3]; 2] = [
    ["openssl", "openssl", "makes certificates"],
    ["systemd-analyze", "systemd", "checks units"],
];

/// Installs what is missing.
pub(super) fn ensure() -> anyhow::Result<()> {
    for [program, package, purpose] in PROGRAMS {
        if !process::succeeds(Command::new(program).arg("--help")) {
            let reason = format!("{program} is missing, which {purpose}");
            apt::install(package, &reason)?;
        }
    }
    Ok(())
}
