//! Progress on standard error: bars on a terminal, elsewhere a line now and then.

use std::env;
use std::fmt;
use std::thread;
use std::time::Duration;

use indicatif::{
    HumanCount, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle,
};
use simshard_batch::Progress;

use crate::say::{is_quiet, note, watched};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// How often a line says how far a command is, in seconds, unless the variable says otherwise.
const SECONDS: u64 = 30;
const SECONDS_VARIABLE: &str = "SIMSHARD_PROGRESS_SECONDS";

/// Shows a batch job with the bars and spinners of all commands.
pub(crate) const SHOWN: Progress = Progress { bar, spinner };

/// A bar over a known number of items, or a count where it is not known.
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
    tell_now_and_then(&bar, Steps::Counted);
    bar
}

/// Items a second, whole.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    // Writing into a line of the terminal's own buffer does not fail.
    let _ = write!(out, "{}/s", HumanCount(state.per_sec() as u64));
}

/// A spinner that turns by itself until it is dropped.
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
    tell_now_and_then(&bar, Steps::None);
    bar
}

fn target() -> ProgressDrawTarget {
    if watched() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// Whether the steps of a phase are counted.
#[derive(Clone, Copy)]
enum Steps {
    Counted,
    None,
}

/// Says how far it is every few seconds, where no terminal shows the bar, until it is finished or dropped.
fn tell_now_and_then(bar: &ProgressBar, steps: Steps) {
    if watched() || is_quiet() {
        return;
    }
    let seconds = env::var(SECONDS_VARIABLE).ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let every = Duration::from_secs(seconds.unwrap_or(SECONDS).max(1));
    let bar = bar.downgrade();
    let mut before = 0;
    let tell = move || {
        loop {
            thread::sleep(every);
            let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) else {
                return;
            };
            let (message, taken) = (bar.message(), bar.elapsed());
            note(match steps {
                Steps::None => format!("{message}, {} s so far", taken.as_secs()),
                Steps::Counted => {
                    let done = bar.position();
                    let fresh = done.saturating_sub(before);
                    before = done;
                    line(&message, done, bar.length(), fresh / every.as_secs(), taken)
                }
            });
        }
    };
    // Without a thread there are no lines, and nothing else is missing.
    let _ = thread::Builder::new()
        .name("progress".to_owned())
        .spawn(tell);
}

/// How far a phase is.
fn line(what: &str, done: u64, of: Option<u64>, a_second: u64, taken: Duration) -> String {
    let seconds = taken.as_secs();
    match of {
        Some(of) => {
            let percent = done.saturating_mul(100) / of.max(1);
            format!("{what}: {done} of {of} ({percent} %), {a_second}/s, {seconds} s so far")
        }
        None => format!("{what}: {done}, {a_second}/s, {seconds} s so far"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is_and_how_fast_it_goes() {
        let taken = Duration::from_secs(60);
        assert_eq!(
            line("inserting", 2500, Some(10_000), 40, taken),
            "inserting: 2500 of 10000 (25 %), 40/s, 60 s so far"
        );
        assert_eq!(
            line("reading", 7, None, 0, taken),
            "reading: 7, 0/s, 60 s so far"
        );
        assert_eq!(
            line("reading", 0, Some(0), 0, taken),
            "reading: 0 of 0 (0 %), 0/s, 60 s so far"
        );
    }
}
