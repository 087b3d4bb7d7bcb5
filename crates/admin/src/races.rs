//! What others raced is done again.

use std::time::Duration;

use tokio::time::sleep;

/// How often what others raced is repeated.
const MOST_REPEATS: u64 = 10;

/// The longest pause before the first repetition. It grows with each one.
const RACE_PAUSE_MILLIS: u64 = 200;

/// Repeats what others raced, after pauses of chance: so that two do not race each other for ever.
///
/// # Errors
/// The last error of `attempt`.
pub async fn repeat_while<T, E>(
    is_raced: impl Fn(&E) -> bool,
    attempt: impl AsyncFn() -> Result<T, E>,
) -> Result<T, E> {
    let mut repeats = 0;
    loop {
        match attempt().await {
            Err(error) if is_raced(&error) && repeats < MOST_REPEATS => {
                repeats += 1;
                let pause = fastrand::u64(..repeats * RACE_PAUSE_MILLIS);
                sleep(Duration::from_millis(pause)).await;
            }
            done => return done,
        }
    }
}
