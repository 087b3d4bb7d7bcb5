//! Waiting for what must happen: tests look again and again, and leave the processors to what they wait for.

use std::thread;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long a test waits for what takes a moment on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How long it waits before it looks again.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until something is so.
///
/// # Panics
///
/// If it is not so within [`PATIENCE`].
pub async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, is_so).await;
}

/// As [`until`], for what takes more than a moment.
///
/// # Panics
///
/// If it is not so in time.
pub async fn until_within(patience: Duration, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    some_within(patience, what, async || is_so().await.then_some(())).await;
}

/// Waits until there is something, and returns it.
///
/// # Panics
///
/// If there is nothing within [`PATIENCE`].
pub async fn until_some<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    some_within(PATIENCE, what, look).await
}

async fn some_within<T>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let seen = async {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(seen) = look().await {
                return seen;
            }
        }
    };
    let seen = timeout(patience, seen).await;
    seen.unwrap_or_else(|_| panic!("not within {patience:?}: {what}"))
}

/// As [`until`], where no other task runs.
///
/// # Panics
///
/// If it is not so within [`PATIENCE`].
pub fn block_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        thread::sleep(INTERVAL);
    }
}
