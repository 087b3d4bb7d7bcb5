//! The clock that stamps changes: wall time, made to ascend.

use std::time::SystemTime;

use parking_lot::Mutex;
use simshard_topology::{Clock, Version};

/// How a change gets its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stamp {
    /// The version is the next reading of the clock.
    Reading,
    /// The version is this one + 1. The clock has not observed it, because it is far ahead of wall time.
    After(Version),
}

/// A hybrid logical clock over the system's.
#[derive(Debug, Default)]
pub(crate) struct SystemClock(Mutex<Clock>);

impl SystemClock {
    /// A version for a change.
    pub(crate) fn version(&self, stamp: Stamp) -> Version {
        match stamp {
            Stamp::Reading => self.0.lock().tick(wall()),
            Stamp::After(version) => version.next(),
        }
    }

    /// How to stamp a change so that it is above this version of its document. `None` if that version is over a minute
    /// ahead of wall time, unless the change may be `beyond_clock`.
    pub(crate) fn above(&self, version: Version, beyond_clock: bool) -> Option<Stamp> {
        above(&mut self.0.lock(), version, beyond_clock, wall())
    }
}

fn wall() -> Version {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Version::of_wall_time(u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX))
}

fn above(clock: &mut Clock, version: Version, beyond_clock: bool, wall: Version) -> Option<Stamp> {
    if clock.observe(version, wall) {
        return Some(Stamp::Reading);
    }
    let may_be = beyond_clock || !version.is_too_far_ahead(wall.milliseconds());
    may_be.then_some(Stamp::After(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Version = Version::at(1_000_000);

    fn in_seconds(seconds: u64) -> Version {
        Version(Version::at(NOW.milliseconds() + 1000 * seconds).0 + 5)
    }

    #[test]
    fn a_version_that_is_little_ahead_is_passed_and_one_that_is_far_ahead_is_passed_by_one_change_only()
     {
        let clock = &mut Clock::default();
        for beyond_clock in [false, true] {
            let stamp = above(clock, in_seconds(29), beyond_clock, NOW);
            assert_eq!(stamp, Some(Stamp::Reading));
            assert_eq!(clock.tick(NOW), in_seconds(29).next());
            *clock = Clock::default();
            let stamp = above(clock, in_seconds(31), beyond_clock, NOW);
            assert_eq!(stamp, Some(Stamp::After(in_seconds(31))));
            assert_eq!(clock.tick(NOW), NOW, "it was not observed");
        }
    }

    #[test]
    fn a_version_that_is_too_far_ahead_is_passed_beyond_the_clock_only() {
        let clock = &mut Clock::default();
        let tomorrow = in_seconds(86_400);
        assert_eq!(above(clock, tomorrow, false, NOW), None);
        let stamp = above(clock, tomorrow, true, NOW);
        assert_eq!(stamp, Some(Stamp::After(tomorrow)));
        let version = SystemClock::default().version(Stamp::After(tomorrow));
        assert_eq!(version.0, tomorrow.0 + 1);
        assert_eq!(clock.tick(NOW), NOW, "it was not observed");
    }
}
