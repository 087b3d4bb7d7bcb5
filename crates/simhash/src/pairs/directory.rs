//! Where in a sorted set to look for a fingerprint, by its leading bits.
//!
//! A search among all of a large set waits for memory at every step. So the directory holds, for
//! each value of the leading bits, where it starts; some eight fingerprints share one, if they are
//! spread evenly, and are searched.

use std::ops::Range;

use crate::Fingerprint;

/// Fingerprints to one entry, as a power of two.
const SHARE: u32 = 3;

/// Most leading bits: 2^24 entries.
const MOST_BITS: u32 = 24;

/// Where the values of the leading bits start in a sorted set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// By value, and one more.
    starts: Vec<usize>,
    /// Bits that follow the leading ones.
    shift: u32,
}

impl Directory {
    /// That of an ascending set.
    pub(super) fn new(set: &[Fingerprint]) -> Self {
        // At least one, as no number can be shifted by 64 bits.
        let bits = set.len().max(1).ilog2().saturating_sub(SHARE);
        let shift = u64::BITS - bits.clamp(1, MOST_BITS);
        let mut starts = vec![0; (1 << (u64::BITS - shift)) + 1];
        for (next, fingerprint) in (1..).zip(set) {
            starts[(fingerprint.0 >> shift) as usize + 1] = next;
        }
        // A value without fingerprints starts where the one before it ends.
        let mut end = 0;
        for start in &mut starts {
            end = end.max(*start);
            *start = end;
        }
        Self { starts, shift }
    }

    /// The places of the fingerprints that begin like this one.
    pub(super) fn places(&self, fingerprint: Fingerprint) -> Range<usize> {
        let leading = (fingerprint.0 >> self.shift) as usize;
        self.starts[leading]..self.starts[leading + 1]
    }
}
