//! A sorted run of permuted fingerprints, packed: the leading bits of an entry are
//! those of its bucket, so only the low bytes are stored.
//!
//! ```text
//! heads      ......|........|…            the first 4 of the `width` low bytes of each
//! tails      ......|........|…            the others, none to 4
//! directory  0 | 3 | 3 | 7 | … | n | n    bucket b starts at entry directory[b]
//! ```
//!
//! The three lie behind each other in one buffer, which fills more huge pages than three buffers.
//!
//! The bucket of a value is `(value - base) >> shift`. All values that share a
//! prefix lie in one bucket. At 6 bytes an entry and at least 4.7 entries a
//! bucket, a run takes less than 7 bytes an entry.
//!
//! # Invariants
//! - X1: entries ascend strictly.
//! - X2: `directory[b]` is the number of entries in the buckets before `b`. The
//!   last bucket is empty.
//! - X7: values that share a prefix lie in one bucket.

use std::ops::Range;

use crate::scan::{self, HEAD, LINE, Packed, Zeroed};

/// Most entries of a run: places in it are 32 bits wide.
pub(super) const MAX_RUN: usize = u32::MAX as usize;

/// Entries for ten buckets of the directory, at least, on average.
const TEN_BUCKETS: u64 = 47;

/// Entries of a bucket whose heads take more than two lines.
const LARGE_BUCKET_ENTRIES: usize = 32;

/// Buckets for each query of a search: if there are more, few queries share one.
const MOST_BUCKETS_A_QUERY: usize = 4;

/// If more queries share a bucket, its distance from the one before does not matter: they share its load.
const QUERIES_THAT_SHARE_A_LOAD: usize = 10;

/// Most cache lines of a bucket that are prefetched; the processor itself prefetches the others.
const LINES: usize = 16;

/// Entries that are unpacked, merged or packed together.
const BLOCK: usize = 4096;

/// Entries that are unpacked without checking the end of the bucket. Most buckets have no more, and the padding behind
/// a run covers them.
const UNCHECKED_ENTRIES: usize = 8;

/// An immutable, never empty, sorted run.
#[derive(Debug)]
pub(super) struct Run {
    /// Heads, tails and directory.
    parts: scan::Lines,
    /// Where the tails begin.
    tails: usize,
    /// Where the directory lies.
    directory: Range<usize>,
    base: u64,
    shift: u32,
    width: usize,
    /// Cache lines of an average bucket.
    lines: usize,
}

impl Run {
    /// Packs strictly ascending values of a table whose prefix has `prefix_bits` bits;
    /// `None` if there are none.
    pub(super) fn from_sorted(values: &[u64], prefix_bits: u32) -> Option<Self> {
        let (&first, &last) = (values.first()?, values.last()?);
        let mut packer = Packer::new(values.len(), first, last, prefix_bits);
        packer.extend(values);
        Some(packer.finish())
    }

    /// The run of `values` and those of `self`. No value may be in both.
    pub(super) fn merge(&self, values: &[u64], prefix_bits: u32) -> Self {
        let (mut first, mut last) = self.ends();
        if let (Some(&low), Some(&high)) = (values.first(), values.last()) {
            (first, last) = (first.min(low), last.max(high));
        }
        let mut packer = Packer::new(self.len() + values.len(), first, last, prefix_bits);
        self.merge_blocks(values, |merged| packer.extend(merged));
        packer.finish()
    }

    /// `values` and those of `self`, in ascending blocks. No value may be in both.
    fn merge_blocks(&self, mut values: &[u64], mut block: impl FnMut(&[u64])) {
        let mut merged = Vec::new();
        self.blocks(|own| {
            let Some(&last) = own.last() else { return };
            let before = values.partition_point(|&value| value < last);
            let (now, later) = values.split_at(before);
            values = later;
            merge(own, now, &mut merged);
            block(&merged);
        });
        block(values);
    }

