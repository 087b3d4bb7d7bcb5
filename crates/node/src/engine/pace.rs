//! How fast copies of shards go, which all copies of a node share.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// The pace of what a node receives, and that of what it sends.
#[derive(Debug, Default)]
pub(crate) struct CopyPace {
    pub(crate) received: Pace,
    pub(crate) sent: Arc<Pace>,
}

impl CopyPace {
    /// Sets how many megabytes go each way in a second.
    pub(crate) fn set(&self, rate: Option<NonZeroU32>) {
        self.received.set(rate);
        self.sent.set(rate);
    }
}

/// How many megabytes a second a node copies beside requests, where an operator has set no limit. Measured on two cores:
/// 99 of 100 requests take twice as long at most while shards move. At half this rate they take hardly less.
pub const COPY_RATE_BESIDE_REQUESTS: NonZeroU32 = NonZeroU32::new(20).unwrap();

/// A node that was given no work for this long has none.
const REST: Duration = Duration::from_secs(1);

/// Whether a node has requests to serve, as it was seen over time.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// How often it was given work, and when that was more than before.
    given: u64,
    last: Option<Instant>,
}

impl Activity {
    /// Looks once more. Answers whether the node serves requests.
    pub(crate) fn look(&mut self, given: u64, now: Instant) -> bool {
        if given != self.given {
            (self.given, self.last) = (given, Some(now));
        }
        self.last.is_some_and(|last| now - last < REST)
    }

    /// The same. Answers the rate of copies where an operator has set none: a node that serves requests gives way.
    pub(crate) fn rate(&mut self, given: u64, now: Instant) -> Option<NonZeroU32> {
        self.look(given, now).then_some(COPY_RATE_BESIDE_REQUESTS)
    }
}

/// Lets bytes through at a rate at most, as a line of that rate would. Without a rate nothing waits.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    /// Megabytes a second.
    rate: Option<NonZeroU32>,
    /// When all that was taken so far is through.
    free: Option<Instant>,
}

impl Pace {
    /// Sets how many megabytes go through in a second. What waits already keeps its time.
    fn set(&self, rate: Option<NonZeroU32>) {
        let mut line = self.line.lock();
        if line.rate != rate {
            *line = Line { rate, free: None };
        }
    }

    /// Waits until these bytes are through.
    pub(crate) async fn take(&self, bytes: usize) {
        let through = self.line.lock().take(bytes, Instant::now());
        if let Some(through) = through {
            sleep_until(through).await;
        }
    }
}

impl Line {
    /// When these bytes are through; `None` if nothing waits.
    fn take(&mut self, bytes: usize, now: Instant) -> Option<Instant> {
        let per_second = f64::from(self.rate?.get()) * 1e6;
        let begin = self.free.map_or(now, |free| free.max(now));
        let through = begin + Duration::from_secs_f64(bytes as f64 / per_second);
        self.free = Some(through);
        Some(through)
    }
}

#[cfg(test)]
mod tests {
    use tokio::join;

    use super::*;

    const MEGABYTE: usize = 1_000_000;

    async fn take(pace: &Pace, messages: usize) {
        for _ in 0..messages {
            pace.take(MEGABYTE / 4).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_copies_together_keep_to_the_rate() {
        let pace = Pace::default();
        let begin = Instant::now();
        take(&pace, 1000).await;
        assert_eq!(begin.elapsed(), Duration::ZERO, "there is no limit");
        pace.set(NonZeroU32::new(5));
        join!(take(&pace, 10), take(&pace, 20), take(&pace, 10));
        assert_eq!(begin.elapsed(), Duration::from_secs(2));
        // What was not used in the meantime is not made up for.
        tokio::time::sleep(Duration::from_secs(10)).await;
        take(&pace, 20).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(13));
    }

    /// Copies give way while requests come, and for a moment after that.
    #[tokio::test(start_paused = true)]
    async fn a_node_copies_slowly_while_it_serves_requests() {
        let mut activity = Activity::default();
        let begin = Instant::now();
        assert_eq!(activity.rate(0, begin), None);
        for step in 1..20 {
            let now = begin + REST * step / 2;
            assert_eq!(
                activity.rate(step.into(), now),
                Some(COPY_RATE_BESIDE_REQUESTS)
            );
        }
        let last = begin + REST * 19 / 2;
        assert_eq!(
            activity.rate(19, last + REST / 2),
            Some(COPY_RATE_BESIDE_REQUESTS)
        );
        assert_eq!(activity.rate(19, last + REST), None);
        assert_eq!(
            activity.rate(20, last + 2 * REST),
            Some(COPY_RATE_BESIDE_REQUESTS)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn another_rate_counts_from_the_next_bytes_on() {
        let pace = Pace::default();
        pace.set(NonZeroU32::new(1));
        let begin = Instant::now();
        // It is not done before two minutes.
        let waiting = pace.take(120 * MEGABYTE);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        pace.set(NonZeroU32::new(100));
        pace.take(100 * MEGABYTE).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
        pace.set(None);
        take(&pace, 1000).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
    }
}
