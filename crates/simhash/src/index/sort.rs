//! Sorting permuted fingerprints: one scatter by the top bits, then small sorts
//! that stay in the first-level cache.

/// Fewer values than this are sorted at once.
const SMALL: usize = 4096;

/// Bits that the scatter looks at.
const SCATTER_BITS: u32 = 11;

/// Sorts ascending.
pub(super) fn sort(values: &mut Vec<u64>) {
    if values.len() < SMALL {
        return values.sort_unstable();
    }
    let (mut low, mut high) = (u64::MAX, 0);
    for &value in values.iter() {
        low = low.min(value);
        high = high.max(value);
    }
    // Bits that all values share would put everything into one bucket.
    let varying = 64 - (low ^ high).leading_zeros();
    let shift = varying.saturating_sub(SCATTER_BITS);
    let bucket = |value: u64| (value >> shift) as usize & ((1 << SCATTER_BITS) - 1);

    let mut starts = vec![0_usize; (1 << SCATTER_BITS) + 1];
    for &value in values.iter() {
        starts[bucket(value) + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut sorted = vec![0_u64; values.len()];
    let mut next = starts.clone();
    for &value in values.iter() {
        let place = &mut next[bucket(value)];
        sorted[*place] = value;
        *place += 1;
    }
    for pair in starts.windows(2) {
        sorted[pair[0]..pair[1]].sort_unstable();
    }
    *values = sorted;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_come_out_as_the_standard_sort_leaves_them(
            seed: u64,
            count in SMALL..SMALL * 3,
            keep in 0..64_u32,
        ) {
            let mut values: Vec<u64> = (0..count as u64)
                .map(|i| (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> keep | seed << 32)
                .collect();
            let mut expected = values.clone();
            expected.sort_unstable();
            sort(&mut values);
            prop_assert_eq!(values, expected);
        }
    }
}
