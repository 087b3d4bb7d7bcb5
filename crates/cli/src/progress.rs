//! Progress on standard error, only where that is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over a known number of items, or a count where it is not known.
/// Silent where standard error is no terminal.
pub(crate) fn bar(what: &str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{msg} [{bar:30}] {human_pos}/{human_len} {per_sec} {eta} left",
        None => "{msg} {spinner} {human_pos} {per_sec}",
    };
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_draw_target(target());
    bar.set_style(style);
    bar.set_message(what.to_owned());
    bar
}

fn target() -> ProgressDrawTarget {
    match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}
