//! The steps of a join with AVX-512: eight differences are counted at once.

#![allow(
    unsafe_code,
    reason = "vectors are loaded from and stored to raw pointers"
)]

use std::arch::x86_64::{
    __m512i, __mmask8, _mm512_alignr_epi64, _mm512_cmple_epu64_mask, _mm512_loadu_si512,
    _mm512_mask_cmple_epu64_mask, _mm512_mask_loadu_epi64, _mm512_mask_test_epi64_mask,
    _mm512_mask_testn_epi64_mask, _mm512_maskz_compress_epi64, _mm512_maskz_loadu_epi64,
    _mm512_max_epu64, _mm512_min_epu64, _mm512_permutex2var_epi64, _mm512_popcnt_epi64,
    _mm512_set1_epi64, _mm512_setr_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

use std::ops::Range;

use super::join::{Rule, SMALL_BUCKET};
use super::popcount_avx512::popcount_epi64;
use crate::pairs::Pair;

/// Fingerprints in a vector.
const LANES: usize = 8;

/// What fills the lanes behind the last fingerprint: values far from each other, 32 bits and more,
/// so that they rarely look close to anything.
const PADDING: [u64; LANES] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0f0f_0f0f_0f0f_0f0f,
    0x00ff_00ff_00ff_00ff,
    0x0000_ffff_0000_ffff,
    0x0000_0000_ffff_ffff,
    0x6666_6666_6666_6666,
    0x5a5a_5a5a_5a5a_5a5a,
];

/// The steps for a set of instructions and its way to count the bits of 64-bit lanes.
macro_rules! steps {
    ($module:ident, $features:literal, $popcount:ident) => {
        pub(super) mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(in super::super) fn close_buckets(
                values: &[u64],
                mut start: usize,
                ends: &[usize],
                distance: u32,
                close: &mut Vec<usize>,
            ) {
                for (number, &end) in ends.iter().enumerate() {
                    let bucket = &values[start..end];
                    if bucket.len() > 1 && least_distance(bucket) <= u64::from(distance) {
                        close.push(number);
                    }
                    start = end;
                }
            }

            /// The least distance of any two, or less where padding looks close.
            #[inline]
            #[target_feature(enable = $features)]
            fn least_distance(bucket: &[u64]) -> u64 {
                let padding = load(&PADDING);
                let mut vectors = [padding; SMALL_BUCKET / LANES];
                let mut used = 0;
                for (vector, chunk) in vectors.iter_mut().zip(bucket.chunks(LANES)) {
                    *vector = load_or(padding, chunk);
                    used += 1;
                }

                let mut least = _mm512_set1_epi64(64);
                for (number, &vector) in vectors[..used].iter().enumerate() {
                    // Each lane with the next four, in a circle: every two lanes of the vector meet.
                    least = nearer(least, vector, _mm512_alignr_epi64::<1>(vector, vector));
                    least = nearer(least, vector, _mm512_alignr_epi64::<2>(vector, vector));
                    least = nearer(least, vector, _mm512_alignr_epi64::<3>(vector, vector));
                    least = nearer(least, vector, _mm512_alignr_epi64::<4>(vector, vector));
                    for &later in &vectors[number + 1..used] {
                        // There is a later vector, so this one is full.
                        for &value in &bucket[number * LANES..][..LANES] {
                            least = nearer(least, later, _mm512_set1_epi64(value.cast_signed()));
                        }
                    }
                }
                std::arch::x86_64::_mm512_reduce_min_epu64(least)
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn nearer(least: __m512i, a: __m512i, b: __m512i) -> __m512i {
                _mm512_min_epu64(least, $popcount(_mm512_xor_si512(a, b)))
            }

            #[target_feature(enable = $features)]
            pub(in super::super) fn join_rows(
                bucket: &[u64],
                rows: Range<usize>,
                rule: &Rule,
                limit: usize,
                pairs: &mut Vec<Pair>,
            ) -> usize {
                let distance = _mm512_set1_epi64(i64::from(rule.distance));
                let end = rows.end;
                for row in rows {
                    if pairs.len() >= limit {
                        return row;
                    }
                    let value = _mm512_set1_epi64(bucket[row].cast_signed());
                    let (chunks, rest) = bucket[row + 1..].as_chunks::<LANES>();
                    for chunk in chunks {
                        let others = load(chunk);
                        let difference = _mm512_xor_si512(value, others);
                        let near = _mm512_cmple_epu64_mask($popcount(difference), distance);
                        if near != 0 {
                            push(near, value, others, rule, pairs);
                        }
                    }
                    // SAFETY: the mask has the first `rest.len()` lanes, fewer than 8; no others are read.
                    let others = unsafe {
                        _mm512_maskz_loadu_epi64(first_lanes(rest.len()), rest.as_ptr().cast())
                    };
                    let difference = _mm512_xor_si512(value, others);
                    let near = _mm512_mask_cmple_epu64_mask(
                        first_lanes(rest.len()),
                        $popcount(difference),
                        distance,
                    );
                    if near != 0 {
                        push(near, value, others, rule, pairs);
                    }
                }
                end
            }

            #[target_feature(enable = $features)]
            pub(in super::super) fn take_near(
                value: u64,
                distance: u32,
                rest: &mut Vec<u64>,
                near: &mut Vec<u64>,
            ) {
                let value = _mm512_set1_epi64(value.cast_signed());
                let distance = _mm512_set1_epi64(i64::from(distance));
                let length = rest.len();
                let mut kept = 0;
                let mut read = 0;
                while read < length {
                    let lanes = first_lanes(length - read);
                    // SAFETY: the mask has the first min(`length - read`, 8) lanes; no others are read.
                    let others =
                        unsafe { _mm512_maskz_loadu_epi64(lanes, rest.as_ptr().add(read).cast()) };
                    let count = $popcount(_mm512_xor_si512(value, others));
                    let hits = _mm512_mask_cmple_epu64_mask(lanes, count, distance);
                    if hits != 0 {
                        append(hits, others, near);
                    }
                    let keep = lanes & !hits;
                    if kept < read || hits != 0 {
                        store_at(rest, kept, keep, others);
                    }
                    kept += keep.count_ones() as usize;
                    read += LANES;
                }
                rest.truncate(kept);
            }
        }
    };
}

