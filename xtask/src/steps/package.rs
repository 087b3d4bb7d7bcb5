//! The Python package of `clients/python`: built as a wheel, installed as users install it, then tested. Its client is
//! tested with a server, and its jobs on distributed engines if tests are to be long.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::scripts;
use crate::process;
use crate::tools::{self, PythonTools};
use crate::workspace::{LONG, Workspace};

/// Whose tests run only where all of them are.
const ENGINES: [&str; 3] = ["spark", "ray", "datatrove"];

pub(super) fn verify(workspace: &Workspace) -> anyhow::Result<String> {
    let profile = if workspace.is_long() {
        "release"
    } else {
        "dev"
    };
    let (python, wheel) = installed(workspace, profile)?;
    let program = scripts::program(workspace)?;
    let mut tests = python.command("pytest");
    let tests = tests.args(["-q", "tests", "--program"]).arg(program);
    let certificates = scripts::certificates(workspace)?;
    let tests = tests.arg("--certificates").arg(certificates);
    if workspace.is_long() {
        tests.env(LONG, "1");
    }
    process::run(tests.current_dir(folder(workspace)))?;
    for check in ["mypy", "ruff check .", "ruff format --check ."] {
        let mut words = check.split(' ');
        let mut command = python.command(words.next().unwrap_or_default());
        let command = command.args(words).current_dir(folder(workspace));
        process::run(command)?;
    }
    if workspace.is_long() {
        on_engines(workspace, &wheel)?;
    }
    let bytes = fs::metadata(&wheel)?.len();
    Ok(format!("the wheel has {} KiB", bytes / 1024))
}

/// The environment with the package as a profile builds it, and the wheel.
pub(crate) fn installed(
    workspace: &Workspace,
    profile: &str,
) -> anyhow::Result<(PythonTools, PathBuf)> {
    let python = tools::package(workspace)?;
    let wheel = build(workspace, &python, profile)?;
    install(&python, &wheel)?;
    Ok((python, wheel))
}

fn install(python: &PythonTools, wheel: &Path) -> anyhow::Result<()> {
    let install = "-m pip install --quiet --no-deps --force-reinstall";
    process::run(python.command("python").args(install.split(' ')).arg(wheel))
}

/// The environment with engines, and the package.
pub(crate) fn with_engines(workspace: &Workspace, wheel: &Path) -> anyhow::Result<PythonTools> {
    let engines = tools::engines(workspace)?;
    install(&engines, wheel)?;
    Ok(engines)
}

/// Runs the jobs of the package on the engines that it has them for.
fn on_engines(workspace: &Workspace, wheel: &Path) -> anyhow::Result<()> {
    let engines = with_engines(workspace, wheel)?;
    let tests = ENGINES.map(|engine| format!("tests/test_{engine}.py"));
    let mut pytest = engines.command("pytest");
    pytest.arg("-q").args(tests).current_dir(folder(workspace));
    process::run(pytest.env(LONG, "1"))
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.root().join("clients/python")
}

/// Builds the wheel; returns where it is.
fn build(workspace: &Workspace, python: &PythonTools, profile: &str) -> anyhow::Result<PathBuf> {
    let wheels = workspace.tools().join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)
            .with_context(|| format!("cannot clear {}", wheels.display()))?;
    }
    let build = ["build", "--locked", "--profile", profile, "--out"];
    let mut command = python.command("maturin");
    let command = command
        .args(build)
        .arg(&wheels)
        .current_dir(folder(workspace));
    process::run(command)?;
    let mut built = fs::read_dir(&wheels)?;
    let wheel = built.next().context("maturin made no wheel")??;
    Ok(wheel.path())
}
