//! XXH3-64 with seed 0 of many short inputs at once: words of up to 16 bytes, and 4 hashes in a row.
//!
//! The formulas and constants are those of the published specification,
//! <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>. It has one formula for 1 to 3
//! bytes, one for 4 to 8, and one for 9 to 16; all three read at most the first and the last 8
//! bytes, so a word is given as those two numbers and its length.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use xxhash_rust::xxh3::xxh3_64;

use super::Level;
#[cfg(target_arch = "x86_64")]
use super::xxh3_avx512;

/// Most bytes of a word that the formulas here take.
pub(super) const SHORT: u64 = 16;

/// The first eight numbers of the specification's default secret.
pub(super) const SECRET: [u64; 8] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
];

pub(super) const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
pub(super) const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
pub(super) const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
pub(super) const PRIME_MX1: u64 = 0x1656_6791_9e37_79f9;
pub(super) const PRIME_MX2: u64 = 0x9fb2_1c65_1e98_df25;

/// What the formula for 1 to 3 bytes mixes in.
pub(super) const FLIP_3: u64 = (SECRET[0] ^ SECRET[0] >> 32) & 0xffff_ffff;
/// What the formula for 4 to 8 bytes mixes in.
pub(super) const FLIP_8: u64 = SECRET[1] ^ SECRET[2];
/// What the formula for 9 to 16 bytes mixes into the first 8 bytes.
pub(super) const FLIP_16_FIRST: u64 = SECRET[3] ^ SECRET[4];
/// What the formula for 9 to 16 bytes mixes into the last 8 bytes.
pub(super) const FLIP_16_LAST: u64 = SECRET[5] ^ SECRET[6];

/// Where a word starts and where it ends, in bytes.
pub(crate) type Edges = [u16; 2];

/// Hashes words of one byte or more: `hashes[i]` becomes the hash of the word between `words[i]`.
///
/// # Panics
/// If fewer than 8 bytes of `text` precede the first word or follow the start of the last one, or
/// if there are more words than hashes.
pub(crate) fn hash_words(level: Level, text: &[u8], words: &[Edges], hashes: &mut [u64]) {
    let hashes = &mut hashes[..words.len()];
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { xxh3_avx512::hash_words(text, words, hashes) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => hash_words_scalar(text, words, hashes),
        Level::Scalar => hash_words_scalar(text, words, hashes),
    }
}

fn hash_words_scalar(text: &[u8], words: &[Edges], hashes: &mut [u64]) {
    for (hash, &edges) in hashes.iter_mut().zip(words) {
        let (first, last, length) = ends(text, edges);
        *hash = match length {
            ..=SHORT => hash_short(first, last, length),
            _ => hash_long(text, edges),
        };
    }
}

/// The 8 bytes from a word's first on, the 8 bytes up to its last, and its length.
#[inline(always)]
pub(super) fn ends(text: &[u8], [start, end]: Edges) -> (u64, u64, u64) {
    let (start, end) = (usize::from(start), usize::from(end));
    let number = |at: usize| {
        let bytes = text[at..].first_chunk();
        u64::from_le_bytes(*bytes.unwrap_or(&[0; 8]))
    };
    (number(start), number(end - 8), (end - start) as u64)
}

/// The hash of a word that is too long for the formulas here.
#[cold]
pub(super) fn hash_long(text: &[u8], [start, end]: Edges) -> u64 {
    xxh3_64(&text[usize::from(start)..usize::from(end)])
}

