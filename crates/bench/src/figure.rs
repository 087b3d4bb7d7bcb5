//! Printing measurements, for programs or for people.

use std::io::Write;

use serde::Serialize;
use simshard_batch::write_json;

/// Prints a figure as a JSON line, or what it says to people.
pub(crate) fn print(
    figure: &impl Serialize,
    json: bool,
    line: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        write_json(&mut out, figure)?;
        return Ok(writeln!(out)?);
    }
    Ok(writeln!(out, "{}", line())?)
}
