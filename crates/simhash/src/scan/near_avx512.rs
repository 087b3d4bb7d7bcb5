//! Probing with AVX-512: 16 heads a vector, a line.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;
use std::ops::ControlFlow;

use super::near::{One, Probe, STRETCH, Sink, check_near, pipeline};
use super::packed::{LINE, LINE_HEADS};
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
                let (lines, first) = probe.run.lines_of(one.places);
                let stretches = lines.chunks(STRETCH);
                for (lines, first) in stretches.zip((first..).step_by(STRETCH * LINE_HEADS)) {
                    let mut least = _mm512_set1_epi32(i32::MAX);
                    for line in lines {
                        least = _mm512_min_epi32(least, distances(line));
                    }
                    if near(least) == 0 {
                        continue;
                    }
                    // The processor would mispredict a branch for each line. Most of what is near belongs to other
                    // tables, which the masks show without a look at single heads.
                    let mut near_lines = 0_u64;
                    for (place, line) in lines.iter().enumerate() {
                        near_lines |= u64::from(near(distances(line)) != 0) << place;
                    }
                    while near_lines != 0 {
                        let place = near_lines.trailing_zeros();
                        near_lines &= near_lines - 1;
                        let line = &lines[place as usize];
                        let difference = _mm512_xor_si512(load(line), head);
                        let mut near = near($popcount(difference));
                        for &mask in masks {
                            near &=
                                _mm512_test_epi32_mask(difference, _mm512_set1_epi32(mask as i32));
                        }
                        if near != 0 {
                            let first = first + place * LINE_HEADS as u32;
                            check_near(probe, one, first, near, sink)?;
                        }
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

/// The heads of a line.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(line: &[u8; LINE]) -> __m512i {
    // SAFETY: a line has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}
