//! Classifying ASCII by AVX2: 32 bytes an instruction, so a block in two halves.

#![allow(unsafe_code, reason = "vector instructions and their loads and stores")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_storeu_si256,
};

use super::ascii::{BLOCK, Classes};

/// Bytes of a vector.
const HALF: usize = BLOCK / 2;

/// As [`classify`](super::ascii::classify), for whole blocks.
#[target_feature(enable = "avx2")]
pub(super) fn classify_blocks(
    blocks: &[[u8; BLOCK]],
    lowered: &mut [[u8; BLOCK]],
    classes: &mut [Classes],
) {
    for ((block, lower), class) in blocks.iter().zip(lowered).zip(classes) {
        *class = Classes::default();
        let (halves, _) = block.as_chunks::<HALF>();
        let (lower_halves, _) = lower.as_chunks_mut::<HALF>();
        for (index, (half, lower)) in halves.iter().zip(lower_halves).enumerate() {
            let of_half = classify_half(half, lower);
            let at = index * HALF;
            class.letters |= of_half.letters << at;
            class.digits |= of_half.digits << at;
            class.underscores |= of_half.underscores << at;
            class.between_letters |= of_half.between_letters << at;
            class.between_digits |= of_half.between_digits << at;
        }
    }
}

#[target_feature(enable = "avx2")]
fn classify_half(half: &[u8; HALF], lowered: &mut [u8; HALF]) -> Classes {
    // SAFETY: the half is 32 bytes that may be read, at any address.
    let bytes = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
    let upper = within(bytes, b'A', b'Z');
    let low = _mm256_add_epi8(bytes, _mm256_and_si256(upper, splat(b'a' - b'A')));
    // SAFETY: the half is 32 bytes that may be written, at any address.
    unsafe { _mm256_storeu_si256(lowered.as_mut_ptr().cast(), low) };
    let both = _mm256_or_si256(equal(bytes, b'.'), equal(bytes, b'\''));
    let number_marks = _mm256_or_si256(equal(bytes, b','), equal(bytes, b';'));
    Classes {
        letters: mask(within(low, b'a', b'z')),
        digits: mask(within(bytes, b'0', b'9')),
        underscores: mask(equal(bytes, b'_')),
        between_letters: mask(_mm256_or_si256(both, equal(bytes, b':'))),
        between_digits: mask(_mm256_or_si256(both, number_marks)),
    }
}

#[target_feature(enable = "avx2")]
fn splat(byte: u8) -> __m256i {
    _mm256_set1_epi8(byte.cast_signed())
}

/// Which bytes lie in a range. ASCII is the same signed or not, and AVX2 only compares signed.
#[target_feature(enable = "avx2")]
fn within(bytes: __m256i, first: u8, last: u8) -> __m256i {
    let above = _mm256_cmpgt_epi8(bytes, splat(first - 1));
    let below = _mm256_cmpgt_epi8(splat(last + 1), bytes);
    _mm256_and_si256(above, below)
}

#[target_feature(enable = "avx2")]
fn equal(bytes: __m256i, byte: u8) -> __m256i {
    _mm256_cmpeq_epi8(bytes, splat(byte))
}

/// One bit a byte, in the lower half.
#[target_feature(enable = "avx2")]
fn mask(chosen: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(chosen).cast_unsigned())
}
