//! Versions of documents: which of two operations on one is the newer.
//!
//! A version is a reading of a hybrid logical clock (Kulkarni, Demirbas, Madappa, Avva, Leone: Logical Physical Clocks,
//! OPODIS 2014). It is wall time where clocks agree, and a counter where they do not. So it never runs backwards and
//! always passes what it has seen. Wall time is read to 15 ns, less than any message takes. While a clock follows wall
//! time, an operation that begins after another was stamped gets the higher version. A clock that is ahead of wall time
//! only counts: then this does not hold between two clocks.
//!
//! # Invariants
//! - V1: a clock's readings ascend strictly, whatever wall time does, unless that breaks V3.
//! - V2: after a clock has observed a version, its readings are above it, unless that breaks V3.
//! - V3: a clock's readings are at most 30 s ahead of wall time. So nodes accept them whatever versions the clock
//!   observed, and a clock that was wrong is right again once wall time is.

use std::fmt;

/// Bits of a version for the part of a millisecond.
const FRACTION_BITS: u32 = 16;

const NANOS_A_MILLISECOND: u64 = 1_000_000;

/// How far ahead of wall time a version may be, in milliseconds. Beyond this some clock is wrong, and its versions would
/// outdo all changes until then.
const MOST_AHEAD: u64 = 60_000;

/// How far ahead of wall time a clock's readings may be, in milliseconds. It leaves the other half of [`MOST_AHEAD`] for
/// the skew between the clocks of a router and a node.
const MOST_LEAD: u64 = MOST_AHEAD / 2;

/// When an operation was stamped: the time since 1970 in units of 1/65,536 ms. A clock that is ahead of wall time counts
/// in them. The highest version of a document wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// Before all others: of what was never written.
    pub const NONE: Version = Version(0);

    /// None is after it.
    pub const MAX: Version = Version(u64::MAX);

    /// The first version of a millisecond since 1970.
    pub const fn at(milliseconds: u64) -> Self {
        Self(milliseconds << FRACTION_BITS)
    }

    /// The version of a wall time, given in nanoseconds since 1970.
    pub const fn of_wall_time(nanoseconds: u64) -> Self {
        let millisecond = Self::at(nanoseconds / NANOS_A_MILLISECOND);
        let parts = ((nanoseconds % NANOS_A_MILLISECOND) << FRACTION_BITS) / NANOS_A_MILLISECOND;
        Self(millisecond.0 + parts)
    }

    /// Milliseconds since 1970.
    pub const fn milliseconds(self) -> u64 {
        self.0 >> FRACTION_BITS
    }

    /// The version after this one. The greatest version is its own successor.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Whether it is over a minute ahead of `wall`, the wall time in milliseconds since 1970. Nodes refuse such a
    /// version until [`acceptable_at`](Self::acceptable_at).
    pub const fn is_too_far_ahead(self, wall: u64) -> bool {
        self.milliseconds() > wall.saturating_add(MOST_AHEAD)
    }

    /// When nodes begin to accept it, in milliseconds since 1970.
    pub const fn acceptable_at(self) -> u64 {
        self.milliseconds().saturating_sub(MOST_AHEAD)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0 & ((1 << FRACTION_BITS) - 1);
        write!(f, "{}.{parts}", self.milliseconds())
    }
}

/// A hybrid logical clock. Wall time is an argument.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    last: Version,
}

impl Clock {
    /// The next version; `wall` is the version of the wall time. It is above all versions that were read or observed
    /// before. Only if that were over 30 s ahead of wall time, it is wall time instead.
    pub fn tick(&mut self, wall: Version) -> Version {
        let next = self.last.next();
        let now = wall.max(Version::NONE.next());
        self.last = if leads(next, wall) {
            now
        } else {
            next.max(now)
        };
        self.last
    }

