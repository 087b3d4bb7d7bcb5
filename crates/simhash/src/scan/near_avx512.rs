//! Probing with AVX-512: 16 entries a step, popcounts by VPOPCNTDQ, what is found
//! written by one compressed store.

#![allow(unsafe_code, reason = "vector loads and stores take raw pointers")]

use std::arch::x86_64::*;
use std::ops::ControlFlow;

use super::near::{One, Places, Probe, Sink, pipeline, sources};

/// [`probe`](super::near::probe) at [`Level::Avx512`](super::Level).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vpopcntdq")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn probe(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    let constants = Constants::new(probe);
    pipeline(probe, queries, |one| {
        scan_places::<true>(probe, &constants, one, sink)
    })
}

/// [`scan`](super::near::scan) at [`Level::Avx512`](super::Level).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vpopcntdq")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn scan(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    scan_places::<false>(probe, &Constants::new(probe), one, sink)
}

/// What stays the same for all queries of a probe.
struct Constants {
    /// Where each byte of eight widened entries comes from.
    sources: __m512i,
    /// The bytes that have a source.
    kept: u64,
    low_mask: u64,
    prefix: __m512i,
    max_distance: __m512i,
}

impl Constants {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(probe: &Probe) -> Self {
        let width = probe.run.width;
        let low_mask = probe.run.low_mask();
        Self {
            sources: load(&SOURCES[width], 0),
            kept: 0x0101_0101_0101_0101 * ((1 << width) - 1),
            low_mask,
            prefix: _mm512_set1_epi64((probe.prefix & low_mask) as i64),
            max_distance: _mm512_set1_epi64(probe.max_distance.into()),
        }
    }
}

/// A copy for each of the two callers: a function that only one calls is inlined.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vpopcntdq")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn scan_places<const PIPELINED: bool>(
    probe: &Probe,
    constants: &Constants,
    one: One,
    sink: &mut Sink,
) -> ControlFlow<()> {
    let run = &probe.run;
    let value = _mm512_set1_epi64((one.value & constants.low_mask) as i64);
    let Places { start, end } = one.places;
    let last_line = (end as usize * run.width).saturating_sub(1) / 64;
    let differences = |place: usize| {
        // Only lines that hold the bucket are read: they alone are on their way.
        let at = place * run.width;
        let line = at / 64;
        let low = load(run.entries, line.min(last_line) * 64);
        let high = load(run.entries, (line + 1).min(last_line) * 64);
        let sources = _mm512_add_epi8(constants.sources, _mm512_set1_epi8((at % 64) as i8));
        let entries = _mm512_maskz_permutex2var_epi8(constants.kept, low, sources, high);
        _mm512_xor_si512(entries, value)
    };
    let near = |differences: __m512i| {
        let distances = _mm512_popcnt_epi64(differences);
        let near = _mm512_cmple_epu64_mask(distances, constants.max_distance);
        u32::from(_mm512_mask_testn_epi64_mask(
            near,
            differences,
            constants.prefix,
        ))
    };
    for place in (start..end).step_by(16) {
        let a = differences(place as usize);
        let b = differences(place as usize + 8);
        let hits = _bzhi_u32(near(a) | near(b) << 8, (end - place).min(16));
        if hits != 0 {
            emit(probe, one.query, hits as u8, a, sink)?;
            emit(probe, one.query, (hits >> 8) as u8, b, sink)?;
        }
    }
    ControlFlow::Continue(())
}

/// Writes down the differences in `hits` that have a bit of each mask.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vpopcntdq")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn emit(
    probe: &Probe,
    query: u32,
    mut hits: u8,
    differences: __m512i,
    sink: &mut Sink,
) -> ControlFlow<()> {
    for &mask in probe.differ {
        let mask = _mm512_set1_epi64(mask as i64);
        hits = _mm512_mask_test_epi64_mask(hits, differences, mask);
    }
    if hits == 0 {
        return ControlFlow::Continue(());
    }
    let packed = _mm512_maskz_compress_epi64(hits, differences);
    let (room, queries) = sink.room();
    // SAFETY: `room` is an array of eight words, as wide as the vector.
    unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), packed) };
    *queries = [query; 8];
    sink.add(hits.count_ones() as usize)
}

/// 64 bytes from `at`.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8], at: usize) -> __m512i {
    let bytes = &bytes[at..at + 64];
    // SAFETY: the slice has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// For eight entries of each width.
static SOURCES: [[u8; 64]; 9] = sources();
