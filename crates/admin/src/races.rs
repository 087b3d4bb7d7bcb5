//! What others raced is done again.

use std::time::Duration;

use tokio::time::sleep;

/// How often what others raced is repeated.
const MOST_REPEATS: u64 = 10;

/// The longest pause before the first repetition. It grows with each one.
const RACE_PAUSE_MILLIS: u64 = 200;

/// How often it was done already.
#[derive(Debug, Default)]
pub struct Repeats(u64);

impl Repeats {
    /// Waits for a pause of chance, so that two do not race each other for ever. Answers whether to try once more.
    pub async fn wait(&mut self) -> bool {
        if self.0 == MOST_REPEATS {
            return false;
        }
        self.0 += 1;
        let pause = fastrand::u64(..self.0 * RACE_PAUSE_MILLIS);
        sleep(Duration::from_millis(pause)).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_is_repeated_for_ever() {
        let mut repeats = Repeats::default();
        let mut count = 0;
        while repeats.wait().await {
            count += 1;
        }
        assert_eq!(count, MOST_REPEATS);
    }
}
