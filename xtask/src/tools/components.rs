//! The parts of the Rust toolchain that a minimal installation leaves out.

use std::process::Command;

use anyhow::{Context, bail};

use crate::process;
use crate::workspace::Workspace;

/// What they are for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  rustfmt, clippy      to check the format and the lints of the Rust code.
                       Missing ones are added to the Rust toolchain by rustup.";

pub(super) fn ensure(workspace: &Workspace) -> anyhow::Result<()> {
    let missing = missing(workspace);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" and ");
    if !process::succeeds(Command::new("rustup").arg("--version")) {
        bail!("{names} missing and no rustup to add them: install them with your Rust toolchain");
    }
    println!("Adding {names} to the Rust toolchain, because the checks need them:");
    let rustup = &mut Command::new("rustup");
    let add = workspace.at_root(rustup).args(["component", "add"]);
    process::run(add.args(missing)).with_context(|| format!("rustup could not add {names}"))
}

fn missing(workspace: &Workspace) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !process::succeeds(workspace.cargo().args([subcommand, "--version"])) {
            missing.push(component);
        }
    }
    missing
}
