//! Counting the bits of lanes with AVX-512 that has no instruction for it: by a table of 16 counts, looked up for each
//! half of a byte. Muła, Kurz and Lemire, "Faster population counts using AVX2 instructions", The Computer Journal
//! 61(1), 2018.

use std::arch::x86_64::*;

/// The number of set bits of each 32-bit lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn popcount_epi32(words: __m512i) -> __m512i {
    let of_pair = _mm512_maddubs_epi16(of_bytes(words), _mm512_set1_epi8(1));
    _mm512_madd_epi16(of_pair, _mm512_set1_epi16(1))
}

/// The number of set bits of each 64-bit lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn popcount_epi64(words: __m512i) -> __m512i {
    _mm512_sad_epu8(of_bytes(words), _mm512_setzero_si512())
}

/// The number of set bits of each byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn of_bytes(words: __m512i) -> __m512i {
    let of_nibble = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    ));
    let nibble = _mm512_set1_epi8(0x0f);
    let low = _mm512_and_si512(words, nibble);
    let high = _mm512_and_si512(_mm512_srli_epi16::<4>(words), nibble);
    _mm512_add_epi8(
        _mm512_shuffle_epi8(of_nibble, low),
        _mm512_shuffle_epi8(of_nibble, high),
    )
}
