//! A limit on how fast a backup goes.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Lets a number of bytes pass each second.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    bytes_per_second: Option<u64>,
    next: Instant,
}

impl Throttle {
    /// At most this many bytes each second; any number without a limit.
    #[must_use]
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        Self {
            bytes_per_second,
            next: Instant::now(),
        }
    }

    /// Waits until some bytes may pass. A pause that the caller made by itself is not made up for.
    pub(crate) async fn pass(&mut self, bytes: u64) {
        let Some(rate) = self.bytes_per_second else {
            return;
        };
        sleep_until(self.next).await;
        let taken = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        self.next = Instant::now().max(self.next) + taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_take_their_time() {
        let began = Instant::now();
        let mut throttle = Throttle::new(Some(1000));
        for _ in 0..5 {
            throttle.pass(500).await;
        }
        assert_eq!(began.elapsed().as_millis(), 2000);
        let mut free = Throttle::new(None);
        free.pass(u64::MAX).await;
        assert_eq!(began.elapsed().as_millis(), 2000);
    }
}
