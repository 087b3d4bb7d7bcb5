//! Shards whose segments could not be merged for want of space, or of file descriptors: each is left alone for a while,
//! longer each time. A merge needs as much space as all that it merges, and writes it in vain; what is flushed needs little.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use simshard_topology::ShardId;

/// The first rest of a shard.
const FIRST_REST: Duration = Duration::from_secs(30);

/// Rests grow to this.
const LONGEST_REST: Duration = Duration::from_secs(10 * 60);

/// The shards that rest: until when, and how long.
#[derive(Debug, Default)]
pub(super) struct Resting(BTreeMap<ShardId, (Instant, Duration)>);

impl Resting {
    /// Lets a shard rest, twice as long as the last time.
    pub(super) fn add(&mut self, shard: ShardId, now: Instant) {
        let before = self.0.get(&shard);
        let length = before.map_or(FIRST_REST, |(_, length)| LONGEST_REST.min(2 * *length));
        self.0.insert(shard, (now + length, length));
    }

    /// Whether a shard rests now.
    pub(super) fn has(&self, shard: ShardId, now: Instant) -> bool {
        self.0.get(&shard).is_some_and(|(until, _)| now < *until)
    }

    /// Forgets that a shard rested: it was merged.
    pub(super) fn remove(&mut self, shard: ShardId) {
        self.0.remove(&shard);
    }

    /// Ends all rests: there may be space again.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How long it is until the next rest ends, if any shard rests.
    pub(super) fn next_end(&self, now: Instant) -> Option<Duration> {
        let ends = self.0.values().filter(|(until, _)| now < *until);
        ends.map(|(until, _)| until.duration_since(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_rests_longer_each_time_and_wakes() {
        let start = Instant::now();
        let mut resting = Resting::default();
        let (one, two) = (ShardId(1), ShardId(2));
        assert_eq!(resting.next_end(start), None);
        resting.add(one, start);
        resting.add(two, start + FIRST_REST / 2);
        assert!(resting.has(one, start) && !resting.has(ShardId(3), start));
        assert_eq!(resting.next_end(start), Some(FIRST_REST));
        assert!(!resting.has(one, start + FIRST_REST));
        assert_eq!(resting.next_end(start + FIRST_REST), Some(FIRST_REST / 2));
        assert_eq!(resting.next_end(start + 2 * FIRST_REST), None);
        resting.add(one, start);
        assert_eq!(resting.next_end(start + FIRST_REST), Some(FIRST_REST / 2));
        assert!(resting.has(one, start + 2 * FIRST_REST - FIRST_REST / 2));
        for _ in 0..100 {
            resting.add(one, start);
        }
        assert!(!resting.has(one, start + LONGEST_REST));
        resting.remove(one);
        resting.add(one, start);
        assert!(!resting.has(one, start + FIRST_REST));
        resting.clear();
        assert_eq!(resting.next_end(start), None);
    }
}
