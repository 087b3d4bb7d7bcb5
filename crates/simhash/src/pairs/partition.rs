//! Sorting fingerprints into buckets by some of their bits: in the cache of one processor, or with
//! all threads of the pool. These cannot share places as [`counting::scatter`] moves them on: each
//! has a piece of every bucket to itself.

use std::slice::IterMut;

use rayon::prelude::*;

use crate::counting;
use crate::layout::low_bits;
use crate::scan::Zeroed;

/// Most bits of a digit: as many buckets are written to at once, and caches hold no more lines.
const DIGIT_BITS: u32 = 11;

/// Bits of a digit that leaves bits to later ones anyway: the first cache holds most of so few lines.
const NARROW_DIGIT_BITS: u32 = 10;

/// Bits that are not worth a digit of their own: buckets that are larger by so much are compared as they are.
const SPARED_BITS: u32 = 2;

/// Some bits of a fingerprint as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    mask: u64,
    multiplier: u64,
    shift: u32,
}

impl Digit {
    /// The leading bits of `mask`, which is not 0, as a digit with at least that many values, if
    /// there are bits enough and caches allow it.
    pub(super) fn leading(mask: u64, buckets: usize) -> Self {
        let wanted = buckets.max(2).ilog2().min(mask.count_ones());
        let bits = if wanted <= DIGIT_BITS + SPARED_BITS {
            wanted.min(DIGIT_BITS)
        } else {
            // What is left if later digits take as many as they can.
            let left = (wanted - 1) % DIGIT_BITS + 1;
            left.max(NARROW_DIGIT_BITS)
        };
        Self::of_bits(leading_bits(mask, bits))
    }

    /// The digit that these bits make, at least one. Without a gap between them it is their value;
    /// else a hash of them, which equal bits share, though others may too.
    fn of_bits(mask: u64) -> Self {
        debug_assert_ne!(mask, 0);
        let width = mask.count_ones();
        if mask >> mask.trailing_zeros() == low_bits(width) {
            return Self {
                mask,
                multiplier: 1 << mask.leading_zeros(),
                shift: 64 - width,
            };
        }
        // One bit more than needed halves the collisions.
        let bits = (width + 1).min(DIGIT_BITS);
        Self {
            mask,
            multiplier: 0x9e37_79b9_7f4a_7c15,
            shift: 64 - bits,
        }
    }

    /// The bits it looks at.
    pub(super) const fn mask(self) -> u64 {
        self.mask
    }

    /// Whether it never falls where fingerprints ascend that differ in no bit above it.
    pub(super) const fn keeps_order(self) -> bool {
        self.multiplier.is_power_of_two()
    }

    /// Digits are below this.
    const fn digits(self) -> usize {
        1 << (64 - self.shift)
    }

    #[inline]
    const fn of(self, value: u64) -> usize {
        ((value & self.mask).wrapping_mul(self.multiplier) >> self.shift) as usize
    }

    /// Sets `counts` to how many of the values have each digit.
    fn count(self, values: &[u64], counts: &mut Vec<usize>) {
        counts.clear();
        counts.resize(self.digits(), 0);
        counting::count(counts, values.iter().map(|&value| self.of(value)));
    }

    /// Puts values into buckets in `target`, which is as long, and sets `ends` to where each bucket ends.
    pub(super) fn partition(self, values: &[u64], ends: &mut Vec<usize>, target: &mut [u64]) {
        self.count(values, ends);
        counting::to_starts(ends);
        let by_digit = values.iter().map(|&value| (self.of(value), value));
        counting::scatter(ends, by_digit, target);
    }
}

/// The first `count` bits that are set, from the most significant on.
fn leading_bits(mask: u64, count: u32) -> u64 {
    let mut rest = mask;
    for _ in 0..count {
        rest &= !(1_u64 << 63).unbounded_shr(rest.leading_zeros());
    }
    mask & !rest
}

/// The bits in which not all of the values agree.
pub(super) fn varying(values: &[u64]) -> u64 {
    let Some(&first) = values.first() else {
        return 0;
    };
    values.iter().fold(0, |bits, value| bits | value ^ first)
}

/// As [`varying`], with all threads of the pool.
pub(super) fn varying_in_parallel(values: &[u64]) -> u64 {
    let Some(&first) = values.first() else {
        return 0;
    };
    let chunk_bits = |chunk: &[u64]| varying(chunk) | chunk[0] ^ first;
    let chunks = values.par_chunks(1 << 16).map(chunk_bits);
    chunks.reduce(|| 0, |a, b| a | b)
}

/// Values in buckets by their digits.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    /// The values, bucket after bucket; in each they stand as they came. There may be more behind
    /// the last bucket, without a meaning.
    pub(super) values: Zeroed<u64>,
    /// Where each bucket ends and the next one starts. Some are empty.
    pub(super) ends: Vec<usize>,
}

impl Buckets {
    /// Fills itself anew; memory is used again.
    pub(super) fn partition(&mut self, values: &[u64], digit: Digit) {
        digit.partition(values, &mut self.ends, self.values.room(values.len()));
    }

