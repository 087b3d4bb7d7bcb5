//! What took so long that the log tells of it.
//!
//! # Invariants
//! - OB5: an instance tells of at most [`LINES`] slow things a second. The next line that it writes counts those left out.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::locked;

/// Lines in a second. When all is slow, more of them tell nothing new, and cost what is short then.
const LINES: u32 = 10;

/// How long something may take before the log tells of it. Clones share what was told.
#[derive(Clone, Debug, Default)]
pub struct Slow {
    /// Nothing is told of without it.
    after: Option<Duration>,
    told: Arc<Mutex<Told>>,
}

#[derive(Debug, Default)]
struct Told {
    /// When the second of the last line began.
    since: Option<Instant>,
    /// Lines in it.
    lines: u32,
    /// What was left out since the last line.
    left_out: u64,
}

impl Slow {
    /// Tells of what takes as long as this, or longer.
    pub(super) fn after(after: Option<Duration>) -> Self {
        Self {
            after,
            told: Arc::default(),
        }
    }

    /// Whether the log is to tell of what took so long: then how many others it left out before.
    #[must_use]
    pub fn tells(&self, took: Duration) -> Option<u64> {
        if took < self.after? {
            return None;
        }
        locked(&self.told).line(Instant::now())
    }
}

impl Told {
    fn line(&mut self, now: Instant) -> Option<u64> {
        let second = Duration::from_secs(1);
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= second)
        {
            self.since = Some(now);
            self.lines = 0;
        }
        if self.lines == LINES {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_told_of() {
        let limit = Duration::from_millis(100);
        let slow = Slow::after(Some(limit));
        assert_eq!(slow.tells(limit - Duration::from_nanos(1)), None);
        assert_eq!(slow.tells(limit), Some(0));
        assert_eq!(Slow::default().tells(Duration::MAX), None);
    }

    /// OB5.
    #[test]
    fn a_second_has_few_lines_and_the_next_line_counts_those_left_out() {
        let begun = Instant::now();
        let mut told = Told::default();
        let lines = (0..25).filter_map(|_| told.line(begun));
        assert_eq!(lines.collect::<Vec<_>>(), [0; LINES as usize]);
        let second = Duration::from_secs(1);
        assert_eq!(told.line(begun + second - Duration::from_nanos(1)), None);
        assert_eq!(told.line(begun + second), Some(16));
        assert_eq!(told.line(begun + second), Some(0));
    }
}
