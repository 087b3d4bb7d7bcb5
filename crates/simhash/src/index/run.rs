//! A sorted run of permuted fingerprints under a directory on their top bits.
//!
//! ```text
//! directory  0 | 3 | 3 | 7 | …     bucket b starts at entries[directory[b]]
//! entries    ...|........|…        sorted, bucket = (entry - base) >> shift
//! ```
//!
//! # Invariants
//! - X1: entries ascend strictly.
//! - X2: `directory[b]` is the number of entries in the buckets before `b`; it
//!   has one element more than there are buckets.

use std::ops::{Range, RangeInclusive};

use crate::scan::prefetch;

/// Most entries of a run: places in it are 32 bits wide.
pub(super) const MAX_RUN: usize = u32::MAX as usize;

/// Entries for each bucket of the directory, at least, on average.
const BUCKET: usize = 4;

/// Longer stretches of entries are narrowed by bisection before they are read.
const LINEAR: usize = 32;

/// An immutable, never empty, sorted run.
#[derive(Debug)]
pub(super) struct Run {
    entries: Vec<u64>,
    directory: Vec<u32>,
    base: u64,
    shift: u32,
}

impl Run {
    /// Puts a directory over strictly ascending entries; `None` if there are none.
    pub(super) fn from_sorted(mut entries: Vec<u64>) -> Option<Self> {
        entries.shrink_to_fit();
        let (&first, &last) = (entries.first()?, entries.last()?);
        debug_assert!(entries.is_sorted_by(|a, b| a < b), "X1");
        debug_assert!(entries.len() <= MAX_RUN);
        let buckets = (entries.len() / BUCKET).max(1) as u64;
        // The smallest shift that leaves no more buckets than asked for; one
        // more may be needed, as the base is rounded down.
        let shift = (64 - ((last - first) / buckets).leading_zeros()).min(63);
        let base = first >> shift << shift;
        let directory = directory(&entries, base, shift);
        Some(Self {
            entries,
            directory,
            base,
            shift,
        })
    }

    pub(super) fn entries(&self) -> &[u64] {
        &self.entries
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of memory behind the run.
    pub(super) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<u64>() + self.directory.capacity() * size_of::<u32>()
    }

    /// The buckets that hold all entries in a range of permuted values.
    #[inline]
    pub(super) fn buckets(&self, values: &RangeInclusive<u64>) -> Range<u32> {
        if *values.end() < self.base {
            return 0..0;
        }
        let count = self.directory.len() as u64 - 1;
        let first = values.start().saturating_sub(self.base) >> self.shift;
        let last = (values.end() - self.base) >> self.shift;
        // Both fit: there are at most `MAX_RUN / BUCKET + 2` buckets.
        first.min(count) as u32..last.min(count - 1) as u32 + 1
    }

    /// Starts to load the directory for these buckets.
    #[inline]
    pub(super) fn prefetch_directory(&self, buckets: &Range<u32>) {
        prefetch(&self.directory, buckets.start as usize);
    }

    /// The places of the entries in these buckets, whose loading starts.
    #[inline]
    pub(super) fn places(&self, buckets: &Range<u32>) -> Range<u32> {
        let start = self.directory[buckets.start as usize];
        let end = self.directory[buckets.end as usize];
        // Most buckets lie on one or two cache lines.
        prefetch(&self.entries, start as usize);
        prefetch(&self.entries, (end as usize).saturating_sub(1));
        start..end
    }

    /// The entries at these places, fewer where many are outside `values`.
    #[inline]
    pub(super) fn candidates(&self, places: Range<u32>, values: &RangeInclusive<u64>) -> &[u64] {
        let entries = &self.entries[places.start as usize..places.end as usize];
        if entries.len() <= LINEAR {
            return entries;
        }
        narrow(entries, values)
    }

    /// The entries that are in the run and not in `gone`, both ascending.
    pub(super) fn without(self, gone: &[u64]) -> Vec<u64> {
        let mut gone = gone.iter().copied().peekable();
        let mut entries = self.entries;
        entries.retain(|&entry| {
            while gone.next_if(|&value| value < entry).is_some() {}
            gone.peek() != Some(&entry)
        });
        entries
    }
}

