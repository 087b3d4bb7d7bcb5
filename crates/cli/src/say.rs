//! Words for people on standard error, and for programs on standard output.
//!
//! The reader of standard error may have gone. A command that works must not end because of that.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anyhow::Context;
use simshard_batch::{Deduplicated, Summary};
use simshard_input::{DegenerateTexts, Skipped};
use simshard_runtime::terminal::{counted, escaped};
use simshard_simhash::Recipe;

/// Says something on standard error, on one line whatever it quotes.
pub(crate) fn note(what: impl Display) {
    // When standard error fails, there is no other place to report it.
    let _ = writeln!(std::io::stderr(), "{}", escaped(&what.to_string()));
}

/// Whether somebody watches standard error.
pub(crate) fn watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Says by which recipe documents became fingerprints.
pub(crate) fn recipe(recipe: Recipe) {
    note(format!("recipe {recipe}"));
}

/// Says what was left out, if anything was.
pub(crate) fn left_out(skipped: &Skipped) {
    if !skipped.is_empty() {
        note(skipped);
    }
}

/// Says how many texts say too little, if any do.
pub(crate) fn degenerate(texts: DegenerateTexts) {
    if !texts.is_empty() {
        note(texts);
    }
}

/// Says the recipe of a batch job, what it left out and, to people, what it came to.
pub(crate) fn summary(summary: &Summary) {
    if let Some(made_by) = summary.recipe {
        recipe(made_by);
    }
    left_out(&summary.skipped);
    degenerate(summary.degenerate);
    if watched() {
        let seconds = summary.elapsed.as_secs_f64();
        note(format!("{}, {seconds:.2} s", summary.found));
    }
}

/// Says what was kept, by which recipe, and what was left out.
pub(crate) fn deduplicated(done: &Deduplicated) {
    if let Some(made_by) = done.recipe {
        recipe(made_by);
    }
    left_out(&done.skipped);
    degenerate(done.degenerate);
    if done.without_fingerprint > 0 {
        let texts = counted(done.without_fingerprint, "text");
        note(format!(
            "kept {texts} without words, which have no fingerprint"
        ));
    }
    let seconds = done.elapsed.as_secs_f64();
    if watched() {
        note(format!("{}, {seconds:.2} s", done.found));
    } else {
        note(&done.found);
    }
}

/// Prints lines on standard output. The caller escapes what they quote from outside.
pub(crate) fn print(line: impl Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.context("cannot write <stdout>")
}