    /// The same with all threads of the pool. However many there are, the outcome is the same.
    pub(super) fn partition_in_parallel(&mut self, values: &[u64], digit: Digit) {
        // One thread has every bucket to itself.
        if rayon::current_num_threads() == 1 {
            return self.partition(values, digit);
        }
        let chunk_size = values.len().div_ceil(rayon::current_num_threads()).max(1);
        let count = |chunk| {
            let mut counts = Vec::new();
            digit.count(chunk, &mut counts);
            counts
        };
        let counts: Vec<Vec<usize>> = values.par_chunks(chunk_size).map(count).collect();
        let mut end = 0;
        let end_of = |number| {
            end += counts.iter().map(|counts| counts[number]).sum::<usize>();
            end
        };
        self.ends.clear();
        self.ends.extend((0..digit.digits()).map(end_of));
        let parts = parts(self.values.room(values.len()), &counts);
        let chunks = values.par_chunks(chunk_size).zip(parts);
        chunks.for_each(|(chunk, mut places)| scatter(chunk, digit, &mut places));
    }

    /// Only finds the ends, in values that stand in the order of their digits already.
    pub(super) fn ends_of_ordered(values: &[u64], digit: Digit) -> Vec<usize> {
        let end = |number| values.partition_point(|&value| digit.of(value) <= number);
        (0..digit.digits()).map(end).collect()
    }
}

/// The places that chunks with these counts fill: for each chunk a piece of every bucket.
fn parts<'a>(mut values: &'a mut [u64], counts: &[Vec<usize>]) -> Vec<Vec<IterMut<'a, u64>>> {
    let digits = counts.first().map_or(0, Vec::len);
    let mut parts: Vec<Vec<IterMut<'_, u64>>> = Vec::new();
    parts.resize_with(counts.len(), || Vec::with_capacity(digits));
    for digit in 0..digits {
        for (part, counts) in parts.iter_mut().zip(counts) {
            let (piece, rest) = values.split_at_mut(counts[digit]);
            part.push(piece.iter_mut());
            values = rest;
        }
    }
    parts
}

/// Moves each value of a chunk to the next free place of its digit.
fn scatter(chunk: &[u64], digit: Digit, places: &mut [IterMut<'_, u64>]) {
    for &value in chunk {
        if let Some(place) = places[digit.of(value)].next() {
            *place = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(seed: u64, count: usize) -> Vec<u64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..count).map(|_| rng.u64(..) & rng.u64(..)).collect()
    }

    proptest! {
        #[test]
        fn values_stand_in_the_buckets_of_their_digits_as_they_came(
            seed: u64,
            count in 0..20_000_usize,
            mask in 1..u64::MAX,
        ) {
            let values = values(seed, count);
            let digit = Digit::leading(mask, count);
            prop_assert_eq!(digit.mask() & !mask, 0);
            let mut expected = values.clone();
            expected.sort_by_key(|&value| digit.of(value));

            // The earlier content must not matter.
            let mut buckets = Buckets::default();
            buckets.partition(&vec![u64::MAX; count + 1], Digit::leading(3, 3));
            buckets.partition(&values, digit);
            prop_assert_eq!(&buckets.values[..count], &expected);
            let ends = |number| expected.partition_point(|&value| digit.of(value) <= number);
            let expected_ends: Vec<usize> = (0..digit.digits()).map(ends).collect();
            prop_assert_eq!(&buckets.ends, &expected_ends);

            for threads in 1..4 {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                buckets.values.room(count).fill(u64::MAX);
                buckets.ends.fill(0);
                pool.install(|| buckets.partition_in_parallel(&values, digit));
                prop_assert_eq!(&buckets.values[..count], &expected);
                prop_assert_eq!(&buckets.ends, &expected_ends);
            }
            prop_assert_eq!(Buckets::ends_of_ordered(&expected, digit), expected_ends);
            prop_assert_eq!(varying_in_parallel(&values), varying(&values));
        }

        #[test]
        fn equal_bits_have_equal_digits_and_a_gapless_digit_is_its_bits(
            mask in 1..u64::MAX, a: u64, b: u64,
        ) {
            let digit = Digit::leading(mask, usize::MAX);
            prop_assert!(digit.of(a) < digit.digits());
            let same = a & digit.mask() | b & !digit.mask();
            prop_assert_eq!(digit.of(a), digit.of(same));
            let gapless = Digit::of_bits(0x7ff << (a % 54));
            prop_assert!(gapless.keeps_order());
            prop_assert_eq!(gapless.of(b), (b >> (a % 54) & 0x7ff) as usize);
        }
    }

    #[test]
    fn a_digit_is_narrow_only_where_others_follow_it() {
        let bits = |mask, wanted: u32| Digit::leading(mask, 1 << wanted).mask().count_ones();
        let open = |wanted| bits(u64::MAX, wanted);
        assert_eq!([1, 11, 13].map(open), [1, 11, 11]);
        assert_eq!([14, 16, 21, 22, 23].map(open), [10, 10, 10, 11, 10]);
        assert_eq!(bits(0x7ff << 20, 40), 11);
        assert_eq!(bits(0xffff << 20, 40), 10);
    }

    #[test]
    fn leading_bits_are_taken_from_the_top() {
        assert_eq!(leading_bits(0b1011_0100, 3), 0b1011_0000);
        assert_eq!(leading_bits(0b101, 9), 0b101);
        assert_eq!(leading_bits(u64::MAX, 64), u64::MAX);
    }
}
