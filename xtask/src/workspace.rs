//! Where things are, and what the commands that xtask starts find in their environment.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// Asks the Rust tests for the long versions of themselves.
pub(crate) const LONG: &str = "SIMSHARD_LONG";

/// The checkout that xtask was started in.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    long: bool,
}

impl Workspace {
    /// Finds the checkout through what cargo tells the programs that it runs.
    pub(crate) fn locate(long: bool) -> anyhow::Result<Self> {
        let package = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = package
            .parent()
            .context("xtask lies in no workspace: start it with `cargo xtask`")?;
        // The running program is target/debug/simshard-xtask, wherever target was put.
        let program = env::current_exe().context("cannot find the running xtask program")?;
        let target = program.ancestors().nth(2).with_context(|| {
            format!(
                "{} is in no target folder: use `cargo xtask`",
                program.display()
            )
        })?;
        Ok(Self {
            root: root.to_path_buf(),
            target: target.to_path_buf(),
            long,
        })
    }

    /// The folder with the workspace's `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of what cargo builds.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Where the archives of a release lie.
    pub(crate) fn dist(&self) -> PathBuf {
        self.target.join("dist")
    }

    /// Where xtask keeps the tools that it installs.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// Where benchmarks keep made-up data.
    pub(crate) fn bench_data(&self) -> PathBuf {
        self.target.join("bench")
    }

    /// Where the texts lie that quality is measured on.
    pub(crate) fn quality_data(&self) -> PathBuf {
        self.target.join("quality")
    }

    /// Where the files lie that are read beside other readers.
    pub(crate) fn real_files(&self) -> PathBuf {
        self.target.join("real-files")
    }

    /// The program that a build leaves, in `debug` or `release`.
    pub(crate) fn program(&self, profile: &str) -> PathBuf {
        self.target.join(profile).join("simshard")
    }

    /// Whether tests are to be long.
    pub(crate) const fn is_long(&self) -> bool {
        self.long
    }

    /// The program that a build of an example leaves.
    pub(crate) fn example_program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join("examples").join(name)
    }

    /// The cargo that started xtask, ready to run at the root.
    pub(crate) fn cargo(&self) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        self.at_root(&mut command);
        command
    }

    /// Makes a command run at the root, untouched by the settings of the user's own cluster and by what cargo tells of this
    /// package. Some build scripts look at that, and would run again, as would the compiler for all that depends on them.
    pub(crate) fn at_root<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for (name, _) in env::vars_os() {
            if is_setting(&name) || names_package(&name) {
                command.env_remove(name);
            }
        }
        if self.long {
            command.env(LONG, "1");
        }
        command.current_dir(&self.root)
    }
}

/// Whether a variable would change what `simshard` does.
fn is_setting(name: &OsStr) -> bool {
    name != LONG && name.as_encoded_bytes().starts_with(b"SIMSHARD_")
}

/// Whether cargo tells by a variable which package it runs.
fn names_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(long: bool) -> Workspace {
        Workspace {
            root: PathBuf::from("/checkout"),
            target: PathBuf::from("/checkout/target"),
            long,
        }
    }

    #[test]
    fn long_tests_are_asked_for_by_environment() {
        let set = |long| {
            let command = workspace(long).cargo();
            command
                .get_envs()
                .any(|(name, value)| name == LONG && value == Some("1".as_ref()))
        };
        assert!(set(true));
        assert!(!set(false));
    }

    #[test]
    fn only_settings_of_simshard_are_taken_away() {
        assert!(is_setting("SIMSHARD_ROUTER".as_ref()));
        assert!(!is_setting("SIMSHARD_LONG".as_ref()));
        assert!(!is_setting("PATH".as_ref()));
        assert!(names_package("CARGO_PKG_NAME".as_ref()));
        assert!(names_package("CARGO_MANIFEST_DIR".as_ref()));
        assert!(!names_package("CARGO_HOME".as_ref()));
    }

    #[test]
    fn the_checkout_holds_the_interfaces() {
        let workspace = Workspace::locate(false).unwrap();
        assert!(workspace.root().join("proto/buf.yaml").is_file());
    }
}
