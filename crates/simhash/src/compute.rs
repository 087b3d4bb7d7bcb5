//! From feature hashes to a fingerprint: a bit is 1 when more hashes have it than lack it.
//!
//! The obvious way keeps 64 counters and adds to each of them for every hash. Here the 64 counters
//! lie on their side: word `i` of `planes` holds bit `i` of all of them. So one word operation
//! works on 64 counters at once. A carry-save adder turns three words of one level into a sum on
//! that level and a carry on the next. Since it needs three, one word per level waits in `held`:
//!
//! ```text
//!     hash ─▶ level 0: held + plane + hash ─▶ carry ─▶ level 1: held + plane + carry ─▶ …
//! ```
//!
//! Level 0 works on every second hash, level 1 on every fourth, and so on: one adder (five word
//! operations) a hash on average. The fingerprint: Charikar, "Similarity estimation techniques from
//! rounding algorithms", STOC 2002. The counting: Harley and Seal's population count, in Warren,
//! "Hacker's Delight", 2nd edition, section 5-2.
//!
//! # Invariants
//! - C1: `held[i]` waits to be counted exactly if bit `i` of `total` is 1. A held word of level
//!   `i` weighs 2^i, and two of them make a carry for the next: counting hashes *is* counting in
//!   binary.
//! - C2: the counter of bit `b` is the sum over levels `i` of 2^i times bit `b` of `planes[i]`,
//!   plus the same of the `held[i]` that wait.

use crate::Fingerprint;

/// Levels of a counter: enough for any total weight that a `u64` can hold.
const LEVELS: usize = 64;

/// Words that are counted together.
const EIGHT: usize = 8;

/// Counts, for each of the 64 bit positions, how many hashes have the bit set.
///
/// Takes about 1 KiB and never allocates. The weights of everything added must stay below 2^64 in
/// total, which no text or feature list that fits a machine can exceed.
#[derive(Clone, Debug)]
pub struct BitCounter {
    planes: [u64; LEVELS],
    held: [u64; LEVELS],
    total: u64,
}

impl BitCounter {
    /// A counter that has seen nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            planes: [0; LEVELS],
            held: [0; LEVELS],
            total: 0,
        }
    }

    /// Counts one hash, once.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        self.add_at(0, hash);
    }

    /// Counts each of many hashes once: the fastest way.
    pub fn add_all(&mut self, hashes: &[u64]) {
        // Eight words carry one word to level 3, if none waits on the levels below.
        let waiting = (EIGHT as u64 - self.total % EIGHT as u64) as usize % EIGHT;
        let (single, rest) = hashes.split_at(waiting.min(hashes.len()));
        let (eights, last) = rest.as_chunks::<EIGHT>();
        for &hash in single {
            self.add(hash);
        }
        for eight in eights {
            self.add_eight(eight);
        }
        for &hash in last {
            self.add(hash);
        }
    }

    /// Counts one hash `weight` times, at the cost of one addition per 1 bit of the weight.
    ///
    /// # Panics
    /// If all weights together reach 2^64.
    pub fn add_weighted(&mut self, hash: u64, weight: u64) {
        assert!(
            self.total.checked_add(weight).is_some(),
            "the weights of one fingerprint reach 2^64"
        );
        let mut rest = weight;
        while rest != 0 {
            self.add_at(rest.trailing_zeros() as usize, hash);
            rest &= rest - 1;
        }
    }

    /// The fingerprint of what was added: a bit is 1 if strictly more than half of the weight has
    /// it. So a tie gives 0, and nothing at all gives fingerprint 0.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let counts = self.counts();
        // More than half of an odd total is more than its half rounded down, so integers suffice.
        let half = self.total / 2;
        let mut above = 0;
        let mut equal = u64::MAX;
        for (level, count_bits) in counts.iter().enumerate().rev() {
            let half_bits = broadcast(half, level);
            above |= equal & count_bits & !half_bits;
            equal &= !(count_bits ^ half_bits);
        }
        Fingerprint(above)
    }

    /// Adds eight words while none waits on levels 0 to 2: seven adders, in three short chains.
    #[inline]
    fn add_eight(&mut self, &[a, b, c, d, e, f, g, h]: &[u64; EIGHT]) {
        debug_assert_eq!(self.total % EIGHT as u64, 0);
        let [ones, twos, fours, ..] = &mut self.planes;
        let mut pair = |first, second| {
            let carry;
            (*ones, carry) = add3(*ones, first, second);
            carry
        };
        let (ab, cd, ef, gh) = (pair(a, b), pair(c, d), pair(e, f), pair(g, h));
        let (abcd, efgh, all);
        (*twos, abcd) = add3(*twos, ab, cd);
        (*twos, efgh) = add3(*twos, ef, gh);
        (*fours, all) = add3(*fours, abcd, efgh);
        self.add_at(3, all);
    }

    /// Adds a word that weighs 2^level.
    #[inline]
    fn add_at(&mut self, level: usize, word: u64) {
        let mut carry = word;
        let mut free = level;
        while self.total >> free & 1 == 1 {
            (self.planes[free], carry) = add3(self.planes[free], self.held[free], carry);
            free += 1;
        }
        self.held[free] = carry;
        self.total += 1 << level;
    }

    /// The finished counters, bit-sliced like `planes`, with the waiting words added in.
    fn counts(&self) -> [u64; LEVELS] {
        let mut counts = self.planes;
        let mut carry = 0;
        for (level, count_bits) in counts.iter_mut().enumerate() {
            let waiting = self.held[level] & broadcast(self.total, level);
            (*count_bits, carry) = add3(*count_bits, waiting, carry);
        }
        debug_assert_eq!(carry, 0, "no counter exceeds the total");
        counts
    }
}

