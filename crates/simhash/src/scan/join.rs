//! Finding the close pairs inside buckets of fingerprints.
//!
//! Three steps that a join is made of. [`close_buckets`] says which of many small buckets may hold
//! a close pair. Nearly none do where fingerprints are spread, so this is the one that must be
//! fast. [`join_rows`] lists the pairs of one bucket. [`take_near`] moves all that is near one
//! fingerprint from one list to another, which is a step of a search through a component.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use std::ops::Range;

use super::Level;
#[cfg(target_arch = "x86_64")]
use super::{join_avx2, join_avx512};
use crate::Fingerprint;
use crate::pairs::Pair;

/// Most fingerprints in a bucket that [`close_buckets`] looks into.
pub(crate) const SMALL_BUCKET: usize = 64;

/// Which pairs a join reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Most bits that differ.
    pub(crate) distance: u32,
    /// Bits in which both agree.
    pub(crate) agree: u64,
    /// Both differ in at least one bit of each of these.
    pub(crate) differ: Vec<u64>,
}

impl Rule {
    /// Whether fingerprints with this exclusive or make a pair.
    #[inline]
    pub(crate) fn accepts(&self, difference: u64) -> bool {
        difference.count_ones() <= self.distance
            && difference & self.agree == 0
            && self.differ.iter().all(|&block| difference & block != 0)
    }
}

/// Adds to `close` the numbers of the buckets that may hold two fingerprints within `distance`.
/// None that does is left out; a few that do not may be added. Bucket `i` ends before `ends[i]`
/// and starts where the one before ends, the first at `start`. Each holds at most
/// [`SMALL_BUCKET`] different fingerprints.
pub(crate) fn close_buckets(
    level: Level,
    values: &[u64],
    start: usize,
    ends: &[usize],
    distance: u32,
    close: &mut Vec<usize>,
) {
    debug_assert!(
        std::iter::once(&start)
            .chain(ends)
            .zip(ends)
            .all(|(from, end)| end - from <= SMALL_BUCKET),
        "a larger bucket would not be looked at whole"
    );
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) => unsafe {
            join_avx512::vpopcnt::close_buckets(values, start, ends, distance, close);
        },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe {
            join_avx512::avx512::close_buckets(values, start, ends, distance, close);
        },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { join_avx2::close_buckets(values, start, ends, distance, close) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => close_buckets_scalar(values, start, ends, distance, close),
        Level::Scalar => close_buckets_scalar(values, start, ends, distance, close),
    }
}

/// Adds to `pairs` those of each of these rows of `bucket` with the rows after it, to the bucket's
/// end, until there are `limit` pairs or more. Returns the row to go on with. A row is never cut,
/// so there may be as many pairs more than `limit` as the bucket has rows.
pub(crate) fn join_rows(
    level: Level,
    bucket: &[u64],
    rows: Range<usize>,
    rule: &Rule,
    limit: usize,
    pairs: &mut Vec<Pair>,
) -> usize {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) => unsafe {
            join_avx512::vpopcnt::join_rows(bucket, rows, rule, limit, pairs)
        },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe {
            join_avx512::avx512::join_rows(bucket, rows, rule, limit, pairs)
        },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { join_avx2::join_rows(bucket, rows, rule, limit, pairs) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => join_rows_scalar(bucket, rows, rule, limit, pairs),
        Level::Scalar => join_rows_scalar(bucket, rows, rule, limit, pairs),
    }
}

/// Moves those of `rest` that are within `distance` of `value` to the end of `near`. The others
/// keep their order, and so do those that are moved.
pub(crate) fn take_near(
    level: Level,
    value: u64,
    distance: u32,
    rest: &mut Vec<u64>,
    near: &mut Vec<u64>,
) {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) => unsafe {
            join_avx512::vpopcnt::take_near(value, distance, rest, near);
        },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { join_avx512::avx512::take_near(value, distance, rest, near) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { join_avx2::take_near(value, distance, rest, near) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => take_near_scalar(value, distance, rest, near),
        Level::Scalar => take_near_scalar(value, distance, rest, near),
    }
}

#[inline(always)]
pub(super) fn close_buckets_scalar(
    values: &[u64],
    mut start: usize,
    ends: &[usize],
    distance: u32,
    close: &mut Vec<usize>,
) {
    for (number, &end) in ends.iter().enumerate() {
        if is_close(&values[start..end], distance) {
            close.push(number);
        }
        start = end;
    }
}

#[inline(always)]
pub(super) fn is_close(bucket: &[u64], distance: u32) -> bool {
    let mut close = false;
    for (row, &value) in bucket.iter().enumerate() {
        for &other in &bucket[row + 1..] {
            close |= (value ^ other).count_ones() <= distance;
        }
    }
    close
}

#[inline(always)]
pub(super) fn join_rows_scalar(
    bucket: &[u64],
    rows: Range<usize>,
    rule: &Rule,
    limit: usize,
    pairs: &mut Vec<Pair>,
) -> usize {
    let end = rows.end;
    for row in rows {
        if pairs.len() >= limit {
            return row;
        }
        let value = bucket[row];
        for &other in &bucket[row + 1..] {
            if rule.accepts(value ^ other) {
                pairs.push(Pair::new(Fingerprint(value), Fingerprint(other)));
            }
        }
    }
    end
}

#[inline(always)]
pub(super) fn take_near_scalar(
    value: u64,
    distance: u32,
    rest: &mut Vec<u64>,
    near: &mut Vec<u64>,
) {
    rest.retain(|&other| {
        let is_near = (value ^ other).count_ones() <= distance;
        if is_near {
            near.push(other);
        }
        !is_near
    });
}

#[cfg(test)]
mod tests;
