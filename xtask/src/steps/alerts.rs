//! Prometheus takes the configuration and the rules of `deploy/prometheus/`, and each alert fires where it should.

use std::process::Command;

use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    tools.promtool()?;
    for arguments in [
        "check config deploy/prometheus/prometheus.yml",
        "test rules deploy/prometheus/alerts.test.yml",
    ] {
        let promtool = &mut Command::new("promtool");
        process::run(workspace.at_root(promtool).args(arguments.split(' ')))?;
    }
    Ok(String::new())
}
