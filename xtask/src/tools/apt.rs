//! Debian packages: the only thing that xtask ever changes about the system.

use std::process::Command;

use anyhow::{Context, bail};

use crate::process;

/// How this user may install packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rights {
    Root,
    Sudo,
    None,
}

/// Installs a package, which `reason` explains, or says how to do it by hand.
pub(super) fn install(package: &str, reason: &str) -> anyhow::Result<()> {
    if !process::succeeds(Command::new("apt-get").arg("--version")) {
        bail!("{reason}, and this system has no apt-get: install it with your package manager");
    }
    let rights = rights();
    let Some(prefix) = prefix(rights) else {
        bail!("{reason}: run `apt-get install {package}` as root, then start again");
    };
    println!("{reason}. Installing the Debian package {package} with apt-get:");
    for arguments in [
        vec!["update", "--quiet"],
        vec![
            "install",
            "--quiet",
            "--yes",
            "--no-install-recommends",
            package,
        ],
    ] {
        let mut command = Command::new(prefix[0]);
        command.args(&prefix[1..]).args(arguments);
        process::run(&mut command)
            .with_context(|| format!("{reason}, and apt-get could not install {package}"))?;
    }
    Ok(())
}

fn rights() -> Rights {
    if process::output_of(Command::new("id").arg("-u")).as_deref() == Some("0") {
        return Rights::Root;
    }
    if process::succeeds(Command::new("sudo").arg("--version")) {
        return Rights::Sudo;
    }
    Rights::None
}

/// The words before apt-get's own arguments: it must ask nothing, for nobody may be there.
fn prefix(rights: Rights) -> Option<&'static [&'static str]> {
    match rights {
        Rights::Root => Some(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]),
        Rights::Sudo => Some(&["sudo", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]),
        Rights::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_needs_no_sudo_and_others_do() {
        assert_eq!(prefix(Rights::Root).unwrap()[0], "env");
        assert_eq!(prefix(Rights::Sudo).unwrap()[0], "sudo");
        assert_eq!(prefix(Rights::None), None);
    }

    #[test]
    fn apt_get_is_never_left_to_ask() {
        for rights in [Rights::Root, Rights::Sudo] {
            let words = prefix(rights).unwrap();
            assert!(words.contains(&"DEBIAN_FRONTEND=noninteractive"));
            assert_eq!(words.last(), Some(&"apt-get"));
        }
    }
}
