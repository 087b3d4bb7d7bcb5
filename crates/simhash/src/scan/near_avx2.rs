//! Probing with AVX2: eight heads a vector, popcounts by table look-up.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;
use std::ops::ControlFlow;

use super::near::{HEAD, One, Places, Probe, STEP, STEPS, Sink, check_near, pipeline};

/// [`probe`](super::near::probe) at [`Level::Avx2`](super::Level).
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn probe(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    let most = probe.head_distance() as i32;
    let mut steps = [0; STEPS as usize];
    pipeline(probe, queries, |one| {
        scan_places::<true>(probe, most, one, &mut steps, sink)
    })
}

/// [`scan`](super::near::scan) at [`Level::Avx2`](super::Level).
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn scan(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    let mut steps = [0; STEPS as usize];
    scan_places::<false>(probe, probe.head_distance() as i32, one, &mut steps, sink)
}

/// A copy for each of the two callers: a function that only one calls is inlined.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn scan_places<const PIPELINED: bool>(
    probe: &Probe,
    most: i32,
    one: One,
    steps: &mut [u16; STEPS as usize],
    sink: &mut Sink,
) -> ControlFlow<()> {
    let head = _mm256_set1_epi32(probe.run.head(one.value) as i32);
    let above = _mm256_set1_epi32(most + 1);
    let near = |place: u32| {
        let differences = _mm256_xor_si256(load(probe.run.heads, place as usize * HEAD), head);
        let near = _mm256_cmpgt_epi32(above, popcount(differences));
        _mm256_movemask_ps(_mm256_castsi256_ps(near)) as u16
    };
    let Places { start, end } = one.places;
    // Only lines that hold the bucket are read: they alone are on their way.
    let last = one.places.lines_end().saturating_sub(8);
    for start in (start..end).step_by((STEP * STEPS) as usize) {
        let end = end.min(start + STEP * STEPS);
        let (mut any, mut count) = (0, 0);
        for first in (start..end).step_by(STEP as usize) {
            let found = near(first.min(last)) | near((first + 8).min(last)) << 8;
            any |= found;
            steps[count] = found;
            count += 1;
        }
        if any != 0 {
            check_near::<8>(probe, one, start, last, &steps[..count], sink)?;
        }
    }
    ControlFlow::Continue(())
}

/// The number of set bits of each 32-bit lane.
#[inline]
#[target_feature(enable = "avx2")]
fn popcount(words: __m256i) -> __m256i {
    let of_nibble = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let nibble = _mm256_set1_epi8(0x0f);
    let low = _mm256_and_si256(words, nibble);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(words), nibble);
    let of_byte = _mm256_add_epi8(
        _mm256_shuffle_epi8(of_nibble, low),
        _mm256_shuffle_epi8(of_nibble, high),
    );
    let of_pair = _mm256_maddubs_epi16(of_byte, _mm256_set1_epi8(1));
    _mm256_madd_epi16(of_pair, _mm256_set1_epi16(1))
}

/// Eight heads from `at`.
#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8], at: usize) -> __m256i {
    let bytes = &bytes[at..at + 32];
    // SAFETY: the slice has 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}
