//! What runs programs of another processor.

use std::process::Command;

use anyhow::Context;

use super::apt;
use crate::cross::Target;
use crate::process;

/// What it is for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  qemu-user-static     to run programs for aarch64. If it is missing, root installs the Debian package
                       with apt-get; other users are told the command.";

/// The emulators of aarch64, by their names in Debian.
pub(crate) const EMULATORS: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];

/// The emulator of a target's processor, if there is one.
pub(crate) fn found(target: Target) -> Option<&'static str> {
    let starts = |name: &&str| process::succeeds(Command::new(name).arg("--version"));
    match target {
        Target::Aarch64 => EMULATORS.into_iter().find(starts),
        Target::X86_64 => None,
    }
}

/// The emulator of aarch64, installed if there is none.
pub(super) fn ensure() -> anyhow::Result<&'static str> {
    if let Some(name) = found(Target::Aarch64) {
        return Ok(name);
    }
    apt::install("qemu-user-static", "No emulator of aarch64 is found")?;
    found(Target::Aarch64)
        .context("qemu-user-static is installed, and no emulator of aarch64 starts")
}
