//! Sums over runs of the blocks of a page.

use std::ops::Range;

/// The sum of some value of all blocks before each, and of all.
pub(super) struct Sums(Vec<u64>);

impl Sums {
    pub(super) fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut all = 0;
        let mut before = vec![0];
        before.extend(values.map(|value| {
            all += value;
            all
        }));
        Self(before)
    }

    pub(super) fn all(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    pub(super) fn within(&self, blocks: &Range<usize>) -> u64 {
        self.0[blocks.end] - self.0[blocks.start]
    }
}
