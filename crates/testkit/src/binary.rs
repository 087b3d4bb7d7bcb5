//! The `simshard` binary, for tests outside its own package: to those cargo does not say where it is.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The path of the binary. At the first call of a process cargo builds it, or finds that it is up to date.
#[must_use]
pub fn binary() -> &'static str {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = env::current_exe().expect("a test knows its own path");
        build(&Place::of(&test))
    });
    BINARY.to_str().expect("a UTF-8 path")
}

/// Where cargo puts what it builds together with a test.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    target: PathBuf,
    /// The folder of the profile, such as `debug`.
    folder: String,
}

impl Place {
    /// A test is `target/debug/deps/NAME`.
    fn of(test: &Path) -> Self {
        let folder = test.ancestors().nth(2).and_then(Path::file_name);
        let target = test.ancestors().nth(3);
        Self {
            target: target.expect("a test lies in a target folder").into(),
            folder: folder.expect("a profile").to_string_lossy().into_owned(),
        }
    }

    fn profile(&self) -> &str {
        match self.folder.as_str() {
            "debug" => "dev",
            other => other,
        }
    }
}

fn build(place: &Place) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // A test among the targets makes cargo choose the features of dependencies as for `cargo test`, so that it
    // compiles nothing that is there already.
    let mut command = Command::new(cargo);
    // Cargo tells a test its package. Some build scripts look at that, and would run again, as would the compiler for all
    // that depends on them.
    for (name, _) in env::vars_os().filter(|(name, _)| names_package(name)) {
        command.env_remove(name);
    }
    let status = command
        .args(["build", "--quiet", "--workspace", "--all-features"])
        .args(["--bin", "simshard", "--test", "tidy"])
        .args(["--profile", place.profile(), "--target-dir"])
        .arg(&place.target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.expect("cargo starts").success(), "no binary");
    place.target.join(&place.folder).join("simshard")
}

/// Whether cargo tells by this variable which package it runs.
fn names_package(variable: &OsStr) -> bool {
    let variable = variable.to_string_lossy();
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_that_of_the_folder_of_a_test() {
        let place = |test: &str| Place::of(Path::new(test));
        let debug = place("/a/target/debug/deps/processes-123");
        assert_eq!(debug.target, Path::new("/a/target"));
        assert_eq!(debug.profile(), "dev");
        let release = place("/a/target/release/deps/processes-123");
        assert_eq!(release.profile(), "release");
        assert_ne!(debug, release);
    }

    #[test]
    fn variables_of_the_package_are_those_that_cargo_sets_for_this_test() {
        let all: Vec<_> = env::vars_os().map(|(name, _)| name).collect();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(all.iter().any(|set| set == name) && names_package(OsStr::new(name)));
        }
        assert!(!names_package(OsStr::new("CARGO_HOME")));
    }

    #[test]
    fn the_binary_is_there() {
        let output = Command::new(binary()).arg("--version").output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.starts_with("simshard "), "{shown}");
    }
}
