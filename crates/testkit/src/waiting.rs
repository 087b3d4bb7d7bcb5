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
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    until_some(what, async || is_so().await.then_some(())).await;
}

/// Waits until there is something, and returns it.
///
/// # Panics
///
/// If there is nothing within [`PATIENCE`].
pub async fn until_some<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
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
    let seen = timeout(PATIENCE, seen).await;
    seen.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
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