    /// `values` and those of `self`, ascending. No value may be in both.
    pub(super) fn merge_unpacked(&self, values: &[u64]) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.len() + values.len());
        self.merge_blocks(values, |merged| all.extend_from_slice(merged));
        all
    }

    /// The run without the ascending values `gone`, which need not be in it; `None`
    /// if no value is left. `buffer` is for the values that are left.
    pub(super) fn without(
        &self,
        mut gone: &[u64],
        prefix_bits: u32,
        buffer: &mut Zeroed<u64>,
    ) -> Option<Self> {
        let (left, mut len) = (buffer.room(self.len()), 0);
        self.blocks(|own| {
            let (kept, taken) = subtract(own, gone, &mut left[len..]);
            len += kept;
            gone = &gone[taken..];
        });
        Self::from_sorted(&left[..len], prefix_bits)
    }

    pub(super) fn len(&self) -> usize {
        let directory = self.directory();
        directory[directory.len() - 1] as usize
    }

    fn directory_mut(&mut self) -> &mut [u32] {
        bytemuck::cast_slice_mut(&mut self.parts.bytes_mut()[self.directory.clone()])
    }

    fn directory(&self) -> &[u32] {
        bytemuck::cast_slice(&self.parts.bytes()[self.directory.clone()])
    }

    /// Whether sorting the queries by bucket saves time: the buckets are large, and enough queries
    /// share one.
    pub(super) fn wants_order(&self, queries: usize) -> bool {
        let buckets = self.directory().len();
        self.len() > LARGE_BUCKET_ENTRIES * buckets && queries * MOST_BUCKETS_A_QUERY > buckets
    }

    /// Whether many of the queries share a bucket on average.
    pub(super) fn is_shared_by_many(&self, queries: usize) -> bool {
        queries > QUERIES_THAT_SHARE_A_LOAD * self.directory().len()
    }

    /// Bytes of heap memory of the run.
    pub(super) fn memory(&self) -> usize {
        self.parts.memory()
    }

    /// The form that kernels search.
    #[inline]
    pub(super) fn packed(&self) -> Packed<'_> {
        let bytes = self.parts.bytes();
        Packed {
            heads: &bytes[..self.tails],
            tails: &bytes[self.tails..self.directory.start],
            directory: bytemuck::cast_slice(&bytes[self.directory.clone()]),
            base: self.base,
            shift: self.shift,
            width: self.width,
            lines: self.lines,
        }
    }

    /// The smallest and the largest value.
    fn ends(&self) -> (u64, u64) {
        let last_bucket = self.directory().len() - 3;
        (self.value(0, 0), self.value(last_bucket, self.len() - 1))
    }

    #[inline]
    fn value(&self, bucket: usize, place: usize) -> u64 {
        let leading = self.base + ((bucket as u64) << self.shift);
        leading | self.packed().low_bytes(place) & ((1 << self.shift) - 1)
    }

    /// Unpacks all values, in ascending blocks. It unpacks [`UNCHECKED_ENTRIES`] of a bucket before it checks the bucket's size,
    /// as the processor would mispredict that branch. The next bucket overwrites surplus values.
    fn blocks(&self, mut block: impl FnMut(&[u64])) {
        let packed = self.packed();
        let below = (1 << self.shift) - 1;
        let (mut values, mut filled) = ([0; BLOCK + UNCHECKED_ENTRIES], 0);
        // Without the empty last bucket, whose values may not fit 64 bits.
        let directory = packed.directory;
        let buckets = directory[..directory.len() - 1].windows(2);
        for (bucket, ends) in buckets.enumerate() {
            let leading = self.base + ((bucket as u64) << self.shift);
            let (mut place, end) = (ends[0] as usize, ends[1] as usize);
            while place < end {
                for (ahead, value) in values[filled..][..UNCHECKED_ENTRIES].iter_mut().enumerate() {
                    *value = leading | packed.low_bytes(place + ahead) & below;
                }
                let fit = (end - place).min(UNCHECKED_ENTRIES);
                (place, filled) = (place + fit, filled + fit);
                if filled >= BLOCK {
                    block(&values[..filled]);
                    filled = 0;
                }
            }
        }
        block(&values[..filled]);
    }

    /// All values, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let buckets = self.directory().windows(2).enumerate();
        buckets.flat_map(move |(bucket, ends)| {
            (ends[0]..ends[1]).map(move |place| self.value(bucket, place as usize))
        })
    }
}

/// Merges two ascending lists without common values into `merged`.
pub(super) fn merge(a: &[u64], b: &[u64], merged: &mut Vec<u64>) {
    merged.clear();
    merged.reserve(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        // The branch would be unpredictable, so select without one.
        let take_a = a[i] < b[j];
        merged.push(if take_a { a[i] } else { b[j] });
        i += usize::from(take_a);
        j += usize::from(!take_a);
    }
    merged.extend_from_slice(&a[i..]);
    merged.extend_from_slice(&b[j..]);
}

