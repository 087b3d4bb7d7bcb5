//! The dependency tree holds what `deny.toml` allows.

use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// What is checked. Advisories are left out: they are in a database that only the network has.
const CHECKS: &str = "check -D warnings bans licenses sources";

pub(super) fn verify(workspace: &Workspace) -> anyhow::Result<String> {
    let deny = &mut tools::deny(workspace)?.command("cargo-deny");
    process::run(workspace.at_root(deny).args(CHECKS.split(' ')))?;
    Ok(String::new())
}