    /// Takes note of a version that another clock gave, unless that is over 30 s ahead of wall time. Returns whether it
    /// took note, so that the next reading is above the version.
    pub fn observe(&mut self, version: Version, wall: Version) -> bool {
        if leads(version, wall) {
            return false;
        }
        self.last = self.last.max(version);
        true
    }
}

/// Whether a version is farther ahead of wall time than a reading may be.
const fn leads(version: Version, wall: Version) -> bool {
    version.milliseconds() > wall.milliseconds().saturating_add(MOST_LEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V1.
    #[test]
    fn readings_ascend_even_if_wall_time_falls_back() {
        let mut clock = Clock::default();
        let wall = [5, 5, 5, 9, 3, 9, 10];
        let read: Vec<Version> = wall
            .iter()
            .map(|&now| clock.tick(Version::at(now)))
            .collect();
        assert!(read.is_sorted_by(|a, b| a < b), "{read:?}");
        assert_eq!(read[0], Version::at(5));
        assert_eq!(read[6], Version::at(10));
    }

    /// V2.
    #[test]
    fn readings_pass_what_was_observed() {
        let mut clock = Clock::default();
        assert!(clock.observe(Version::at(100), Version::at(50)));
        assert!(clock.observe(Version::at(7), Version::at(50)));
        assert!(clock.tick(Version::at(50)) > Version::at(100));
        assert_eq!(clock.tick(Version::at(200)), Version::at(200));
    }

    /// V3.
    #[test]
    fn a_version_of_tomorrow_is_not_observed() {
        let at = |milliseconds| Version::at(1_000_000 + milliseconds);
        let (now, tomorrow) = (at(0), at(86_400_000));
        let mut clock = Clock::default();
        assert!(!clock.observe(tomorrow, now));
        assert!(!clock.observe(Version(u64::MAX), now));
        assert_eq!(clock.tick(now), now);
        assert!(!clock.observe(at(MOST_LEAD + 1), now));
        assert!(clock.observe(at(MOST_LEAD), now));
        let reading = clock.tick(now);
        assert!(!reading.is_too_far_ahead(now.milliseconds() - MOST_LEAD));
    }

    /// V3.
    #[test]
    fn a_clock_that_was_a_day_ahead_is_right_again_once_wall_time_is() {
        let (now, tomorrow) = (Version::at(1_000_000), Version::at(1_000_000 + 86_400_000));
        let mut clock = Clock::default();
        assert_eq!(clock.tick(tomorrow), tomorrow);
        assert!(clock.tick(tomorrow) > tomorrow);
        assert_eq!(clock.tick(now), now);
        assert!(clock.tick(now) > now, "it ascends again");
        let first = clock.tick(Version::NONE);
        assert_eq!(first, Version(1), "0 is of what was never written");
    }

    /// Two clocks that agree: the later operation wins, though both are of the same millisecond.
    #[test]
    fn of_two_clocks_that_agree_the_later_reading_is_higher() {
        let now = 1_700_000_000_999_000_000;
        let later = now + 16;
        let (mut one, mut other) = (Clock::default(), Clock::default());
        let first = one.tick(Version::of_wall_time(now));
        assert!(other.tick(Version::of_wall_time(later)) > first);
        assert_eq!(first, Version::at(1_700_000_000_999));
        let last = Version::of_wall_time(999_999_999);
        assert!(last < Version::at(1000) && last.next() == Version::at(1000));
    }

    #[test]
    fn a_version_is_refused_until_it_is_a_minute_ahead() {
        let version = Version(Version::at(100_000).0 + 7);
        let from = version.acceptable_at();
        assert!(version.is_too_far_ahead(from - 1));
        assert!(!version.is_too_far_ahead(from));
        assert_eq!(version.next().0, version.0 + 1);
        assert_eq!(Version(u64::MAX).next(), Version(u64::MAX));
    }

    #[test]
    fn versions_show_their_time_and_the_part_of_a_millisecond() {
        assert_eq!(Version(Version::at(12).0 + 3).to_string(), "12.3");
        assert_eq!(Version::at(12).milliseconds(), 12);
    }
}
