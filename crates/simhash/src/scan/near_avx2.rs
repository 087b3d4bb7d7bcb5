//! Probing with AVX2: four entries a step, popcounts by table look-up.

#![allow(unsafe_code, reason = "vector loads and stores take raw pointers")]

use std::arch::x86_64::*;
use std::ops::ControlFlow;

use super::near::{One, Places, Probe, Sink, pipeline, sources};

/// [`probe`](super::near::probe) at [`Level::Avx2`](super::Level).
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn probe(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    let constants = Constants::new(probe);
    pipeline(probe, queries, |one| {
        scan_places::<true>(probe, &constants, one, sink)
    })
}

/// [`scan`](super::near::scan) at [`Level::Avx2`](super::Level).
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn scan(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    scan_places::<false>(probe, &Constants::new(probe), one, sink)
}

/// What stays the same for all queries of a probe.
struct Constants {
    /// Where each byte of two widened entries comes from, twice.
    sources: __m256i,
    low_mask: u64,
    prefix: __m256i,
    max_distance: __m256i,
}

impl Constants {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(probe: &Probe) -> Self {
        let low_mask = probe.run.low_mask();
        let sources = load(&SOURCES[probe.run.width], 0);
        Self {
            sources: _mm256_broadcastsi128_si256(sources),
            low_mask,
            prefix: _mm256_set1_epi64x((probe.prefix & low_mask) as i64),
            max_distance: _mm256_set1_epi64x(probe.max_distance.into()),
        }
    }
}

/// A copy for each of the two callers: a function that only one calls is inlined.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn scan_places<const PIPELINED: bool>(
    probe: &Probe,
    constants: &Constants,
    one: One,
    sink: &mut Sink,
) -> ControlFlow<()> {
    let run = &probe.run;
    let value = _mm256_set1_epi64x((one.value & constants.low_mask) as i64);
    let differences = |place: usize| {
        let at = place * run.width;
        // Bytes are shuffled within halves: each half gets two entries.
        let low = _mm256_castsi128_si256(load(run.entries, at));
        let high = load(run.entries, at + 2 * run.width);
        let bytes = _mm256_inserti128_si256::<1>(low, high);
        _mm256_xor_si256(_mm256_shuffle_epi8(bytes, constants.sources), value)
    };
    let near = |differences: __m256i| {
        let of_prefix = _mm256_and_si256(differences, constants.prefix);
        let shares = _mm256_cmpeq_epi64(of_prefix, _mm256_setzero_si256());
        let far = _mm256_cmpgt_epi64(popcount(differences), constants.max_distance);
        let near = _mm256_andnot_si256(far, shares);
        _mm256_movemask_pd(_mm256_castsi256_pd(near)) as u32
    };
    let Places { start, end } = one.places;
    for place in (start..end).step_by(8) {
        let a = differences(place as usize);
        let b = differences(place as usize + 4);
        let hits = _bzhi_u32(near(a) | near(b) << 4, (end - place).min(8));
        if hits != 0 {
            emit(probe, one.query, hits & 0xf, a, sink)?;
            emit(probe, one.query, hits >> 4, b, sink)?;
        }
    }
    ControlFlow::Continue(())
}

/// Writes down the differences in `hits` that have a bit of each mask.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn emit(
    probe: &Probe,
    query: u32,
    mut hits: u32,
    differences: __m256i,
    sink: &mut Sink,
) -> ControlFlow<()> {
    let mut words = [0_u64; 4];
    // SAFETY: the array is as wide as the vector, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), differences) };
    while hits != 0 {
        let difference = words[hits.trailing_zeros() as usize];
        hits &= hits - 1;
        if probe.differ.iter().all(|mask| difference & mask != 0) {
            let (room, queries) = sink.room();
            (room[0], queries[0]) = (difference, query);
            sink.add(1)?;
        }
    }
    ControlFlow::Continue(())
}

/// The number of set bits of each 64-bit lane.
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
    _mm256_sad_epu8(of_byte, _mm256_setzero_si256())
}

/// 16 bytes from `at`.
#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8], at: usize) -> __m128i {
    let bytes = &bytes[at..at + 16];
    // SAFETY: the slice has 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// For two entries of each width.
static SOURCES: [[u8; 16]; 9] = sources();
