//! Probing with AVX2: eight heads a vector, popcounts by table look-up.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;
use std::ops::ControlFlow;

use super::near::{One, Probe, STRETCH, Sink, check_near};
use super::packed::{LINE, LINE_HEADS};
use super::pipeline::pipeline;

/// [`probe`](super::near::probe) at [`Level::Avx2`](super::Level).
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn probe(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    let most = probe.head_distance() as i32;
    pipeline(probe, queries, |one| {
        scan_places::<true>(probe, most, one, sink)
    })
}

/// [`scan`](super::near::scan) at [`Level::Avx2`](super::Level).
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn scan(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    scan_places::<false>(probe, probe.head_distance() as i32, one, sink)
}

/// A copy for each of the two callers: a function that only one calls is inlined.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn scan_places<const PIPELINED: bool>(
    probe: &Probe,
    most: i32,
    one: One,
    sink: &mut Sink,
) -> ControlFlow<()> {
    let head = _mm256_set1_epi32(probe.run.head(one.value) as i32);
    let above = _mm256_set1_epi32(most + 1);
    let distances = |half| popcount(_mm256_xor_si256(half, head));
    let are_below = |distances| {
        let near = _mm256_cmpgt_epi32(above, distances);
        _mm256_movemask_ps(_mm256_castsi256_ps(near)) as u16
    };
    let near = |heads| {
        let (low, high) = load(heads);
        are_below(distances(low)) | are_below(distances(high)) << 8
    };
    if one.places.are_few() {
        let (heads, first) = probe.run.few(one.places);
        return match near(heads) {
            0 => ControlFlow::Continue(()),
            near => check_near(probe, one, first, near, sink),
        };
    }
    let (lines, first) = probe.run.lines_of(one.places);
    let stretches = lines.chunks(STRETCH);
    for (lines, first) in stretches.zip((first..).step_by(STRETCH * LINE_HEADS)) {
        let mut least = _mm256_set1_epi32(i32::MAX);
        for line in lines {
            let (low, high) = load(line);
            least = _mm256_min_epi32(least, _mm256_min_epi32(distances(low), distances(high)));
        }
        if are_below(least) == 0 {
            continue;
        }
        for (line, first) in lines.iter().zip((first..).step_by(LINE_HEADS)) {
            let near = near(line);
            if near != 0 {
                check_near(probe, one, first, near, sink)?;
            }
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

/// The heads of a line, eight a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn load(line: &[u8; LINE]) -> (__m256i, __m256i) {
    let half = line.as_ptr().cast::<__m256i>();
    // SAFETY: a line has 64 bytes, and the loads need no alignment.
    unsafe { (_mm256_loadu_si256(half), _mm256_loadu_si256(half.add(1))) }
}