/// The part of ascending `entries` inside `values`.
pub(super) fn narrow<'a>(entries: &'a [u64], values: &RangeInclusive<u64>) -> &'a [u64] {
    let start = entries.partition_point(|entry| entry < values.start());
    let entries = &entries[start..];
    let end = entries.partition_point(|entry| entry <= values.end());
    &entries[..end]
}

fn directory(entries: &[u64], base: u64, shift: u32) -> Vec<u32> {
    let bucket = |entry: u64| ((entry - base) >> shift) as usize;
    let buckets = entries.last().map_or(0, |&last| bucket(last) + 1);
    let mut directory = vec![0; buckets + 1];
    for &entry in entries {
        directory[bucket(entry) + 1] += 1;
    }
    let mut before = 0;
    for start in &mut directory {
        before += *start;
        *start = before;
    }
    directory
}

/// One ascending run of two that share nothing.
pub(super) fn merge(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        // Which comes first is a coin toss: select without branching.
        let take_a = a[i] < b[j];
        merged.push(if take_a { a[i] } else { b[j] });
        i += usize::from(take_a);
        j += usize::from(!take_a);
    }
    merged.extend_from_slice(&a[i..]);
    merged.extend_from_slice(&b[j..]);
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(run: &Run, values: &RangeInclusive<u64>) -> Vec<u64> {
        let buckets = run.buckets(values);
        let places = run.places(&buckets);
        narrow(run.candidates(places, values), values).to_vec()
    }

    proptest! {
        /// X2: by its effect, and as it is stated.
        #[test]
        fn a_range_of_values_is_found_whole(
            mut entries in prop_oneof![
                prop::collection::vec(any::<u64>(), 1..500),
                prop::collection::vec(0..3_u64, 1..3),
                prop::collection::vec(u64::MAX - 2..=u64::MAX, 1..3),
            ],
            squeeze in 0..64_u32,
            a: u64,
            b: u64,
        ) {
            for entry in &mut entries {
                *entry = entry.rotate_left(squeeze) >> squeeze;
            }
            entries.extend([0, u64::MAX].iter().filter(|_| squeeze % 3 == 0));
            entries.sort_unstable();
            entries.dedup();
            let run = Run::from_sorted(entries.clone()).unwrap();
            for (bucket, &before) in run.directory.iter().enumerate() {
                let in_earlier = |entry: &&u64| ((**entry - run.base) >> run.shift) < bucket as u64;
                prop_assert_eq!(before as usize, entries.iter().filter(in_earlier).count());
            }
            let near = entries[a as usize % entries.len()];
            for values in [a.min(b)..=a.max(b), near..=near.saturating_add(b >> squeeze), 0..=near, near..=u64::MAX, 0..=u64::MAX] {
                prop_assert_eq!(found(&run, &values), narrow(&entries, &values));
            }
        }

        #[test]
        fn merging_and_subtracting_are_set_operations(
            a in prop::collection::btree_set(0..200_u64, 1..100),
            b in prop::collection::btree_set(0..200_u64, 0..100),
        ) {
            let only_b: Vec<u64> = b.difference(&a).copied().collect();
            let a: Vec<u64> = a.into_iter().collect();
            let union = merge(&a, &only_b);
            prop_assert!(union.is_sorted_by(|x, y| x < y));
            prop_assert_eq!(union.len(), a.len() + only_b.len());
            let rest = Run::from_sorted(union).unwrap().without(&only_b);
            prop_assert_eq!(rest, a);
        }
    }

    #[test]
    fn directories_stay_below_a_byte_and_a_half_an_entry() {
        let entries: Vec<u64> = (0..100_000).map(|i| i << 40 | i).collect();
        let run = Run::from_sorted(entries).unwrap();
        assert!(run.memory() < 100_000 * 19 / 2, "{}", run.memory());
    }
}
