//! Progress on standard error, only where that is a terminal.

use std::fmt;
use std::time::Duration;

use indicatif::{
    HumanCount, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle,
};
use simshard_batch::Progress;

use crate::say::watched;

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Shows a batch job with the bars and spinners of all commands.
pub(crate) const ON_TERMINAL: Progress = Progress { bar, spinner };

/// A bar over a known number of items, or a count where it is not known.
/// Silent where standard error is no terminal.
pub(crate) fn bar(what: &str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{msg} [{bar:30}] {human_pos}/{human_len} {rate} {eta} left",
        None => "{msg} {spinner} {human_pos} {rate}",
    };
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_draw_target(target());
    bar.set_style(style.with_key("rate", rate));
    bar.set_message(what.to_owned());
    bar
}

/// Items a second, whole.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    // Writing into a line of the terminal's own buffer does not fail.
    let _ = write!(out, "{}/s", HumanCount(state.per_sec() as u64));
}

/// A spinner that turns by itself until it is dropped. Silent where standard
/// error is no terminal.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target()).with_finish(ProgressFinish::AndClear);
    let style = ProgressStyle::with_template("{msg} {spinner} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    bar.set_message(what.to_owned());
    if !bar.is_hidden() {
        // A thread of its own.
        bar.enable_steady_tick(TICK);
    }
    bar
}

fn target() -> ProgressDrawTarget {
    if watched() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}
