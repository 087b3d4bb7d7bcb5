//! How long to go on after failures, and how long to wait between two tries.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

/// The first pause; each one after it is about twice as long, …
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// … up to this, and as long again by chance: so that many clients do not come back as one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Report failures that last longer than this. Shorter ones end before the user reads the report.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// How long to go on retrying a request that fails.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    failing: Option<Failing>,
}

/// Failures without progress between them.
#[derive(Debug)]
struct Failing {
    since: Instant,
    pauses: ExponentialBackoff,
    told: bool,
}

impl Patience {
    /// Allows retries until `limit` after the first attempt that failed had begun.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            failing: None,
        }
    }

    /// Notes the failure of an attempt: how long to wait before the next try, or nothing if it has gone on for too
    /// long.
    pub(crate) fn after_failure(&mut self, began: Instant, now: Instant) -> Option<Duration> {
        let failing = self.failing.get_or_insert_with(|| Failing {
            since: began,
            pauses: pauses(),
            told: false,
        });
        let left = self.limit.checked_sub(now - failing.since)?;
        // The next try needs time as well: retries end with the patience.
        let longest = (left / 2).max(FIRST_PAUSE).min(left);
        let pause = failing.pauses.next()?.min(longest);
        (!left.is_zero()).then_some(pause)
    }

    /// When retries end, if the last attempt failed.
    pub(crate) fn end(&self) -> Option<Instant> {
        let failing = self.failing.as_ref();
        failing.map(|failing| failing.since + self.limit)
    }

    /// The time left for retries, if the failures should be reported now. Once, until something succeeds.
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<Duration> {
        let failing = self.failing.as_mut().filter(|failing| !failing.told)?;
        let failed = now - failing.since;
        failing.told = failed >= REPORT_AFTER;
        failing.told.then(|| self.limit.saturating_sub(failed))
    }

    /// Notes that something succeeded.
    pub(crate) fn after_progress(&mut self) {
        self.failing = None;
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .without_max_times()
        .with_jitter()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn pauses_grow_and_end_with_the_patience() {
        let mut patience = Patience::new(LIMIT);
        let start = Instant::now();
        let mut now = start;
        let mut pauses = Vec::new();
        while let Some(pause) = patience.after_failure(start, now) {
            pauses.push(pause);
            now += pause;
        }
        assert_eq!(now, start + LIMIT, "the last try is when the patience ends");
        assert!(pauses[0] >= FIRST_PAUSE && pauses[0] <= 2 * FIRST_PAUSE);
        assert!(pauses[4] >= 16 * FIRST_PAUSE, "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= 2 * LONGEST_PAUSE));
        let jitter = |patience: &mut Patience| patience.after_failure(start, start);
        let others: Vec<_> = (0..8).map(|_| jitter(&mut Patience::new(LIMIT))).collect();
        assert!(others.iter().any(|other| *other != others[0]), "no jitter");
    }

    #[test]
    fn progress_begins_the_patience_anew() {
        let mut patience = Patience::new(LIMIT);
        let start = Instant::now();
        assert!(patience.after_failure(start, start).is_some());
        assert!(patience.after_failure(start, start + LIMIT).is_none());
        patience.after_progress();
        let pause = patience
            .after_failure(start + LIMIT, start + LIMIT)
            .unwrap();
        assert!(pause <= 2 * FIRST_PAUSE, "{pause:?}");
    }

    #[test]
    fn a_word_is_said_once_until_something_succeeds() {
        let mut patience = Patience::new(LIMIT);
        let start = Instant::now();
        let later = start + REPORT_AFTER;
        assert_eq!(patience.overdue(later), None, "nothing failed");
        for _ in 0..2 {
            assert!(patience.after_failure(start, start).is_some());
            assert_eq!(patience.overdue(start), None, "it may be over at once");
            assert_eq!(patience.overdue(later), Some(LIMIT - REPORT_AFTER));
            assert_eq!(patience.overdue(later), None, "it was said");
            patience.after_progress();
        }
    }

    #[test]
    fn without_patience_the_first_failure_is_the_last() {
        let mut patience = Patience::new(Duration::ZERO);
        assert_eq!(patience.after_failure(Instant::now(), Instant::now()), None);
    }

    #[test]
    fn the_first_attempt_that_fails_counts_too() {
        let mut patience = Patience::new(LIMIT);
        let start = Instant::now();
        assert_eq!(patience.end(), None);
        assert_eq!(patience.after_failure(start, start + LIMIT), None);
        assert_eq!(patience.end(), Some(start + LIMIT));
    }
}
