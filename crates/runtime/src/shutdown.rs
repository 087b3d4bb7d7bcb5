//! Stopping: signals become one cancellation.
//!
//! The first SIGTERM or SIGINT asks all tasks to finish. A second one, of either
//! kind, ends the process at once, as its sender does not want to wait any longer.
//!
//! # Invariants
//! - SD1: one signal cancels the token and never ends the process by itself
//!   (`the_first_signal_asks_and_the_second_ends`,
//!   `tests/signals.rs`).
//! - SD2: a second signal ends the process with 128 + its number, whatever it
//!   is waiting for (the same tests).

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A signal that stops the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopSignal {
    Interrupt,
    Terminate,
}

impl StopSignal {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// The exit code that shells give a process killed by this signal.
    fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// A token that the first SIGTERM or SIGINT cancels. A second signal exits the process at once with 143 or 130. Must
/// be called inside a tokio runtime, once per process.
pub fn on_signals() -> io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut signals = StopSignals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
    };
    let shutdown = token.clone();
    tokio::spawn(async move {
        begin(signals.next().await, &token);
        std::process::exit(end(signals.next().await));
    });
    Ok(shutdown)
}

struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }
}

/// The first signal: ask all tasks to finish.
fn begin(first: StopSignal, token: &CancellationToken) {
    token.cancel();
    tracing::info!(
        signal = first.name(),
        "stopping, send another signal to exit at once"
    );
}

/// The second signal: the code to exit with.
fn end(second: StopSignal) -> i32 {
    tracing::warn!(signal = second.name(), "second signal, exiting at once");
    second.exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SD1 and SD2.
    #[test]
    fn the_first_signal_asks_and_the_second_ends() {
        for first in [StopSignal::Interrupt, StopSignal::Terminate] {
            let shutdown = CancellationToken::new();
            begin(first, &shutdown);
            assert!(shutdown.is_cancelled());
        }
        assert_eq!(end(StopSignal::Interrupt), 130);
        assert_eq!(end(StopSignal::Terminate), 143);
    }
}
