//! The steps of a join with AVX2: eight fingerprints are compared at once, by 32 bits each.
//!
//! The *fold* of a fingerprint is the exclusive or of its halves. Each bit in which two fingerprints differ changes one
//! bit of the difference of their folds. So the folds of near fingerprints are near, and few others' are. What looks
//! near is compared whole.
//!
//! Whether at most k bits differ needs no count of them: then clearing the lowest one k times leaves none.

#![allow(unsafe_code, reason = "vectors are loaded from raw pointers")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_castps_si256, _mm256_castsi256_ps,
    _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_ps,
    _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_ps, _mm256_storeu_si256, _mm256_xor_si256,
};
use std::ops::Range;

use super::join::{
    Rule, SMALL_BUCKET, close_buckets_scalar, is_close, join_rows_scalar, take_near_scalar,
};
use crate::Fingerprint;
use crate::pairs::Pair;

/// Fingerprints whose folds fill a vector.
const LANES: usize = 8;

/// Folds of a bucket.
type Folds = [__m256i; SMALL_BUCKET / LANES];

/// Runs a step for a distance known when it was compiled; of larger ones `$scalar` is as fast.
macro_rules! by_distance {
    ($distance:expr, $step:ident($($argument:expr),*), $scalar:expr) => {
        match $distance {
            0 => $step::<0>($($argument),*),
            1 => $step::<1>($($argument),*),
            2 => $step::<2>($($argument),*),
            3 => $step::<3>($($argument),*),
            4 => $step::<4>($($argument),*),
            5 => $step::<5>($($argument),*),
            6 => $step::<6>($($argument),*),
            7 => $step::<7>($($argument),*),
            _ => $scalar,
        }
    };
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn close_buckets(
    values: &[u64],
    start: usize,
    ends: &[usize],
    distance: u32,
    close: &mut Vec<usize>,
) {
    by_distance!(
        distance,
        close_within(values, start, ends, close),
        close_buckets_scalar(values, start, ends, distance, close)
    );
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn close_within<const DISTANCE: u32>(
    values: &[u64],
    mut start: usize,
    ends: &[usize],
    close: &mut Vec<usize>,
) {
    for (number, &end) in ends.iter().enumerate() {
        let bucket = &values[start..end];
        // The last vector may reach into the next buckets. What it finds there is no pair of this one.
        let whole = bucket.len().next_multiple_of(LANES);
        let looks_close = match values.get(start..start + whole) {
            _ if bucket.len() < 2 => false,
            Some(whole) => look_close::<DISTANCE>(whole),
            None => true,
        };
        if looks_close && is_close(bucket, DISTANCE) {
            close.push(number);
        }
        start = end;
    }
}

/// Whether any two of these values have near folds. There are whole vectors of them.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn look_close<const DISTANCE: u32>(values: &[u64]) -> bool {
    let (chunks, _) = values.as_chunks::<LANES>();
    let mut vectors: Folds = [_mm256_setzero_si256(); SMALL_BUCKET / LANES];
    let mut least = _mm256_set1_epi32(-1);
    for (number, chunk) in chunks.iter().enumerate() {
        let vector = folds(chunk);
        // Each lane with the next four, in a circle: every two lanes of the vector meet.
        for next in NEXT {
            let others = _mm256_permutevar8x32_epi32(
                vector,
                _mm256_setr_epi32(
                    next[0], next[1], next[2], next[3], next[4], next[5], next[6], next[7],
                ),
            );
            least = _mm256_min_epu32(least, beyond::<DISTANCE>(vector, others));
        }
        let mut lanes = [0; LANES];
        // SAFETY: the array has the 32 bytes of a vector, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), vector) };
        for &earlier in &vectors[..number] {
            for lane in lanes {
                least =
                    _mm256_min_epu32(least, beyond::<DISTANCE>(earlier, _mm256_set1_epi32(lane)));
            }
        }
        vectors[number] = vector;
    }
    zeros(least) != 0
}

/// The lanes that are 1, 2, 3 and 4 places on.
const NEXT: [[i32; LANES]; 4] = [
    [1, 2, 3, 4, 5, 6, 7, 0],
    [2, 3, 4, 5, 6, 7, 0, 1],
    [3, 4, 5, 6, 7, 0, 1, 2],
    [4, 5, 6, 7, 0, 1, 2, 3],
];

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn join_rows(
    bucket: &[u64],
    rows: Range<usize>,
    rule: &Rule,
    limit: usize,
    pairs: &mut Vec<Pair>,
) -> usize {
    by_distance!(
        rule.distance,
        join_within(bucket, rows, rule, limit, pairs),
        join_rows_scalar(bucket, rows, rule, limit, pairs)
    )
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn join_within<const DISTANCE: u32>(
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
        let fold = fold(value);
        let mut add = |other| {
            if rule.accepts(value ^ other) {
                pairs.push(Pair::new(Fingerprint(value), Fingerprint(other)));
            }
        };
        let (chunks, rest) = bucket[row + 1..].as_chunks::<LANES>();
        for chunk in chunks {
            let mut near = near_lanes(beyond::<DISTANCE>(folds(chunk), fold));
            while near != 0 {
                add(chunk[near.trailing_zeros() as usize % LANES]);
                near &= near - 1;
            }
        }
        rest.iter().for_each(|&other| add(other));
    }
    end
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn take_near(value: u64, distance: u32, rest: &mut Vec<u64>, near: &mut Vec<u64>) {
    by_distance!(
        distance,
        take_within(value, rest, near),
        take_near_scalar(value, distance, rest, near)
    );
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn take_within<const DISTANCE: u32>(value: u64, rest: &mut Vec<u64>, near: &mut Vec<u64>) {
    let fold = fold(value);
    let mut kept = 0;
    let mut read = 0;
    while read < rest.len() {
        let chunk: Option<[u64; LANES]> = rest[read..].first_chunk().copied();
        match chunk {
            Some(chunk) if zeros(beyond::<DISTANCE>(folds(&chunk), fold)) == 0 => {
                rest[kept..kept + LANES].copy_from_slice(&chunk);
                kept += LANES;
            }
            _ => {
                for at in read..rest.len().min(read + LANES) {
                    let other = rest[at];
                    // Without a branch: where one is near, more are.
                    rest[kept] = other;
                    let is_near = (value ^ other).count_ones() <= DISTANCE;
                    kept += usize::from(!is_near);
                    if is_near {
                        near.push(other);
                    }
                }
            }
        }
        read += LANES;
    }
    rest.truncate(kept);
}

/// The folds of these values, in an order of their own.
#[inline]
#[target_feature(enable = "avx2")]
fn folds(values: &[u64; LANES]) -> __m256i {
    let half = values.as_ptr().cast::<__m256i>();
    // SAFETY: the array has 64 bytes, and the loads need no alignment.
    let (first, second) = unsafe { (_mm256_loadu_si256(half), _mm256_loadu_si256(half.add(1))) };
    let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
    let low = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
    let high = _mm256_shuffle_ps::<0b11_01_11_01>(first, second);
    _mm256_xor_si256(_mm256_castps_si256(low), _mm256_castps_si256(high))
}

/// The fold of a value in all lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(value: u64) -> __m256i {
    _mm256_set1_epi32((value ^ value >> 32) as i32)
}

/// The differences of the folds without their lowest bits, as many as the distance: 0 where they are near.
#[inline]
#[target_feature(enable = "avx2")]
fn beyond<const DISTANCE: u32>(a: __m256i, b: __m256i) -> __m256i {
    let mut difference = _mm256_xor_si256(a, b);
    for _ in 0..DISTANCE {
        let less = _mm256_add_epi32(difference, _mm256_set1_epi32(-1));
        difference = _mm256_and_si256(difference, less);
    }
    difference
}

/// Which values have a 0 in their lane, in their own order.
#[inline]
#[target_feature(enable = "avx2")]
fn near_lanes(lanes: __m256i) -> i32 {
    zeros(_mm256_permute4x64_epi64::<0b11_01_10_00>(lanes))
}

/// Which lanes are 0.
#[inline]
#[target_feature(enable = "avx2")]
fn zeros(lanes: __m256i) -> i32 {
    let zeros = _mm256_cmpeq_epi32(lanes, _mm256_setzero_si256());
    _mm256_movemask_ps(_mm256_castsi256_ps(zeros))
}
