//! How long texts are.

use std::ops::AddAssign;

/// Bins, of which the last holds everything that is longer.
const BINS: usize = 32;

/// How many texts there are of each length in bytes, in bins that double: up to 1, 2, 4, 8 and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextLengths([u64; BINS]);

impl TextLengths {
    /// Counts a text of this many bytes.
    pub(crate) fn count(&mut self, bytes: usize) {
        let power = bytes.max(1).next_power_of_two().trailing_zeros() as usize;
        self.0[power.min(BINS - 1)] += 1;
    }

    /// The most bytes of a text in each bin, and how many texts are in it: from the first bin with a text to the last.
    #[must_use]
    pub fn bins(self) -> Vec<(u64, u64)> {
        let is_filled = |count: &u64| *count > 0;
        let first = self.0.iter().position(is_filled);
        let last = self.0.iter().rposition(is_filled);
        let (Some(first), Some(last)) = (first, last) else {
            return Vec::new();
        };
        let bins = (first..=last).map(|power| (1 << power, self.0[power]));
        bins.collect()
    }
}

impl AddAssign for TextLengths {
    fn add_assign(&mut self, more: Self) {
        for (count, more) in self.0.iter_mut().zip(more.0) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_in_bins_that_double() {
        let mut lengths = TextLengths::default();
        assert_eq!(lengths.bins(), []);
        for bytes in [2, 3, 4, 5, 33] {
            lengths.count(bytes);
        }
        let mut more = TextLengths::default();
        more.count(1);
        lengths += more;
        let bins = [(1, 1), (2, 1), (4, 2), (8, 1), (16, 0), (32, 0), (64, 1)];
        assert_eq!(lengths.bins(), bins);
    }
}
