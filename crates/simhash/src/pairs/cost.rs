//! The cost of a way of joining, to choose the cheapest.
//!
//! The model is of fingerprints that are spread evenly over the bits in which they vary. With `m`
//! blocks of `w` bits and distance `k`, there are C(d + k, k) paths of `d` blocks. Each parts all
//! `n` fingerprints once more, and a bucket holds `n / 2^(w d)` of them. A join goes on until
//! buckets are small or `m - k` blocks agree, and then compares what is in each. The constants are
//! those of one processor with AVX-512. They are the same everywhere, as the order of pairs must
//! not depend on the machine.

use crate::layout::{Layout, LayoutError, MAX_BLOCKS};
use crate::scan::SMALL_BUCKET;

/// Nanoseconds to part one fingerprint by a digit.
const PARTITION: f64 = 2.0;

/// Nanoseconds for one fingerprint of a bucket that is compared, whatever the size.
const COMPARE: f64 = 1.0;

/// Nanoseconds for two fingerprints that are compared.
const PAIR: f64 = 0.08;

/// Bits of a block that one partition can use.
const DIGIT_BITS: f64 = 11.0;

/// More blocks than the least by this number are not tried: they never pay.
const MORE_BLOCKS: u32 = 6;

/// The layout to join `count` fingerprints with, of those with this distance.
///
/// # Errors
/// If there is none.
pub(super) fn best_layout(count: usize, distance: u32) -> Result<Layout, LayoutError> {
    let least = Layout::new(distance.saturating_add(1).min(MAX_BLOCKS), distance)?;
    let cost = |layout: &Layout| join(count, 64, layout.blocks(), distance);
    let layouts = candidates(64, distance).filter_map(|blocks| Layout::new(blocks, distance).ok());
    let best = layouts.min_by(|a, b| cost(a).total_cmp(&cost(b)));
    Ok(best.unwrap_or(least))
}

/// Into how many blocks to cut `bits` open bits of `count` fingerprints; `None` if comparing each
/// with each costs no more.
pub(super) fn best_blocks(count: usize, bits: u32, distance: u32) -> Option<u32> {
    let cost = |&blocks: &u32| join(count, bits, blocks, distance);
    let best = candidates(bits, distance).min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    (cost(&best) < compare(count as f64, count as f64)).then_some(best)
}

fn candidates(bits: u32, distance: u32) -> impl Iterator<Item = u32> {
    distance + 1
        ..=bits
            .min(MAX_BLOCKS)
            .min(distance.saturating_add(MORE_BLOCKS))
}

/// Nanoseconds to join `count` fingerprints by `blocks` blocks of `bits` bits in all.
fn join(count: usize, bits: u32, blocks: u32, distance: u32) -> f64 {
    let count = count as f64;
    let width = f64::from(bits) / f64::from(blocks);
    let mut bucket = count;
    let mut paths = 1.0;
    let mut cost = 0.0;
    for agreeing in 1..=blocks - distance {
        paths *= f64::from(agreeing + distance) / f64::from(agreeing);
        // A block that is wider than the bucket needs is not used up.
        let used = width.min((bucket / SMALL_BUCKET as f64).log2().max(0.0) + 3.0);
        cost += paths * count * PARTITION * (used / DIGIT_BITS).ceil();
        bucket /= used.exp2();
        if bucket <= SMALL_BUCKET as f64 {
            break;
        }
    }
    cost + paths * compare(count, bucket)
}

/// Nanoseconds to compare `count` fingerprints in buckets of this size.
fn compare(count: f64, bucket: f64) -> f64 {
    count * (COMPARE + bucket / 2.0 * PAIR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_sets_get_more_blocks() {
        let blocks = |count| best_layout(count, 3).unwrap().blocks();
        assert_eq!(blocks(0), 4);
        assert_eq!(blocks(1_000_000), 4);
        assert!(blocks(100_000_000) > 4);
    }

    #[test]
    fn there_is_a_layout_for_every_distance_below_64() {
        for distance in 0..64 {
            for count in [0, 1, 1_000, 1_000_000, usize::MAX] {
                assert_eq!(best_layout(count, distance).unwrap().distance(), distance);
            }
        }
        for distance in [64, u32::MAX] {
            let error = LayoutError::TooFar { distance };
            assert_eq!(best_layout(9, distance), Err(error));
        }
    }

    #[test]
    fn little_is_gained_by_cutting_few_bits() {
        assert_eq!(best_blocks(100, 40, 3), None);
        assert_eq!(best_blocks(100_000, 17, 7), None);
        assert_eq!(best_blocks(1_000, 3, 3), None);
        assert!(best_blocks(100_000, 24, 3).is_some());
        assert_eq!(best_blocks(usize::MAX, 0, 0), None);
    }
}
