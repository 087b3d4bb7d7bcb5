//! The standard library of Rust for other machines.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::process;
use crate::workspace::Workspace;

/// Adds the standard library of a target to the toolchain if it is missing.
pub(super) fn ensure(workspace: &Workspace, triple: &str) -> anyhow::Result<()> {
    if is_there(workspace, triple) {
        return Ok(());
    }
    if !process::succeeds(Command::new("rustup").arg("--version")) {
        bail!("the standard library for it is missing, and there is no rustup to add it");
    }
    println!("Adding the standard library for {triple} to the Rust toolchain:");
    let rustup = &mut Command::new("rustup");
    process::run(workspace.at_root(rustup).args(["target", "add", triple]))
        .context("rustup could not add the standard library for it")
}

fn is_there(workspace: &Workspace, triple: &str) -> bool {
    let rustc = &mut Command::new("rustc");
    let print = workspace
        .at_root(rustc)
        .args(["--print", "target-libdir", "--target", triple]);
    process::output_of(print).is_some_and(|folder| Path::new(&folder).is_dir())
}
