//! Sorting by counting: values go into buckets in one pass that counts and one that puts each where
//! the next of its bucket belongs. Those of one bucket keep their order.
//!
//! ```text
//! values     c a c a a     buckets a, b and c
//! counts     3 | 0 | 2     count:      how many values each bucket has
//! starts     0 | 3 | 3     to_starts:  where the first one goes, and then the next
//! ends       3 | 3 | 5     scatter:    which leaves where each bucket ends
//! sorted     a a a c c
//! ```
//!
//! Each pass takes the buckets as they are computed, so callers fuse it with what makes the values.

use std::ops::AddAssign;

/// A count or a place. Smaller ones leave more of the cache to the values.
pub(crate) trait Number: Copy + Default + From<bool> + AddAssign {
    /// As a place in a slice.
    fn place(self) -> usize;
}

impl Number for u32 {
    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

impl Number for usize {
    #[inline(always)]
    fn place(self) -> usize {
        self
    }
}

/// Adds to the counts one for each value, given by its bucket.
#[inline(always)]
pub(crate) fn count<N: Number>(counts: &mut [N], buckets: impl Iterator<Item = usize>) {
    buckets.for_each(|bucket| counts[bucket] += N::from(true));
}

/// Turns counts into where each bucket starts, and says how many values there are.
pub(crate) fn to_starts<N: Number>(counts: &mut [N]) -> N {
    let mut start = N::default();
    for count in counts {
        start += std::mem::replace(count, start);
    }
    start
}

/// Puts values, each with its bucket, to the next free places. Starts become ends.
#[inline(always)]
pub(crate) fn scatter<N: Number, T>(
    starts: &mut [N],
    values: impl Iterator<Item = (usize, T)>,
    target: &mut [T],
) {
    values.for_each(|(bucket, value)| {
        let place = &mut starts[bucket];
        target[place.place()] = value;
        *place += N::from(true);
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_stand_by_bucket_in_the_order_in_which_they_came(
            buckets in prop::collection::vec(0..9_usize, 0..100),
        ) {
            let values = || buckets.iter().copied().zip(0..);
            let mut ends = vec![0; 9];
            count(&mut ends, buckets.iter().copied());
            prop_assert_eq!(to_starts(&mut ends), buckets.len());
            let mut sorted = vec![0; buckets.len()];
            scatter(&mut ends, values(), &mut sorted);

            let mut expected: Vec<(usize, i32)> = values().collect();
            expected.sort_unstable();
            let end = |number| expected.partition_point(|&(bucket, _)| bucket <= number);
            prop_assert_eq!(ends, (0..9).map(end).collect::<Vec<_>>());
            let expected: Vec<i32> = expected.into_iter().map(|(_, value)| value).collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
