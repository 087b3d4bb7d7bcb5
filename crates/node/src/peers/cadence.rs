//! How often a store takes steps that might wait (PE18).

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::pace::Activity;

/// How long a store that serves requests takes no such steps, after it has taken all that were due.
pub const PAUSE_BETWEEN_STEPS: Duration = Duration::from_secs(4);

/// When such steps were taken, and whether there are requests that they hold up.
#[derive(Debug, Default)]
pub(super) struct Cadence {
    activity: Activity,
    taken: Option<Instant>,
}

impl Cadence {
    /// Looks once more. Answers whether such steps are taken now.
    pub(super) fn look(&mut self, work_given: u64, now: Instant) -> bool {
        let serves = self.activity.look(work_given, now);
        let has_passed = self
            .taken
            .is_none_or(|taken| now - taken >= PAUSE_BETWEEN_STEPS);
        !serves || has_passed
    }

    /// Takes note that such steps are taken.
    pub(super) fn note_moves(&mut self, now: Instant) {
        self.taken = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PE18.
    #[test]
    fn a_store_that_serves_requests_takes_steps_together_and_one_that_does_not_at_once() {
        let mut cadence = Cadence::default();
        let now = Instant::now();
        assert!(cadence.look(7, now));
        cadence.note_moves(now);
        let soon = now + PAUSE_BETWEEN_STEPS / 2;
        assert!(!cadence.look(8, soon));
        assert!(cadence.look(9, now + PAUSE_BETWEEN_STEPS));
        cadence.note_moves(now + PAUSE_BETWEEN_STEPS);
        // There was no work since.
        assert!(cadence.look(9, now + PAUSE_BETWEEN_STEPS * 7 / 4));
    }
}