steps!(
    avx512,
    "avx512f,avx512bw,avx512dq,avx512vl,popcnt,bmi1,bmi2",
    popcount_epi64
);
steps!(
    vpopcnt,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,popcnt,bmi1,bmi2",
    _mm512_popcnt_epi64
);

#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[u64; LANES]) -> __m512i {
    // SAFETY: eight values are there.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// Up to eight values; the lanes behind them are those of `otherwise`.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn load_or(otherwise: __m512i, values: &[u64]) -> __m512i {
    // SAFETY: the mask has the first min(`values.len()`, 8) lanes; no others are read.
    unsafe { _mm512_mask_loadu_epi64(otherwise, first_lanes(values.len()), values.as_ptr().cast()) }
}

#[inline]
const fn first_lanes(count: usize) -> __mmask8 {
    if count >= LANES {
        return 0xff;
    }
    (1 << count) - 1
}

/// Adds the pairs of `value` with those of `others` that are in `near` and meet the rule.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt,bmi1,bmi2")]
fn push(near: __mmask8, value: __m512i, others: __m512i, rule: &Rule, pairs: &mut Vec<Pair>) {
    let difference = _mm512_xor_si512(value, others);
    let agree = _mm512_set1_epi64(rule.agree.cast_signed());
    let mut hits = _mm512_mask_testn_epi64_mask(near, difference, agree);
    for &block in &rule.differ {
        let block = _mm512_set1_epi64(block.cast_signed());
        hits = _mm512_mask_test_epi64_mask(hits, difference, block);
    }
    if hits == 0 {
        return;
    }
    let others = _mm512_maskz_compress_epi64(hits, others);
    let less = _mm512_min_epu64(value, others);
    let more = _mm512_max_epu64(value, others);
    let first_half = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    let second_half = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    pairs.reserve(LANES);
    let length = pairs.len();
    // SAFETY: there is room for eight pairs behind the length, and a pair is two u64 in order: `Pair` is
    // `repr(C)`, and `Fingerprint` is `repr(transparent)`. The hits come first in `others`, so as many pairs are whole as there are hits.
    unsafe {
        let end: *mut __m512i = pairs.as_mut_ptr().add(length).cast();
        _mm512_storeu_si512(end, _mm512_permutex2var_epi64(less, first_half, more));
        _mm512_storeu_si512(
            end.add(1),
            _mm512_permutex2var_epi64(less, second_half, more),
        );
        pairs.set_len(length + hits.count_ones() as usize);
    }
}

/// Appends the lanes of `values` that are in `lanes`.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn append(lanes: __mmask8, values: __m512i, list: &mut Vec<u64>) {
    list.reserve(LANES);
    let length = list.len();
    // SAFETY: there is room for eight behind the length, and as many are whole as there are lanes.
    unsafe {
        let end = list.as_mut_ptr().add(length);
        _mm512_storeu_si512(end.cast(), _mm512_maskz_compress_epi64(lanes, values));
        list.set_len(length + lanes.count_ones() as usize);
    }
}

/// Writes the lanes of `values` that are in `lanes` to `list[at..]`.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn store_at(list: &mut [u64], at: usize, lanes: __mmask8, values: __m512i) {
    let count = lanes.count_ones() as usize;
    let target = &mut list[at..at + count];
    // SAFETY: the mask has the first `target.len()` lanes, up to 8; no others are written.
    unsafe {
        std::arch::x86_64::_mm512_mask_storeu_epi64(
            target.as_mut_ptr().cast(),
            first_lanes(count),
            _mm512_maskz_compress_epi64(lanes, values),
        );
    }
}
