//! Where in a sorted set a fingerprint stands, found from its leading bits.
//!
//! A search among all of a large set waits for memory at every step. So the directory holds, for
//! each value of the leading bits, where it starts; some eight fingerprints share one, if they are
//! spread evenly, and are searched.

use simshard_simhash::Fingerprint;

/// Fingerprints to one entry, as a power of two.
const SHARE: u32 = 3;

/// Most leading bits: 2^24 entries.
const MOST_BITS: u32 = 24;

/// Where the values of the leading bits start in a sorted set.
#[derive(Debug)]
pub(super) struct Directory {
    /// By value, and one more.
    starts: Vec<u32>,
    /// Bits that follow the leading ones.
    shift: u32,
}

impl Directory {
    /// That of a set of less than 2^32.
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

    /// The place of a fingerprint in the set that this was made for, `None` if it is not there.
    pub(super) fn place(&self, set: &[Fingerprint], fingerprint: Fingerprint) -> Option<usize> {
        let leading = (fingerprint.0 >> self.shift) as usize;
        let (start, end) = (
            self.starts[leading] as usize,
            self.starts[leading + 1] as usize,
        );
        let place = set[start..end].binary_search(&fingerprint).ok()?;
        Some(start + place)
    }
}

#[cfg(test)]
mod tests {
    use simshard_simhash::synthetic::Data;

    use super::*;

    #[test]
    fn places_equal_those_of_a_search_among_all() {
        for count in [0, 1, 2, 7, 8, 100, 5000] {
            for data in Data::ALL {
                let mut set = data.fingerprints(count, 7);
                set.extend([0, 1, 1 << 63, u64::MAX].map(Fingerprint));
                set.sort_unstable();
                set.dedup();
                let directory = Directory::new(&set);
                let others = data.fingerprints(1000, 8);
                for &fingerprint in set.iter().chain(&others) {
                    let expected = set.binary_search(&fingerprint).ok();
                    assert_eq!(directory.place(&set, fingerprint), expected, "{count}");
                }
            }
        }
        let none = Directory::new(&[]);
        assert_eq!(none.place(&[], Fingerprint(u64::MAX)), None);
    }
}
