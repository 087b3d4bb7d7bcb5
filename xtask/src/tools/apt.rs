//! Debian packages: the only thing that xtask ever changes about the system, and only as root.

use std::process::Command;

use anyhow::{Context, bail};

use crate::process;

/// Installs a package, which `reason` explains, or says how to do it by hand.
pub(super) fn install(package: &str, reason: &str) -> anyhow::Result<()> {
    if !process::succeeds(Command::new("apt-get").arg("--version")) {
        bail!("{reason}, and this system has no apt-get: install it with your package manager");
    }
    if !is_root() {
        bail!("{}", by_hand(package, reason));
    }
    println!("{reason}. Installing the Debian package {package} with apt-get:");
    let install = ["install", "--quiet", "--yes", "--no-install-recommends"];
    for arguments in [
        &["update", "--quiet"][..],
        &[&install[..], &[package]].concat(),
    ] {
        let mut command = Command::new("apt-get");
        // apt-get must not ask: a run may have no terminal.
        command.env("DEBIAN_FRONTEND", "noninteractive");
        process::run(command.args(arguments))
            .with_context(|| format!("{reason}, and apt-get could not install {package}"))?;
    }
    Ok(())
}

/// What users without the rights of root have to do.
fn by_hand(package: &str, reason: &str) -> String {
    format!(
        "{reason}. Run `apt-get install --no-install-recommends {package}` as root, then start again"
    )
}

fn is_root() -> bool {
    process::output_of(Command::new("id").arg("-u")).as_deref() == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_run_by_hand_is_said_and_needs_no_sudo() {
        let said = by_hand("chromium", "No browser is found");
        assert!(said.starts_with("No browser is found. Run `apt-get install"));
        assert!(said.contains(" chromium` as root"), "{said}");
        assert!(!said.contains("sudo"), "{said}");
    }
}
