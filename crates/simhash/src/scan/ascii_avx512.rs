//! Classifying ASCII by AVX-512: 64 bytes an instruction, a mask register a class.

#![allow(unsafe_code, reason = "vector instructions and their loads and stores")]

use std::arch::x86_64::{
    __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512,
    _mm512_mask_add_epi8, _mm512_set1_epi8, _mm512_storeu_si512, _mm512_sub_epi8,
};

use super::ascii::{BLOCK, Classes};

/// As [`classify`](super::ascii::classify), for whole blocks.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn classify_blocks(
    blocks: &[[u8; BLOCK]],
    lowered: &mut [[u8; BLOCK]],
    classes: &mut [Classes],
) {
    for ((block, lower), class) in blocks.iter().zip(lowered).zip(classes) {
        // SAFETY: the block is 64 bytes that may be read, at any address.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        let upper = within(bytes, b'A', 26);
        let low = _mm512_mask_add_epi8(bytes, upper, bytes, splat(b'a' - b'A'));
        // SAFETY: the block is 64 bytes that may be written, at any address.
        unsafe { _mm512_storeu_si512(lower.as_mut_ptr().cast(), low) };
        let both = equal(bytes, b'.') | equal(bytes, b'\'');
        *class = Classes {
            letters: within(low, b'a', 26),
            digits: within(bytes, b'0', 10),
            underscores: equal(bytes, b'_'),
            between_letters: both | equal(bytes, b':'),
            between_digits: both | equal(bytes, b',') | equal(bytes, b';'),
        };
    }
}

#[target_feature(enable = "avx512f")]
fn splat(byte: u8) -> __m512i {
    _mm512_set1_epi8(byte.cast_signed())
}

/// Which bytes are one of `count` from `first` on.
#[target_feature(enable = "avx512f,avx512bw")]
fn within(bytes: __m512i, first: u8, count: u8) -> u64 {
    _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, splat(first)), splat(count))
}

#[target_feature(enable = "avx512f,avx512bw")]
fn equal(bytes: __m512i, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(bytes, splat(byte))
}