/// Writes the values of `a` that are not in `b`, both ascending, to the front of `left`. Returns how many these are,
/// and how many values of `b` are not above the last of `a`.
fn subtract(a: &[u64], b: &[u64], left: &mut [u64]) -> (usize, usize) {
    let (mut i, mut j, mut len) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        // The branch would be unpredictable, so the value is always written.
        left[len] = a[i];
        len += usize::from(a[i] < b[j]);
        let (own, gone) = (a[i] <= b[j], b[j] <= a[i]);
        i += usize::from(own);
        j += usize::from(gone);
    }
    let rest = &a[i..];
    left[len..len + rest.len()].copy_from_slice(rest);
    (len + rest.len(), j)
}

/// Packs ascending values one by one. Their number, the first and the last are known before.
struct Packer {
    run: Run,
    len: usize,
}

impl Packer {
    fn new(len: usize, first: u64, last: u64, prefix_bits: u32) -> Self {
        assert!((1..=MAX_RUN).contains(&len), "a run of {len} entries");
        let shift = choose_shift(len as u64, last - first, prefix_bits);
        let width = width(shift);
        let base = first >> shift << shift;
        let buckets = ((last - base) >> shift) as usize + 1;
        let tails = ((len + UNCHECKED_ENTRIES) * HEAD).next_multiple_of(LINE);
        let directory =
            tails + ((len + UNCHECKED_ENTRIES) * (width - HEAD) + HEAD).next_multiple_of(LINE);
        let end = directory + (buckets + 2) * size_of::<u32>();
        let run = Run {
            parts: scan::Lines::zeroed(end),
            tails,
            directory: directory..end,
            base,
            shift,
            width,
            lines: (len / buckets * HEAD).div_ceil(LINE).clamp(1, LINES),
        };
        Self { run, len: 0 }
    }

    fn extend(&mut self, values: &[u64]) {
        debug_assert!(values.is_sorted_by(|a, b| a < b), "X1");
        // Each part of a block is written in a loop of its own, over vectors where the compiler can.
        for block in values.chunks(BLOCK) {
            self.extend_heads(block);
            match self.run.width - HEAD {
                0 => {}
                1 => self.extend_tails::<1>(block),
                2 => self.extend_tails::<2>(block),
                3 => self.extend_tails::<3>(block),
                _ => self.extend_tails::<4>(block),
            }
            self.extend_directory(block);
        }
    }

    fn extend_heads(&mut self, values: &[u64]) {
        let tail_bits = 8 * (self.run.width - HEAD);
        let heads = &mut self.run.parts.bytes_mut()[self.len * HEAD..];
        for (head, value) in heads.chunks_exact_mut(HEAD).zip(values) {
            head.copy_from_slice(&((value >> tail_bits) as u32).to_le_bytes());
        }
    }

    fn extend_tails<const TAIL: usize>(&mut self, values: &[u64]) {
        let tails = self.run.tails + self.len * TAIL;
        let tails = &mut self.run.parts.bytes_mut()[tails..];
        for (tail, value) in tails.chunks_exact_mut(TAIL).zip(values) {
            tail.copy_from_slice(&value.to_le_bytes()[..TAIL]);
        }
    }

    fn extend_directory(&mut self, values: &[u64]) {
        let Run { base, shift, .. } = self.run;
        let directory = self.run.directory_mut();
        for value in values {
            self.len += 1;
            // The bucket ends here, unless more of its values follow.
            directory[((value - base) >> shift) as usize + 1] = self.len as u32;
        }
    }

    fn finish(mut self) -> Run {
        // Empty buckets end where the one before does.
        let mut before = 0;
        for end in self.run.directory_mut() {
            before = before.max(*end);
            *end = before;
        }
        debug_assert_eq!(before as usize, self.len, "X2");
        self.run
    }
}

/// Bytes of an entry without the bits of its bucket, of which `shift` are left.
fn width(shift: u32) -> usize {
    HEAD.max(shift.div_ceil(8) as usize)
}

