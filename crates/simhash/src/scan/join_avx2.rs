//! The steps of a join with AVX2, BMI and POPCNT: the scalar code, compiled for them. Counting the
//! bits of four lanes by table look-ups is no faster than counting them one by one.

#![allow(unsafe_code, reason = "calls code compiled for other instructions")]

use std::ops::Range;

use super::join::{Rule, scalar};
use crate::pairs::Pair;

pub(super) fn close_buckets(
    values: &[u64],
    start: usize,
    ends: &[usize],
    distance: u32,
    close: &mut Vec<usize>,
) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn compiled(v: &[u64], start: usize, ends: &[usize], distance: u32, close: &mut Vec<usize>) {
        scalar::close_buckets(v, start, ends, distance, close);
    }
    // SAFETY: whoever names the level `Avx2` has seen that the processor has these instructions.
    unsafe { compiled(values, start, ends, distance, close) }
}

pub(super) fn join_rows(
    bucket: &[u64],
    rows: Range<usize>,
    rule: &Rule,
    limit: usize,
    pairs: &mut Vec<Pair>,
) -> usize {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn compiled(
        b: &[u64],
        rows: Range<usize>,
        rule: &Rule,
        limit: usize,
        pairs: &mut Vec<Pair>,
    ) -> usize {
        scalar::join_rows(b, rows, rule, limit, pairs)
    }
    // SAFETY: as above.
    unsafe { compiled(bucket, rows, rule, limit, pairs) }
}

pub(super) fn take_near(value: u64, distance: u32, rest: &mut Vec<u64>, near: &mut Vec<u64>) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn compiled(value: u64, distance: u32, rest: &mut Vec<u64>, near: &mut Vec<u64>) {
        scalar::take_near(value, distance, rest, near);
    }
    // SAFETY: as above.
    unsafe { compiled(value, distance, rest, near) }
}
