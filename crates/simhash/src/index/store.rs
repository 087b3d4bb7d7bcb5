//! The content of one table: sorted runs whose sizes grow geometrically.
//!
//! # Invariants
//! - X3: no value is in two runs.
//! - X4: each run is more than [`GROWTH`] times the one after it, unless both
//!   together were longer than a run may be.

use std::borrow::Cow;

use super::run::{MAX_RUN, Run};
use crate::scan::Zeroed;

/// A run that is not this many times larger than the next is merged with it.
const GROWTH: usize = 4;

/// The permuted fingerprints of one table, but for recent ones.
#[derive(Debug)]
pub(super) struct Store {
    runs: Vec<Run>,
    prefix_bits: u32,
}

impl Store {
    /// An empty store, for a table whose prefix has `prefix_bits` bits.
    pub(super) const fn new(prefix_bits: u32) -> Self {
        Self {
            runs: Vec::new(),
            prefix_bits,
        }
    }

    /// The runs, the largest first.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Adds ascending values, none of which is present.
    pub(super) fn insert(&mut self, values: &[u64]) {
        if values.len() > MAX_RUN {
            let chunks = values.chunks(MAX_RUN);
            return chunks.for_each(|chunk| self.insert(chunk));
        }
        let mut values = Cow::Borrowed(values);
        let merged = self.merged_with(values.len());
        for place in (merged..self.runs.len()).rev() {
            let run = self.runs.remove(place);
            if place == merged {
                return self.runs.push(run.merge(&values, self.prefix_bits));
            }
            values = run.merge_unpacked(&values).into();
        }
        self.runs
            .extend(Run::from_sorted(&values, self.prefix_bits));
    }

    /// The first of the runs that `len` new values are merged with.
    fn merged_with(&self, mut len: usize) -> usize {
        let mut merged = self.runs.len();
        for run in self.runs.iter().rev() {
            let fits = run.len() + len <= MAX_RUN;
            if run.len() > len * GROWTH || !fits {
                break;
            }
            len += run.len();
            merged -= 1;
        }
        merged
    }

    /// Takes out ascending values, whether present or not; `buffer` holds what is left meanwhile.
    pub(super) fn remove(&mut self, gone: &[u64], buffer: &mut Zeroed<u64>) {
        for run in std::mem::take(&mut self.runs) {
            let Some(left) = run.without(gone, self.prefix_bits, buffer) else {
                continue;
            };
            drop(run);
            // It may have become too short for its place.
            if self.merged_with(left.len()) == self.runs.len() {
                self.runs.push(left);
            } else {
                self.insert(&left.merge_unpacked(&[]));
            }
        }
    }

    /// Bytes of memory behind the table.
    pub(super) fn memory(&self) -> usize {
        self.runs.iter().map(Run::memory).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn value(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn sorted(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut values: Vec<u64> = numbers.map(value).collect();
        values.sort_unstable();
        values
    }

    /// X3 and X4, and that the store holds exactly these.
    fn check(store: &Store, expected: &BTreeSet<u64>) {
        let sizes: Vec<usize> = store.runs.iter().map(Run::len).collect();
        let grows = |pair: &[usize]| pair[0] > pair[1] * GROWTH;
        assert!(sizes.windows(2).all(grows), "X4: {sizes:?}");
        let all: Vec<u64> = store.runs.iter().flat_map(Run::iter).collect();
        assert_eq!(all.len(), expected.len(), "X3: a value is in two runs");
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), *expected);
    }

    #[test]
    fn any_sizes_of_inserts_and_removals_leave_few_runs() {
        let mut store = Store::new(26);
        let mut expected = BTreeSet::new();
        let mut next = 0;
        for round in 0..200_u64 {
            let count = [1, 3, 700, 1_500, 20, 9_000][round as usize % 6];
            let values = sorted(next..next + count);
            next += count;
            expected.extend(&values);
            store.insert(&values);
            if round % 7 == 6 {
                let gone = sorted((0..next).filter(|number| number % 50 == round % 50));
                store.remove(&gone, &mut Zeroed::default());
                expected.retain(|value| gone.binary_search(value).is_err());
            }
            if round % 11 == 0 {
                check(&store, &expected);
            }
        }
        check(&store, &expected);
        assert!(expected.len() > 50_000);
    }

    #[test]
    fn a_run_that_shrinks_below_the_next_is_merged_with_it() {
        let mut store = Store::new(26);
        let large = sorted(0..10_000);
        store.insert(&large);
        store.insert(&sorted(10_000..12_000));
        assert_eq!(store.runs.len(), 2);
        store.remove(&large[10..], &mut Zeroed::default());
        let mut expected: BTreeSet<u64> = large[..10].iter().copied().collect();
        expected.extend(sorted(10_000..12_000));
        check(&store, &expected);
    }

    #[test]
    fn many_single_inserts_leave_few_runs() {
        let mut store = Store::new(26);
        for number in 0..20_000 {
            store.insert(&[value(number)]);
        }
        check(&store, &(0..20_000).map(value).collect());
    }
}