/// The binary logarithm of the values in a bucket, for `len` values over `span`.
///
/// The narrowest width within the wanted number of buckets, or a narrower one if it
/// saves as much by one byte less an entry. Never narrower than a prefix.
fn choose_shift(len: u64, span: u64, prefix_bits: u32) -> u32 {
    let buckets = (len * 10 / TEN_BUCKETS).max(1);
    let least = 64 - prefix_bits;
    let shift = (64 - (span / buckets).leading_zeros()).clamp(least, 63);
    let less = shift.saturating_sub(1) / 8 * 8;
    let bytes = |shift: u32| len * width(shift) as u64 + 4 * (span >> shift);
    if less >= least.max(8 * HEAD as u32) && bytes(less) <= bytes(shift) {
        return less;
    }
    shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpacked(run: &Run) -> Vec<u64> {
        run.iter().collect()
    }

    proptest! {
        /// X1, X2 and X7, as they are stated.
        #[test]
        fn a_run_holds_its_values_by_bucket(
            mut values in prop_oneof![
                prop::collection::vec(any::<u64>(), 1..500),
                prop::collection::vec(0..3_u64, 1..3),
                prop::collection::vec(u64::MAX - 2..=u64::MAX, 1..3),
            ],
            squeeze in 0..64_u32,
            prefix_bits in 1..=64_u32,
            other: u64,
        ) {
            for value in &mut values {
                *value = value.rotate_left(squeeze) >> squeeze;
            }
            values.extend([0, u64::MAX].iter().filter(|_| squeeze % 3 == 0));
            values.sort_unstable();
            values.dedup();
            let run = Run::from_sorted(&values, prefix_bits).unwrap();
            prop_assert_eq!(unpacked(&run), &values[..], "X1");
            prop_assert_eq!(run.ends(), (values[0], *values.last().unwrap()));
            let packed = run.packed();
            for (bucket, &before) in run.directory().iter().enumerate() {
                let in_earlier = |value: &&u64| (packed.bucket(**value) as usize) < bucket;
                prop_assert_eq!(before as usize, values.iter().filter(in_earlier).count(), "X2");
            }
            let suffix = (u128::from(u64::MAX) >> prefix_bits) as u64;
            for &value in values.iter().chain(&[other]) {
                let prefix = value & !suffix;
                let bucket = packed.bucket(prefix);
                prop_assert_eq!(bucket, packed.bucket(prefix | suffix), "X7");
            }
            if !(values[0]..=*values.last().unwrap()).contains(&other) {
                let places = packed.places(packed.bucket(other));
                let all = [values[0], *values.last().unwrap()];
                let near = all.iter().any(|&v| packed.bucket(v) == packed.bucket(other));
                prop_assert!(near || places.start == places.end);
            }
        }

        #[test]
        fn merging_and_subtracting_are_set_operations(
            a in prop::collection::btree_set(0..200_u64, 1..100),
            b in prop::collection::btree_set(0..200_u64, 0..100),
            scale in 0..56_u32,
        ) {
            let only_b: Vec<u64> = b.difference(&a).map(|value| value << scale).collect();
            let a: Vec<u64> = a.into_iter().map(|value| value << scale).collect();
            let run = Run::from_sorted(&a, 26).unwrap();
            let union = run.merge(&only_b, 26);
            prop_assert_eq!(union.len(), a.len() + only_b.len());
            prop_assert_eq!(unpacked(&union), run.merge_unpacked(&only_b));
            prop_assert!(unpacked(&union).is_sorted_by(|x, y| x < y));
            let rest = union.without(&only_b, 26, &mut Zeroed::default()).unwrap();
            prop_assert_eq!(unpacked(&rest), &a[..]);
            prop_assert!(rest.without(&a, 26, &mut Zeroed::default()).is_none());
        }
    }

    /// Blocks end anywhere in a bucket. The merged or subtracted values lie before,
    /// among and behind them.
    #[test]
    fn runs_longer_than_a_block_are_merged_and_subtracted_whole() {
        let values =
            |step: u64, count: u64| (0..count).map(|i| (i * step) << 30).collect::<Vec<_>>();
        let even = values(2, 3 * BLOCK as u64 + 5);
        let odd: Vec<u64> = values(6, BLOCK as u64 * 2)
            .iter()
            .map(|v| v + (1 << 30))
            .collect();
        let run = Run::from_sorted(&even, 20).unwrap();
        let all = run.merge(&odd, 20);
        let mut expected = [&even[..], &odd].concat();
        expected.sort_unstable();
        assert_eq!(unpacked(&all), expected);
        assert_eq!(
            unpacked(&all.without(&odd, 20, &mut Zeroed::default()).unwrap()),
            even
        );
    }

    #[test]
    fn an_entry_takes_less_than_seven_bytes() {
        for count in [300_000_u64, 1_000_000] {
            let spread = u64::MAX / count;
            let values: Vec<u64> = (0..count).map(|i| i * spread).collect();
            let run = Run::from_sorted(&values, 25).unwrap();
            assert!(run.memory() < count as usize * 7, "{}", run.memory());
        }
    }
}
