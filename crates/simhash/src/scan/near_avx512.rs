//! Probing with AVX-512: 16 heads a vector, a line.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;
use std::ops::ControlFlow;

use super::near::{HEAD, One, Places, Probe, STEP, STEPS, Sink, check_near, pipeline};
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
                let mut steps = [0; STEPS as usize];
                pipeline(probe, queries, |one| {
                    scan_places::<true>(probe, most, one, &mut steps, sink)
                })
            }

            /// [`scan`](super::super::near::scan) at the level of this module.
            #[target_feature(enable = $features)]
            pub(in super::super) fn scan(
                probe: &Probe,
                one: One,
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                let mut steps = [0; STEPS as usize];
                scan_places::<false>(probe, probe.head_distance() as i32, one, &mut steps, sink)
            }

            /// A copy for each of the two callers: a function that only one calls is inlined.
            #[inline]
            #[target_feature(enable = $features)]
            fn scan_places<const PIPELINED: bool>(
                probe: &Probe,
                most: i32,
                one: One,
                steps: &mut [u16; STEPS as usize],
                sink: &mut Sink,
            ) -> ControlFlow<()> {
                let head = _mm512_set1_epi32(probe.run.head(one.value) as i32);
                let most = _mm512_set1_epi32(most);
                let near = |place: u32| {
                    let heads = load(probe.run.heads, place as usize * HEAD);
                    let differences = _mm512_xor_si512(heads, head);
                    _mm512_cmple_epi32_mask($popcount(differences), most)
                };
                let Places { start, end } = one.places;
                // Only lines that hold the bucket are read: they alone are on their way.
                let last = one.places.lines_end().saturating_sub(16);
                for start in (start..end).step_by((STEP * STEPS) as usize) {
                    let end = end.min(start + STEP * STEPS);
                    let (mut any, mut count) = (0, 0);
                    for first in (start..end).step_by(STEP as usize) {
                        let found = near(first.min(last));
                        any |= found;
                        steps[count] = found;
                        count += 1;
                    }
                    if any != 0 {
                        check_near::<16>(probe, one, start, last, &steps[..count], sink)?;
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

/// 16 heads from `at`.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8], at: usize) -> __m512i {
    let bytes = &bytes[at..at + 64];
    // SAFETY: the slice has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
