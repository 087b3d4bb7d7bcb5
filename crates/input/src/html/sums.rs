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

    /// The sum over the blocks that are marked.
    pub(super) fn marked(&self, marks: &[bool]) -> u64 {
        let values = self.0.windows(2).map(|sums| sums[1] - sums[0]);
        let marked = values.zip(marks).filter(|(_, is_marked)| **is_marked);
        marked.map(|(value, _)| value).sum()
    }
}

/// Whether two runs of blocks have none in common.
pub(super) fn are_apart(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.end <= other.start || one.start >= other.end
}
