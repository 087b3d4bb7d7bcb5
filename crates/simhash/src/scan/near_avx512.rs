//! Probing with AVX-512: 16 heads a vector, a line.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;
use std::ops::ControlFlow;

use super::near::{One, Probe, STRETCH, Sink, check_near};
use super::packed::{LINE, LINE_HEADS, Places};
use super::pipeline::{pipeline, pipeline_by_bucket};
use super::popcount_avx512::popcount_epi32;

/// The kernels for a set of instructions and its way to count the bits of 32-bit lanes.
macro_rules! kernels {
    ($module:ident, $features:literal, $popcount:ident) => {
        pub(super) mod $module {
            use super::*;

            /// [`probe`](super::super::near::probe) at the level of this module.
            #[target_feature(enable = $features)]
            pub(in super::super) fn probe(
                probe: &Probe,
                queries: &[u64],
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                let most = probe.head_distance() as i32;
                let masks = probe.head_masks();
                if probe.has_large_buckets() {
                    return pipeline_by_bucket(&probe.run, queries, |values, query, places| {
                        scan_together(probe, most, &masks, values, query, places, sink)
                    });
                }
                pipeline(probe, queries, |one| {
                    scan_places::<true>(probe, most, &masks, one, sink)
                })
            }

            /// [`scan`](super::super::near::scan) at the level of this module.
            #[target_feature(enable = $features)]
            pub(in super::super) fn scan(
                probe: &Probe,
                one: One,
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                scan_places::<false>(probe, probe.head_distance() as i32, &[], one, sink)
            }

            /// A copy for each of the two callers: a function that only one calls is inlined.
            #[inline]
            #[target_feature(enable = $features)]
            fn scan_places<const PIPELINED: bool>(
                probe: &Probe,
                most: i32,
                masks: &[u32],
                one: One,
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                let head = _mm512_set1_epi32(probe.run.head(one.value) as i32);
                let most = _mm512_set1_epi32(most);
                let distances = |line| $popcount(_mm512_xor_si512(load(line), head));
                let near = |distances| _mm512_cmple_epi32_mask(distances, most);
                if one.places.are_few() {
                    let (heads, first) = probe.run.few(one.places);
                    return match near(distances(heads)) {
                        0 => ControlFlow::Continue(()),
                        near => check_near(probe, one, first, near, sink),
                    };
                }
                compare::<1>(probe, most, masks, [one], sink)
            }

            /// Compares queries at one bucket with its entries.
            #[inline]
            #[target_feature(enable = $features)]
            fn scan_together(
                probe: &Probe,
                most: i32,
                masks: &[u32],
                values: &[u64],
                query: u32,
                places: Places,
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                let most = _mm512_set1_epi32(most);
                let one = |place: usize| One {
                    query: query + place as u32,
                    value: values[place],
                    places,
                };
                match values.len() {
                    1 => compare(probe, most, masks, [one(0)], sink),
                    2 => compare(probe, most, masks, [one(0), one(1)], sink),
                    3 => compare(probe, most, masks, [one(0), one(1), one(2)], sink),
                    _ => compare(probe, most, masks, [one(0), one(1), one(2), one(3)], sink),
                }
            }

            /// Compares queries at one bucket with each of its lines.
            #[inline]
            #[target_feature(enable = $features)]
            fn compare<const N: usize>(
                probe: &Probe,
                most: __m512i,
                masks: &[u32],
                queries: [One; N],
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                let heads = queries.map(|one| _mm512_set1_epi32(probe.run.head(one.value) as i32));
                let (lines, first) = probe.run.lines_of(queries[0].places);
                let stretches = lines.chunks(STRETCH);
                for (lines, first) in stretches.zip((first..).step_by(STRETCH * LINE_HEADS)) {
                    let mut least = [_mm512_set1_epi32(i32::MAX); N];
                    for line in lines {
                        let line = load(line);
                        for query in 0..N {
                            let distances = $popcount(_mm512_xor_si512(line, heads[query]));
                            least[query] = _mm512_min_epi32(least[query], distances);
                        }
                    }
                    let mut near = 0_u32;
                    for query in 0..N {
                        near |=
                            u32::from(_mm512_cmple_epi32_mask(least[query], most) != 0) << query;
                    }
                    while near != 0 {
                        let one = queries[near.trailing_zeros() as usize];
                        near &= near - 1;
                        look_closer(probe, most, masks, one, (lines, first), sink)?;
                    }
                }
                ControlFlow::Continue(())
            }

            /// Compares a query with the lines, of which some have near heads. Most of these belong to other tables, which
            /// the masks show without a look at single heads.
            #[inline(never)]
            #[target_feature(enable = $features)]
            fn look_closer(
                probe: &Probe,
                most: __m512i,
                masks: &[u32],
                one: One,
                (lines, first): (&[[u8; LINE]], u32),
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                let head = _mm512_set1_epi32(probe.run.head(one.value) as i32);
                let near = |difference| _mm512_cmple_epi32_mask($popcount(difference), most);
                // The processor would mispredict a branch for each line.
                let mut nears = [0_u16; STRETCH];
                for (heads, line) in nears.iter_mut().zip(lines) {
                    *heads = near(_mm512_xor_si512(load(line), head));
                }
                let mut near_lines = are_not_zero(&nears);
                while near_lines != 0 {
                    let place = near_lines.trailing_zeros();
                    near_lines &= near_lines - 1;
                    let difference = _mm512_xor_si512(load(&lines[place as usize]), head);
                    let mut near = near(difference);
                    for &mask in masks {
                        near &= _mm512_test_epi32_mask(difference, _mm512_set1_epi32(mask as i32));
                    }
                    if near != 0 {
                        let first = first + place * LINE_HEADS as u32;
                        check_near(probe, one, first, near, sink)?;
                    }
                }
                ControlFlow::Continue(())
            }
        }
    };
}

kernels!(
    avx512,
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt",
    popcount_epi32
);
kernels!(
    vpopcnt,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt",
    _mm512_popcnt_epi32
);

/// Which of these numbers are not 0.
#[inline]
#[target_feature(enable = "avx512bw")]
fn are_not_zero(numbers: &[u16; STRETCH]) -> u64 {
    let (halves, _) = numbers.as_chunks::<32>();
    let of_half = |half: &[u16; 32]| {
        // SAFETY: a half has 64 bytes, and the load needs no alignment.
        let half = unsafe { _mm512_loadu_si512(half.as_ptr().cast()) };
        u64::from(_mm512_test_epi16_mask(half, half))
    };
    of_half(&halves[0]) | of_half(&halves[1]) << 32
}

/// The heads of a line.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(line: &[u8; LINE]) -> __m512i {
    // SAFETY: a line has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}
