//! A pair of fingerprints.

use crate::Fingerprint;

/// Two different fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Pair {
    /// The smaller one.
    pub a: Fingerprint,
    /// The larger one.
    pub b: Fingerprint,
}

impl Pair {
    pub(crate) fn new(one: Fingerprint, other: Fingerprint) -> Self {
        Self {
            a: one.min(other),
            b: one.max(other),
        }
    }

    /// Number of bits that differ, 1 to 64.
    #[must_use]
    pub const fn distance(self) -> u32 {
        self.a.distance(self.b)
    }
}
