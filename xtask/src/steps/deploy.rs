//! What is in the folder `deploy`: images, units and objects of Kubernetes are checked, and the services of the Compose file
//! run as processes.
//!
//! No image is built, no unit is started, and nothing is applied: that takes a container engine, a machine that systemd runs,
//! and a cluster of Kubernetes.

use std::fs;
use std::path::{Path, PathBuf};

use super::{package, scripts};
use crate::process;
use crate::tools::{self, PythonTools, Tools};
use crate::workspace::Workspace;

const DOCKERFILE: &str = "deploy/Dockerfile";
const COMPOSE: &str = "deploy/compose/compose.yaml";
const KUBERNETES: &str = "deploy/kubernetes";
const UNITS: &str = "deploy/systemd";

/// The exposure of a unit that systemd-analyze may find, of 100 for none at all of its protections.
const EXPOSURE: &str = "--threshold=20";

pub(super) fn verify(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    tools.promtool()?;
    let checks = tools::deploy(workspace)?;
    check_files(workspace, &checks)?;
    let program = scripts::program(workspace)?;
    check_units(workspace, &program)?;
    let (client, _) = package::installed(workspace, "dev")?;
    let mut services = checks.command("python");
    workspace.at_root(&mut services);
    services.arg("tests/python/compose_services.py");
    services.arg("--program").arg(program);
    services.arg("--etcd").arg(tools::etcd(workspace)?);
    services.arg("--python").arg(client.path("python"));
    process::run(&mut services)?;
    Ok(String::new())
}

fn check_files(workspace: &Workspace, checks: &PythonTools) -> anyhow::Result<()> {
    let mut hadolint = checks.command("hadolint");
    process::run(workspace.at_root(&mut hadolint).arg(DOCKERFILE))?;
    let mut schema = checks.command("check-jsonschema");
    schema.args(["--builtin-schema", "vendor.compose-spec", COMPOSE]);
    process::run(workspace.at_root(&mut schema))?;
    let mut objects = checks.command("kubernetes-validate");
    objects.current_dir(workspace.root().join(KUBERNETES));
    process::run(objects.arg("--strict").args(resources(workspace)?))
}

/// The files that the kustomization lists.
fn resources(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let list = workspace.root().join(KUBERNETES).join("kustomization.yaml");
    let list = fs::read_to_string(list)?;
    let items = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    let files: Vec<String> = items
        .filter(|item| item.ends_with(".yaml"))
        .map(str::to_owned)
        .collect();
    anyhow::ensure!(!files.is_empty(), "the kustomization lists no files");
    Ok(files)
}

/// systemd-analyze finds nothing wrong in the units. It looks for their program, so copies of them name this one.
fn check_units(workspace: &Workspace, program: &Path) -> anyhow::Result<()> {
    let folder = workspace.tools().join("units");
    fs::create_dir_all(&folder)?;
    let mut units: Vec<PathBuf> = Vec::new();
    for unit in fs::read_dir(workspace.root().join(UNITS))? {
        let unit = unit?.path();
        if unit.extension().is_some_and(|ending| ending == "service") {
            let text = fs::read_to_string(&unit)?;
            let copy = folder.join(unit.file_name().unwrap_or_default());
            fs::write(
                &copy,
                text.replace("/usr/bin/simshard", &program.display().to_string()),
            )?;
            units.push(copy);
        }
    }
    for check in [
        &["verify", "--man=no"][..],
        &["security", "--offline=yes", "--no-pager", EXPOSURE],
    ] {
        let mut analyze = std::process::Command::new("systemd-analyze");
        process::run(analyze.args(check).args(&units))?;
    }
    Ok(())
}
