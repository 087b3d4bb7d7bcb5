//! A browser of the Chromium family.

use std::process::Command;

use anyhow::bail;

use super::apt;
use crate::process;

/// What it is for, for the announcement.
pub(super) const PURPOSE: &str = "  \
  chromium             to look at the HTML report of the batch commands as a reader would see it.
                       If no browser of its family is found, root installs the Debian package
                       chromium with apt-get; if python3 is missing, which drives it, python3.
                       Other users are told the command.";

/// The names under which distributions install it.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// The name of a browser that starts, installed if there is none.
pub(super) fn ensure() -> anyhow::Result<&'static str> {
    if !starts("python3") {
        apt::install("python3", "Python is missing, which drives the browser")?;
    }
    if let Some(name) = found() {
        return Ok(name);
    }
    apt::install("chromium", "No browser is found to look at reports with")?;
    let Some(name) = found() else {
        bail!("chromium is installed and does not start: `chromium --version` may say why");
    };
    Ok(name)
}

fn found() -> Option<&'static str> {
    NAMES.into_iter().find(|name| starts(name))
}

fn starts(program: &str) -> bool {
    process::succeeds(Command::new(program).arg("--version"))
}
