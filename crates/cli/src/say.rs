//! Words for people on standard error, and for programs on standard output.
//!
//! Whoever reads them may have gone: that must not end a command that works.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Says something on standard error.
pub(crate) fn note(what: impl Display) {
    // There is nobody left to tell that nobody listens.
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Whether somebody watches standard error.
pub(crate) fn watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Prints a line on standard output.
pub(crate) fn print(line: impl Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