impl Default for BitCounter {
    fn default() -> Self {
        Self::new()
    }
}

/// The fingerprint of a sequence of feature hashes, each counted as often as it occurs.
///
/// A bit is 1 if strictly more hashes have it than lack it: a tie gives 0, and no hashes at all
/// give fingerprint 0.
///
/// ```
/// use simshard_simhash::{Fingerprint, compute};
/// assert_eq!(compute([0b0011, 0b0101, 0b1001]), Fingerprint(0b0001));
/// ```
#[must_use]
pub fn compute(hashes: impl IntoIterator<Item = u64>) -> Fingerprint {
    let mut counter = BitCounter::new();
    for hash in hashes {
        counter.add(hash);
    }
    counter.fingerprint()
}

/// Adds three bits in each of 64 places: their sums and their carries.
#[inline]
const fn add3(a: u64, b: u64, c: u64) -> (u64, u64) {
    let either = a ^ b;
    (either ^ c, (a & b) | (either & c))
}

/// Bit `level` of a number, copied to all 64 places.
const fn broadcast(number: u64, level: usize) -> u64 {
    (number >> level & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 64 counters and 64 additions a hash, and the total.
    fn count_slowly(weighted: &[(u64, u64)]) -> ([u128; 64], u128) {
        let mut ones = [0_u128; 64];
        let mut total = 0_u128;
        for &(hash, weight) in weighted {
            total += u128::from(weight);
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += u128::from(hash >> bit & 1) * u128::from(weight);
            }
        }
        (ones, total)
    }

    fn compute_slowly(weighted: &[(u64, u64)]) -> Fingerprint {
        let (ones, total) = count_slowly(weighted);
        let mut value = 0;
        for (bit, &count) in ones.iter().enumerate() {
            value |= u64::from(2 * count > total) << bit;
        }
        Fingerprint(value)
    }

    fn compute_weighted(weighted: &[(u64, u64)]) -> Fingerprint {
        let mut counter = BitCounter::new();
        for &(hash, weight) in weighted {
            counter.add_weighted(hash, weight);
        }
        counter.fingerprint()
    }

    /// Hashes of all densities, so that counters far from the half and exactly on it occur.
    fn any_hash() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a & b),
            (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a | b),
            prop::sample::select(vec![
                0,
                1,
                u64::MAX,
                0xf0f0_f0f0_f0f0_f0f0,
                0x0f0f_0f0f_0f0f_0f0f
            ]),
        ]
    }

    proptest! {
        /// C1 and C2, as they are stated.
        #[test]
        fn planes_and_waiting_words_hold_the_counts(
            weighted in prop::collection::vec((any_hash(), 0..9_u64), 0..60),
            hashes in prop::collection::vec(any_hash(), 0..40),
        ) {
            let mut counter = BitCounter::new();
            for &(hash, weight) in &weighted {
                counter.add_weighted(hash, weight);
            }
            counter.add_all(&hashes);
            let all: Vec<_> = weighted.into_iter().chain(hashes.iter().map(|&hash| (hash, 1))).collect();
            let (expected, total) = count_slowly(&all);
            prop_assert_eq!(u128::from(counter.total), total);
            for (bit, expected) in expected.into_iter().enumerate() {
                let mut count = 0;
                for level in 0..LEVELS {
                    let waits = counter.total >> level & 1;
                    let held = (counter.held[level] >> bit & 1) * waits;
                    count += u128::from((counter.planes[level] >> bit & 1) + held) << level;
                }
                prop_assert_eq!(count, expected, "bit {}", bit);
            }
        }

        #[test]
        fn counting_in_planes_equals_64_additions(hashes in prop::collection::vec(any_hash(), 0..700)) {
            let weighted: Vec<_> = hashes.iter().map(|&hash| (hash, 1)).collect();
            prop_assert_eq!(compute(hashes), compute_slowly(&weighted));
        }

        #[test]
        fn hashes_count_alike_in_batches_and_one_by_one(
            batches in prop::collection::vec(prop::collection::vec(any_hash(), 0..40), 0..12),
        ) {
            let mut counter = BitCounter::new();
            for batch in &batches {
                counter.add_all(batch);
            }
            prop_assert_eq!(counter.fingerprint(), compute(batches.concat()));
        }

        #[test]
        fn weights_count_like_repetitions(
            weighted in prop::collection::vec((any_hash(), prop_oneof![0..9_u64, 0..1_u64 << 57]), 0..60),
        ) {
            prop_assert_eq!(compute_weighted(&weighted), compute_slowly(&weighted));
        }

        #[test]
        fn single_and_weighted_additions_mix(
            hashes in prop::collection::vec((any_hash(), 0..20_u64), 0..60),
        ) {
            let mut counter = BitCounter::new();
            let mut seen = Vec::new();
            for &(hash, weight) in &hashes {
                counter.add_weighted(hash, weight);
                counter.add(!hash);
                seen.extend([(hash, weight), (!hash, 1)]);
                prop_assert_eq!(counter.fingerprint(), compute_slowly(&seen));
            }
        }
    }

    #[test]
    fn a_hash_and_its_complement_tie_to_zero() {
        assert_eq!(compute([5, !5]), Fingerprint(0));
        assert_eq!(compute([5, !5, 5]), Fingerprint(5));
    }

    #[test]
    fn nothing_has_fingerprint_zero() {
        assert_eq!(compute([]), Fingerprint(0));
        assert_eq!(compute_weighted(&[(7, 0)]), Fingerprint(0));
    }

    #[test]
    fn the_largest_total_still_counts() {
        let below_half = u64::MAX / 2;
        assert_eq!(
            compute_weighted(&[(1, below_half), (2, below_half + 1)]),
            Fingerprint(2)
        );
        assert_eq!(compute_weighted(&[(9, u64::MAX)]), Fingerprint(9));
    }

    #[test]
    #[should_panic(expected = "reach 2^64")]
    fn a_total_of_two_to_the_64_panics() {
        let _ = compute_weighted(&[(1, u64::MAX), (2, 1)]);
    }
}
