//! The HTML report of the batch commands, looked at with a real browser by
//! `tests/python/report_in_browser.py`.

use super::scripts;
use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace, tools: &Tools) -> anyhow::Result<String> {
    let browser = tools.browser()?;
    // The flags of the Rust tests, whose build has it: others would choose other features of dependencies.
    let build = "build --workspace --all-features --example report_page";
    process::run(workspace.cargo().args(build.split(' ')))?;
    let program = scripts::program(workspace)?;

    // It uses nothing but Python itself.
    let mut script = std::process::Command::new("python3");
    workspace.at_root(&mut script);
    script.args(["tests/python/report_in_browser.py", "--browser", browser]);
    let maker = workspace.example_program("report_page");
    script.arg("--page-maker").arg(maker);
    process::run(script.arg("--simshard").arg(program))?;
    Ok(String::new())
}
