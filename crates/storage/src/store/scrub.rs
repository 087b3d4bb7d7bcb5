//! Reading all segments in the background, so that damage is found while it can be repaired.
//!
//! # Invariants
//! - SC1: every segment is read and compared with its hash again and again; one that is damaged answers nothing
//!   any more.
//! - SC2: a shard counts as damaged as long as a damaged segment is part of it, and no longer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use simshard_topology::ShardSet;

use super::Store;
use crate::segment::Segment;

/// Bytes read in a second, at most: little beside what searches and compaction read.
const BYTES_A_SECOND: u64 = 8 << 20;

/// The first round begins after this time.
const FIRST_ROUND_AFTER: Duration = Duration::from_secs(10 * 60);

/// Between the end of one round through all segments and the next.
const PAUSE_BETWEEN_ROUNDS: Duration = Duration::from_secs(24 * 60 * 60);

/// A shard that is changed for longer may wait for a disk that hangs.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_millis(1);

impl Store {
    /// Reads all segments, round after round, until the store is closed.
    pub(crate) fn scrub(&self) {
        let mut rest = FIRST_ROUND_AFTER;
        while self.maintenance.rest(rest) {
            let pace = |bytes| self.maintenance.rest(pause(bytes));
            self.scrub_all(pace);
            rest = PAUSE_BETWEEN_ROUNDS;
        }
    }

    /// Reads all segments once, and says what is damaged in the log of the process; `go_on` hears of the bytes of each
    /// read, and may end it.
    pub(super) fn scrub_all(&self, mut go_on: impl FnMut(u64) -> bool) {
        // A segment that is merged meanwhile is dropped, and its file with it.
        let segments: Vec<Weak<Segment>> = self.all_segments().iter().map(Arc::downgrade).collect();
        for segment in segments {
            let Some(segment) = segment.upgrade() else {
                continue;
            };
            match segment.verify(&mut go_on) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::error!(%error, "a segment is damaged: requests that need it fail");
                }
            }
        }
    }

    /// The shards with a segment that was found damaged, by the scrub or by a request. What is set aside is no part of
    /// them. A shard that is being changed for long is left out: ask again.
    #[must_use]
    pub fn damaged(&self) -> ShardSet {
        let shards = self.shards.iter().filter(|(_, shard)| {
            let shard = shard.try_read_for(LOCK_TIMEOUT);
            shard.is_some_and(|shard| shard.segments.iter().any(|segment| segment.is_damaged()))
        });
        shards.map(|(id, _)| *id).collect()
    }
}

/// How long to pause after reading `bytes` bytes.
fn pause(bytes: u64) -> Duration {
    Duration::from_millis(bytes * 1000 / BYTES_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_as_long_as_its_bytes_take() {
        assert_eq!(pause(BYTES_A_SECOND), Duration::from_secs(1));
        assert_eq!(pause(0), Duration::ZERO);
    }
}
