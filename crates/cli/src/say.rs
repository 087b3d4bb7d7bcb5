//! Words for people on standard error, and for programs on standard output.
//!
//! The reader of standard error may have gone. A command that works must not end because of that.
//! With `--quiet`, only errors are said, and what a command warns of.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use serde::Serialize;
use simshard_batch::{Deduplicated, Summary, write_json};
use simshard_input::{DegenerateTexts, Skipped};
use simshard_runtime::terminal::{counted, escaped};
use simshard_simhash::Recipe;

/// Whether notes are left out, and progress.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From here on, leaves out notes and progress.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether notes are left out.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Says something on standard error, unless that is to be quiet.
pub(crate) fn note(what: impl Display) {
    if !is_quiet() {
        warn(what);
    }
}

/// Says on standard error what must be known, on one line whatever it quotes.
pub(crate) fn warn(what: impl Display) {
    // When standard error fails, there is no other place to report it.
    let _ = writeln!(std::io::stderr(), "{}", escaped(&what.to_string()));
}

/// Whether a user watches standard error, and wants to see more there than warnings.
pub(crate) fn watched() -> bool {
    !is_quiet() && std::io::stderr().is_terminal()
}

/// Says by which recipe documents became fingerprints.
pub(crate) fn recipe(recipe: Recipe) {
    note(format!("recipe {recipe}"));
}

/// Says what was left out, if anything was, which bad lines came first, and what may not be read as it was written.
pub(crate) fn left_out(skipped: &Skipped) {
    if !skipped.is_empty() {
        warn(skipped);
    }
    for bad in skipped.bad_ones() {
        warn(format!("  {bad}"));
    }
    if let Some(doubts) = skipped.doubts() {
        warn(doubts);
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
        let texts = without_fingerprint(done.without_fingerprint, done.recipe, "no fingerprint");
        note(format!("kept {texts}"));
    }
    let seconds = done.elapsed.as_secs_f64();
    if watched() {
        note(format!("{}, {seconds:.2} s", done.found));
    } else {
        note(&done.found);
    }
}

/// How many texts have no fingerprint, why not, and so what else.
pub(crate) fn without_fingerprint(count: u64, recipe: Option<Recipe>, lack: &str) -> String {
    let texts = counted(count, "text");
    let have = if count == 1 { "has" } else { "have" };
    let recipe = recipe.and_then(|recipe| recipe.for_texts().ok());
    let few = recipe.and_then(|recipe| Some((recipe.too_little()?, recipe)));
    match few {
        None => format!("{texts} without words, which {have} {lack}"),
        Some((few, recipe)) => {
            format!("{texts} of {few}, too short for {recipe}, which {have} {lack}")
        }
    }
}

/// Prints lines on standard output. The caller escapes what they quote from outside.
pub(crate) fn print(line: impl Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.context("cannot write <stdout>")
}

/// Prints a value as a line of JSON, which any terminal may show.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = Vec::new();
    write_json(&mut line, value)?;
    print(String::from_utf8(line)?)
}
