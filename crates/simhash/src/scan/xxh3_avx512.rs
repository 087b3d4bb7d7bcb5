//! XXH3-64 of eight short inputs at once by AVX-512. The formulas stand in `xxh3.rs`.

#![allow(unsafe_code, reason = "vector instructions and their loads and stores")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpgt_epu64_mask, _mm512_cmplt_epu64_mask,
    _mm512_loadu_si512, _mm512_mask_blend_epi64, _mm512_mul_epu32, _mm512_mullo_epi64,
    _mm512_or_si512, _mm512_rol_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_shuffle_epi8,
    _mm512_slli_epi64, _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::xxh3::{
    Edges, FLIP_3, FLIP_8, FLIP_16_FIRST, FLIP_16_LAST, PRIME_MX1, PRIME_MX2, PRIME64_1, PRIME64_2,
    PRIME64_3, SECRET, SHORT, ends, hash_fours_scalar, hash_long,
};

/// Words and shingles that are hashed together.
const LANES: usize = 8;

/// As [`hash_words`](super::xxh3::hash_words).
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn hash_words(text: &[u8], words: &[Edges], hashes: &mut [u64]) {
    let (groups, rest) = words.as_chunks::<LANES>();
    let (hash_groups, hash_rest) = hashes.as_chunks_mut::<LANES>();
    for (group, hashes) in groups.iter().zip(hash_groups) {
        hash_eight(text, group, hashes);
    }
    if let Some(&last) = rest.last() {
        let mut group = [last; LANES];
        group[..rest.len()].copy_from_slice(rest);
        let mut hashes = [0; LANES];
        hash_eight(text, &group, &mut hashes);
        hash_rest.copy_from_slice(&hashes[..rest.len()]);
    }
}

/// All three formulas for every lane, then the one that fits its length.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn hash_eight(text: &[u8], words: &[Edges; LANES], hashes: &mut [u64; LANES]) {
    let [mut first, mut last, mut length] = [[0; LANES]; 3];
    for (lane, &edges) in words.iter().enumerate() {
        (first[lane], last[lane], length[lane]) = ends(text, edges);
    }
    let (first, last, length) = (load(&first), load(&last), load(&length));
    let up_to_3 = hash_3(first, last, length);
    let up_to_8 = hash_8(first, last, length);
    let up_to_16 = hash_16(first, last, length);
    let below_9 = _mm512_cmplt_epu64_mask(length, splat(9));
    let below_4 = _mm512_cmplt_epu64_mask(length, splat(4));
    let hash = _mm512_mask_blend_epi64(below_9, up_to_16, up_to_8);
    store(_mm512_mask_blend_epi64(below_4, hash, up_to_3), hashes);
    let mut long = _mm512_cmpgt_epu64_mask(length, splat(SHORT));
    while long != 0 {
        let lane = long.trailing_zeros() as usize;
        hashes[lane] = hash_long(text, words[lane]);
        long &= long - 1;
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
fn hash_3(first: __m512i, last: __m512i, length: __m512i) -> __m512i {
    let byte = splat(0xff);
    // Half the length, rounded down, in bits.
    let middle_at = _mm512_and_si512(_mm512_slli_epi64::<2>(length), splat(!7));
    let middle = _mm512_and_si512(_mm512_srlv_epi64(first, middle_at), byte);
    let outer = _mm512_or_si512(
        _mm512_slli_epi64::<16>(_mm512_and_si512(first, byte)),
        _mm512_srli_epi64::<56>(last),
    );
    let inner = _mm512_or_si512(
        _mm512_slli_epi64::<24>(middle),
        _mm512_slli_epi64::<8>(length),
    );
    let hash = xor3(outer, inner, splat(FLIP_3));
    let hash = _mm512_xor_si512(hash, _mm512_srli_epi64::<33>(hash));
    let hash = _mm512_mullo_epi64(hash, splat(PRIME64_2));
    let hash = _mm512_xor_si512(hash, _mm512_srli_epi64::<29>(hash));
    let hash = _mm512_mullo_epi64(hash, splat(PRIME64_3));
    _mm512_xor_si512(hash, _mm512_srli_epi64::<32>(hash))
}

#[target_feature(enable = "avx512f,avx512dq")]
fn hash_8(first: __m512i, last: __m512i, length: __m512i) -> __m512i {
    let bytes = _mm512_or_si512(
        _mm512_srli_epi64::<32>(last),
        _mm512_slli_epi64::<32>(first),
    );
    let hash = _mm512_xor_si512(bytes, splat(FLIP_8));
    let hash = xor3(
        hash,
        _mm512_rol_epi64::<49>(hash),
        _mm512_rol_epi64::<24>(hash),
    );
    let hash = _mm512_mullo_epi64(hash, splat(PRIME_MX2));
    let shifted = _mm512_add_epi64(_mm512_srli_epi64::<35>(hash), length);
    let hash = _mm512_mullo_epi64(_mm512_xor_si512(hash, shifted), splat(PRIME_MX2));
    _mm512_xor_si512(hash, _mm512_srli_epi64::<28>(hash))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn hash_16(first: __m512i, last: __m512i, length: __m512i) -> __m512i {
    let low = _mm512_xor_si512(first, splat(FLIP_16_FIRST));
    let high = _mm512_xor_si512(last, splat(FLIP_16_LAST));
    let ends = _mm512_add_epi64(swap_bytes(low), high);
    let sum = _mm512_add_epi64(_mm512_add_epi64(length, ends), fold(low, high));
    avalanche(sum)
}

/// As [`hash_fours`](super::xxh3::hash_fours).
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn hash_fours(numbers: &[u64], hashes: &mut [u64]) {
    let (groups, rest) = hashes.as_chunks_mut::<LANES>();
    let grouped = groups.len() * LANES;
    for (group, numbers) in groups
        .iter_mut()
        .zip(numbers.windows(LANES + 3).step_by(LANES))
    {
        // Number `i` of eight neighbouring shingles: eight neighbouring numbers.
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| {
            let eight = numbers[i..].first_chunk().unwrap_or(&[0; LANES]);
            _mm512_xor_si512(load(eight), splat(SECRET[i]))
        });
        let halves = _mm512_add_epi64(fold(a, b), fold(c, d));
        let length = splat(PRIME64_1.wrapping_mul(32));
        store(avalanche(_mm512_add_epi64(length, halves)), group);
    }
    hash_fours_scalar(&numbers[grouped..], rest);
}

#[target_feature(enable = "avx512f")]
fn load(numbers: &[u64; LANES]) -> __m512i {
    // SAFETY: these are 64 bytes that may be read, at any address.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(vector: __m512i, numbers: &mut [u64; LANES]) {
    // SAFETY: these are 64 bytes that may be written, at any address.
    unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), vector) };
}

