//! The program of a release: static, stripped, with all formats, and the same bytes from any folder.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::cross::{self, Target};
use crate::process;
use crate::tools::PythonTools;
use crate::workspace::Workspace;

/// Builds it.
pub(super) fn program(
    workspace: &Workspace,
    compiler: &PythonTools,
    target: Target,
) -> anyhow::Result<PathBuf> {
    let triple = target.triple();
    let mut build = cross::cargo(workspace, compiler, target, "zigbuild");
    build.args("--release --package simshard-cli --all-features".split(' '));
    let replaced = replaced_paths(workspace)?;
    build.env("CARGO_ENCODED_RUSTFLAGS", rust_flags(&replaced));
    build.env(
        format!("CFLAGS_{}", triple.replace('-', "_")),
        c_flags(&replaced),
    );
    // Then a flag may be quoted: a path may have blanks.
    build.env("CC_SHELL_ESCAPED_FLAGS", "1");
    build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    build.env("SOURCE_DATE_EPOCH", last_commit(workspace));
    process::run(&mut build)?;
    Ok(workspace.target().join(triple).join("release/simshard"))
}

/// The time of the last commit, in seconds; 0 outside of a repository.
pub(super) fn last_commit(workspace: &Workspace) -> String {
    let mut git = Command::new("git");
    let log = workspace
        .at_root(&mut git)
        .args(["log", "-1", "--format=%ct"]);
    process::output_of(log).unwrap_or_else(|| "0".to_owned())
}

/// Folders of this machine, and what stands for them in the program. Where several fit, compilers take the last.
fn replaced_paths(workspace: &Workspace) -> anyhow::Result<Vec<(PathBuf, &'static str)>> {
    let sysroot = process::output_of(Command::new("rustc").args(["--print", "sysroot"]));
    let sysroot = sysroot.context("`rustc --print sysroot` failed")?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let home = home.context("no home directory: set CARGO_HOME")?;
    Ok(vec![
        (workspace.root().to_path_buf(), "/simshard"),
        (workspace.target().to_path_buf(), "/simshard/target"),
        (home, "/cargo"),
        (PathBuf::from(sysroot), "/rust"),
    ])
}

/// Flags of rustc, in the form of `CARGO_ENCODED_RUSTFLAGS`.
fn rust_flags(replaced: &[(PathBuf, &str)]) -> OsString {
    let flags = replaced.iter().map(|(path, by)| {
        let mut flag = OsString::from("--remap-path-prefix=");
        push(&mut flag, path, by);
        flag
    });
    flags.collect::<Vec<_>>().join("\u{1f}".as_ref())
}

/// Flags of the C compiler.
fn c_flags(replaced: &[(PathBuf, &str)]) -> OsString {
    let flags = replaced.iter().map(|(path, by)| {
        let mut flag = OsString::from("'-ffile-prefix-map=");
        push(&mut flag, path, by);
        flag.push("'");
        flag
    });
    flags.collect::<Vec<_>>().join(" ".as_ref())
}

fn push(flag: &mut OsString, path: &Path, by: &str) {
    flag.push(path);
    flag.push("=");
    flag.push(by);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_compilers_replace_every_path() {
        let replaced = [
            (PathBuf::from("/home/a b"), "/simshard"),
            (PathBuf::from("/c"), "/cargo"),
        ];
        assert_eq!(
            rust_flags(&replaced),
            "--remap-path-prefix=/home/a b=/simshard\u{1f}--remap-path-prefix=/c=/cargo"
        );
        assert_eq!(
            c_flags(&replaced),
            "'-ffile-prefix-map=/home/a b=/simshard' '-ffile-prefix-map=/c=/cargo'"
        );
    }
}
