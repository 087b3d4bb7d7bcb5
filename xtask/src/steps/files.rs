//! Real archives and tables out of published packages, read beside other readers: the page on them, and what is on it.

use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// Where it is written what each file gave.
const PAGE: &str = "docs/real-files.md";

/// What becomes of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// It is compared with what the files give.
    Checked,
    /// It is written anew.
    Written,
}

/// Reads the files.
pub(crate) fn read(workspace: &Workspace, page: Page) -> anyhow::Result<String> {
    let python = tools::readers(workspace)?;
    // As for the Rust tests, with all formats.
    let build = "build --workspace --all-features --bin simshard --example report_page";
    process::run(workspace.cargo().args(build.split(' ')))?;
    let mut script = python.command("python");
    workspace.at_root(&mut script);
    script.args(["tests/python/real_files.py", "--page", PAGE, "--program"]);
    script.arg(workspace.program("debug"));
    script.arg("--data").arg(workspace.real_files());
    if page == Page::Checked {
        script.arg("--check");
    }
    process::run(&mut script)?;
    Ok(String::new())
}
