//! Stopping: signals become one cancellation.
//!
//! The first SIGTERM or SIGINT asks everybody to finish; a second one, of either
//! kind, ends the process at once, because whoever sends it has lost patience.
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

/// The process's wish to stop, shared by all its parts. Clones are the same wish.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// A shutdown that only [`Shutdown::trigger`] starts: for tests and embedding.
    pub fn new() -> Self {
        Self::default()
    }

    /// A shutdown that the first SIGTERM or SIGINT starts. A second signal exits
    /// the process at once with 143 or 130. Must be called inside a tokio runtime,
    /// once per process.
    ///
    /// # Errors
    /// When the signal handlers cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let shutdown = Self::new();
        let mut signals = StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        };
        let token = shutdown.token.clone();
        tokio::spawn(async move {
            begin(signals.next().await, &token);
            std::process::exit(end(signals.next().await));
        });
        Ok(shutdown)
    }

    /// Starts the shutdown. Doing so twice is the same as once.
    pub fn trigger(&self) {
        self.token.cancel();
    }

    /// Whether the shutdown has started.
    pub fn is_triggered(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits for the shutdown to start; returns at once if it already has.
    pub async fn triggered(&self) {
        self.token.cancelled().await;
    }

    /// The token behind this shutdown, to derive child tokens from or to hand to
    /// code that knows no `Shutdown`.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
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

/// The first signal: ask everybody to finish.
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
            let shutdown = Shutdown::new();
            assert!(!shutdown.is_triggered());
            begin(first, shutdown.token());
            assert!(shutdown.is_triggered());
        }
        assert_eq!(end(StopSignal::Interrupt), 130);
        assert_eq!(end(StopSignal::Terminate), 143);
    }

    #[tokio::test(start_paused = true)]
    async fn every_clone_hears_the_trigger() {
        let shutdown = Shutdown::new();
        let waiting = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.triggered().await }
        });
        shutdown.trigger();
        shutdown.trigger();
        waiting.await.unwrap();
        shutdown.triggered().await;
    }
}