#[inline]
fn hash_short(first: u64, last: u64, length: u64) -> u64 {
    match length {
        0..=3 => {
            let middle = first >> (length / 2 * 8) & 0xff;
            let bytes = (first & 0xff) << 16 | middle << 24 | last >> 56 | length << 8;
            let mut hash = bytes ^ FLIP_3;
            hash = (hash ^ hash >> 33).wrapping_mul(PRIME64_2);
            hash = (hash ^ hash >> 29).wrapping_mul(PRIME64_3);
            hash ^ hash >> 32
        }
        4..=8 => {
            let mut hash = ((last >> 32) + (first << 32)) ^ FLIP_8;
            hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
            hash = hash.wrapping_mul(PRIME_MX2);
            hash = (hash ^ ((hash >> 35) + length)).wrapping_mul(PRIME_MX2);
            hash ^ hash >> 28
        }
        _ => {
            let low = first ^ FLIP_16_FIRST;
            let high = last ^ FLIP_16_LAST;
            let sum = length
                .wrapping_add(low.swap_bytes())
                .wrapping_add(high)
                .wrapping_add(fold(low, high));
            avalanche(sum)
        }
    }
}

/// Hashes each 4 consecutive numbers as 32 bytes: `hashes[i]` becomes the hash of those from
/// `numbers[i]` on.
///
/// # Panics
/// If there are fewer than 3 numbers more than hashes.
pub(crate) fn hash_fours(level: Level, numbers: &[u64], hashes: &mut [u64]) {
    let numbers = &numbers[..hashes.len() + 3];
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { xxh3_avx512::hash_fours(numbers, hashes) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => hash_fours_scalar(numbers, hashes),
        Level::Scalar => hash_fours_scalar(numbers, hashes),
    }
}

pub(super) fn hash_fours_scalar(numbers: &[u64], hashes: &mut [u64]) {
    for (hash, &four) in hashes.iter_mut().zip(numbers.array_windows()) {
        *hash = hash_four(four);
    }
}

/// The hash of 4 numbers, taken as 32 bytes.
#[inline]
fn hash_four([a, b, c, d]: [u64; 4]) -> u64 {
    let sum = PRIME64_1
        .wrapping_mul(32)
        .wrapping_add(fold(a ^ SECRET[0], b ^ SECRET[1]))
        .wrapping_add(fold(c ^ SECRET[2], d ^ SECRET[3]));
    avalanche(sum)
}

/// Both halves of a product, mixed.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn avalanche(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 37).wrapping_mul(PRIME_MX1);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64;

    /// Hashes words that follow one another in a text.
    fn hashed(level: Level, words: &[Vec<u8>], between: &[u8]) -> Vec<u64> {
        let mut text = vec![0xa5; 8];
        let mut edges = Vec::new();
        for word in words {
            let start = text.len() as u16;
            text.extend(word);
            edges.push([start, text.len() as u16]);
            text.extend(between);
        }
        text.extend([0xa5; 8]);
        let mut hashes = vec![0; words.len()];
        hash_words(level, &text, &edges, &mut hashes);
        hashes
    }

    proptest! {
        #[test]
        fn every_level_hashes_words_as_specified(
            words in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..24), 0..40),
            between in prop::collection::vec(any::<u8>(), 0..3),
        ) {
            let expected: Vec<u64> = words.iter().map(|word| xxh3_64(word)).collect();
            for level in Level::available() {
                prop_assert_eq!(&hashed(level, &words, &between), &expected, "{:?}", level);
            }
        }

        #[test]
        fn every_level_hashes_four_numbers_as_32_bytes(
            numbers in prop::collection::vec(any::<u64>(), 3..100),
        ) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let expected: Vec<u64> = bytes.windows(32).step_by(8).map(xxh3_64).collect();
            for level in Level::available() {
                let mut hashes = vec![0; numbers.len() - 3];
                hash_fours(level, &numbers, &mut hashes);
                prop_assert_eq!(&hashes, &expected, "{:?}", level);
            }
        }
    }

    #[test]
    fn every_length_has_its_formula_at_every_level() {
        let word = |length| (1..=length).map(|byte: u8| byte.wrapping_mul(37)).collect();
        let words: Vec<Vec<u8>> = (1..=200).map(word).collect();
        let expected: Vec<u64> = words.iter().map(|word| xxh3_64(word)).collect();
        for level in Level::available() {
            assert_eq!(hashed(level, &words, b" "), expected, "{level:?}");
        }
    }
}
