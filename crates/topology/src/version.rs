//! Versions of documents: which of two operations on one is the newer.
//!
//! A version is a reading of a hybrid logical clock (Kulkarni, Demirbas, Madappa, Avva, Leone: Logical Physical
//! Clocks, OPODIS 2014): wall time where clocks agree, and a counter where they do not, so that it never runs
//! backwards and always passes what it has seen.
//!
//! # Invariants
//! - V1: a clock's readings ascend strictly, whatever wall time does.
//! - V2: after a clock has observed a version, its readings are above it.

use std::fmt;

/// Bits of a version that count within a millisecond.
const COUNTER_BITS: u32 = 16;

/// When an operation was stamped: milliseconds since 1970 in the high 48 bits, a counter in the
/// low 16. The highest version of a document wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// Before all others: of what was never written.
    pub const NONE: Version = Version(0);

    /// The first version of a millisecond since 1970.
    pub const fn at(milliseconds: u64) -> Self {
        Self(milliseconds << COUNTER_BITS)
    }

    /// Milliseconds since 1970.
    pub const fn milliseconds(self) -> u64 {
        self.0 >> COUNTER_BITS
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counter = self.0 & ((1 << COUNTER_BITS) - 1);
        write!(f, "{}.{counter}", self.milliseconds())
    }
}

/// A hybrid logical clock. Wall time is an argument.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    last: Version,
}

impl Clock {
    /// The next version, above all that were read or observed before; `milliseconds` is the wall
    /// time since 1970.
    pub fn tick(&mut self, milliseconds: u64) -> Version {
        let next = Version(self.last.0.saturating_add(1));
        self.last = next.max(Version::at(milliseconds));
        self.last
    }

    /// Takes note of a version that another clock gave.
    pub fn observe(&mut self, version: Version) {
        self.last = self.last.max(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V1.
    #[test]
    fn readings_ascend_even_if_wall_time_falls_back() {
        let mut clock = Clock::default();
        let wall = [5, 5, 5, 9, 3, 9, 10];
        let read: Vec<Version> = wall.iter().map(|&now| clock.tick(now)).collect();
        assert!(read.is_sorted_by(|a, b| a < b), "{read:?}");
        assert_eq!(read[0], Version::at(5));
        assert_eq!(read[6], Version::at(10));
    }

    /// V2.
    #[test]
    fn readings_pass_what_was_observed() {
        let mut clock = Clock::default();
        clock.observe(Version::at(100));
        clock.observe(Version::at(7));
        assert!(clock.tick(50) > Version::at(100));
        assert_eq!(clock.tick(200), Version::at(200));
    }

    #[test]
    fn versions_show_their_time_and_counter() {
        assert_eq!(Version(Version::at(12).0 + 3).to_string(), "12.3");
        assert_eq!(Version::at(12).milliseconds(), 12);
    }
}