#[target_feature(enable = "avx512f")]
fn splat(number: u64) -> __m512i {
    _mm512_set1_epi64(number.cast_signed())
}

#[target_feature(enable = "avx512f")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    // The truth table of the exclusive or of three bits.
    _mm512_ternarylogic_epi64::<0b1001_0110>(a, b, c)
}

#[target_feature(enable = "avx512f,avx512bw")]
fn swap_bytes(numbers: __m512i) -> __m512i {
    const LAST_TO_FIRST: i64 = 0x0001_0203_0405_0607;
    const SECOND: i64 = LAST_TO_FIRST + 0x0808_0808_0808_0808;
    let order = _mm512_set_epi64(
        SECOND,
        LAST_TO_FIRST,
        SECOND,
        LAST_TO_FIRST,
        SECOND,
        LAST_TO_FIRST,
        SECOND,
        LAST_TO_FIRST,
    );
    _mm512_shuffle_epi8(numbers, order)
}

/// Both halves of each product, mixed, from four products of 32-bit halves.
#[target_feature(enable = "avx512f")]
fn fold(a: __m512i, b: __m512i) -> __m512i {
    let low_half = splat(0xffff_ffff);
    let a_high = _mm512_srli_epi64::<32>(a);
    let b_high = _mm512_srli_epi64::<32>(b);
    let low = _mm512_mul_epu32(a, b);
    let high = _mm512_mul_epu32(a_high, b_high);
    let inner = _mm512_mul_epu32(a_high, b);
    let outer = _mm512_mul_epu32(a, b_high);
    // None of these sums can overflow 64 bits.
    let middle = _mm512_add_epi64(
        _mm512_add_epi64(_mm512_srli_epi64::<32>(low), outer),
        _mm512_and_si512(inner, low_half),
    );
    let upper = _mm512_add_epi64(
        _mm512_add_epi64(high, _mm512_srli_epi64::<32>(inner)),
        _mm512_srli_epi64::<32>(middle),
    );
    let lower = _mm512_or_si512(
        _mm512_slli_epi64::<32>(middle),
        _mm512_and_si512(low, low_half),
    );
    _mm512_xor_si512(upper, lower)
}

#[target_feature(enable = "avx512f,avx512dq")]
fn avalanche(hash: __m512i) -> __m512i {
    let hash = _mm512_xor_si512(hash, _mm512_srli_epi64::<37>(hash));
    let hash = _mm512_mullo_epi64(hash, splat(PRIME_MX1));
    _mm512_xor_si512(hash, _mm512_srli_epi64::<32>(hash))
}
