//! MD5 of 16 short messages at once: one lane each, one block each (RFC 1321).
//!
//! The loop over the lanes is plain: its body has no branch and no call. So the compiler makes it
//! one vector of 16 lanes under AVX-512, two of 8 under AVX2, or four of 4 under SSE2.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use super::Level;

/// Messages that are hashed together.
pub(crate) const LANES: usize = 16;

/// Most bytes of a message that fits one block beside its end mark and length.
pub(crate) const LONGEST: usize = 55;

/// The padded blocks of 16 messages, by word and then by lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocks {
    words: [[u32; LANES]; 16],
}

/// The digests by lane: `[0]` to `[3]` are the four words that make one, each little-endian.
type Digests = [[u32; LANES]; 4];

impl Blocks {
    /// Sets the message of a lane.
    ///
    /// # Panics
    /// If the message is longer than [`LONGEST`].
    pub(crate) fn set(&mut self, lane: usize, message: &[u8]) {
        let mut block = [0; 64];
        block[..message.len()].copy_from_slice(message);
        block[message.len()] = 0x80;
        block[56..].copy_from_slice(&(message.len() as u64 * 8).to_le_bytes());
        let (words, _) = block.as_chunks();
        for (row, &word) in self.words.iter_mut().zip(words) {
            row[lane] = u32::from_le_bytes(word);
        }
    }

    /// Sets the message of a lane that held none but such before: the lowest `length` bytes of a
    /// number whose other bytes are 0. Faster than [`set`](Self::set), for up to 16 bytes.
    #[inline]
    pub(crate) fn set_number(&mut self, lane: usize, message: u128, length: usize) {
        debug_assert!(length <= 16);
        let end = 0x80_u128.checked_shl(length as u32 * 8);
        let message = message | end.unwrap_or(0);
        for (index, row) in self.words.iter_mut().take(4).enumerate() {
            row[lane] = (message >> (index * 32)) as u32;
        }
        self.words[4][lane] = if length == 16 { 0x80 } else { 0 };
        self.words[14][lane] = length as u32 * 8;
    }

    /// The first 8 bytes of each digest, big-endian.
    pub(crate) fn first_halves(&self, level: Level) -> [u64; LANES] {
        let [a, b, _, _] = digests(level, &self.words);
        big_endian(a, b)
    }

    /// The last 8 bytes of each digest, big-endian.
    pub(crate) fn last_halves(&self, level: Level) -> [u64; LANES] {
        let [_, _, c, d] = digests(level, &self.words);
        big_endian(c, d)
    }
}

fn big_endian(high: [u32; LANES], low: [u32; LANES]) -> [u64; LANES] {
    let mut halves = [0; LANES];
    for (half, (high, low)) in halves.iter_mut().zip(high.into_iter().zip(low)) {
        *half = u64::from(high.swap_bytes()) << 32 | u64::from(low.swap_bytes());
    }
    halves
}

fn digests(level: Level, words: &[[u32; LANES]; 16]) -> Digests {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) | Level::Avx512(_) => unsafe { digests_avx512(words) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { digests_avx2(words) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => digests_scalar(words),
        Level::Scalar => digests_scalar(words),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn digests_avx512(words: &[[u32; LANES]; 16]) -> Digests {
    digests_scalar(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn digests_avx2(words: &[[u32; LANES]; 16]) -> Digests {
    digests_scalar(words)
}

const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The constant of each step: the binary digits of the sines of 1 to 64.
const SINES: [[u32; 4]; 16] = [
    [0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee],
    [0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501],
    [0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be],
    [0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821],
    [0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa],
    [0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8],
    [0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed],
    [0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a],
    [0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c],
    [0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70],
    [0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05],
    [0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665],
    [0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039],
    [0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1],
    [0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1],
    [0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391],
];

/// Which word of the message each step adds.
const ORDER: [[usize; 4]; 16] = [
    [0, 1, 2, 3],
    [4, 5, 6, 7],
    [8, 9, 10, 11],
    [12, 13, 14, 15],
    [1, 6, 11, 0],
    [5, 10, 15, 4],
    [9, 14, 3, 8],
    [13, 2, 7, 12],
    [5, 8, 11, 14],
    [1, 4, 7, 10],
    [13, 0, 3, 6],
    [9, 12, 15, 2],
    [0, 7, 14, 5],
    [12, 3, 10, 1],
    [8, 15, 6, 13],
    [4, 11, 2, 9],
];

/// All 64 steps for every lane.
#[inline(always)]
fn digests_scalar(words: &[[u32; LANES]; 16]) -> Digests {
    let mut digests = [[0; LANES]; 4];
    for lane in 0..LANES {
        let mut state = START;
        let choose = |b: u32, c: u32, d: u32| (b & c) | (!b & d);
        state = round::<0>(state, choose, [7, 12, 17, 22], words, lane);
        let choose = |b: u32, c: u32, d: u32| (b & d) | (c & !d);
        state = round::<4>(state, choose, [5, 9, 14, 20], words, lane);
        let parity = |b: u32, c: u32, d: u32| b ^ c ^ d;
        state = round::<8>(state, parity, [4, 11, 16, 23], words, lane);
        let mixture = |b: u32, c: u32, d: u32| c ^ (b | !d);
        state = round::<12>(state, mixture, [6, 10, 15, 21], words, lane);

        for (row, (word, start)) in digests.iter_mut().zip(state.into_iter().zip(START)) {
            row[lane] = word.wrapping_add(start);
        }
    }
    digests
}

/// 16 steps, from `ORDER[FIRST]` on. Without a loop: only then does the loop over the lanes become
/// vectors.
#[inline(always)]
fn round<const FIRST: usize>(
    state: [u32; 4],
    mix: impl Fn(u32, u32, u32) -> u32 + Copy,
    turns: [u32; 4],
    words: &[[u32; LANES]; 16],
    lane: usize,
) -> [u32; 4] {
    let state = four_steps(state, mix, turns, FIRST, words, lane);
    let state = four_steps(state, mix, turns, FIRST + 1, words, lane);
    let state = four_steps(state, mix, turns, FIRST + 2, words, lane);
    four_steps(state, mix, turns, FIRST + 3, words, lane)
}

/// Four steps: each of the state's words changes once.
#[inline(always)]
fn four_steps(
    mut state: [u32; 4],
    mix: impl Fn(u32, u32, u32) -> u32,
    turns: [u32; 4],
    four: usize,
    words: &[[u32; LANES]; 16],
    lane: usize,
) -> [u32; 4] {
    for step in 0..4 {
        let [a, b, c, d] = state;
        let sum = a
            .wrapping_add(mix(b, c, d))
            .wrapping_add(SINES[four][step])
            .wrapping_add(words[ORDER[four][step]][lane]);
        state = [d, b.wrapping_add(sum.rotate_left(turns[step])), b, c];
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest, Md5};
    use proptest::prelude::*;

    /// Both halves of the digest by the library.
    fn halves(message: &[u8]) -> (u64, u64) {
        let digest: [u8; 16] = Md5::digest(message).into();
        let number = u128::from_be_bytes(digest);
        ((number >> 64) as u64, number as u64)
    }

    fn number(message: &[u8]) -> u128 {
        let mut bytes = [0; 16];
        bytes[..message.len()].copy_from_slice(message);
        u128::from_le_bytes(bytes)
    }

    proptest! {
        #[test]
        fn every_level_makes_the_digests_of_the_library(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=LONGEST), LANES),
        ) {
            let mut blocks = Blocks::default();
            for (lane, message) in messages.iter().enumerate() {
                blocks.set(lane, message);
            }
            let (first, last): (Vec<_>, Vec<_>) =
                messages.iter().map(|message| halves(message)).unzip();
            for level in Level::available() {
                prop_assert_eq!(&blocks.first_halves(level)[..], &first, "{:?}", level);
                prop_assert_eq!(&blocks.last_halves(level)[..], &last, "{:?}", level);
            }
        }

        #[test]
        fn numbers_are_messages_like_others(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=16), LANES * 3),
        ) {
            let mut blocks = Blocks::default();
            for messages in messages.chunks(LANES) {
                for (lane, message) in messages.iter().enumerate() {
                    blocks.set_number(lane, number(message), message.len());
                }
                let expected: Vec<u64> = messages.iter().map(|message| halves(message).0).collect();
                prop_assert_eq!(&blocks.first_halves(Level::Scalar)[..], &expected);
            }
        }
    }

    #[test]
    fn every_length_of_a_block_is_padded_right() {
        for length in 0..=LONGEST {
            let message = vec![0xa5; length];
            let mut blocks = Blocks::default();
            blocks.set(LANES - 1, &message);
            let hash = blocks.first_halves(Level::best())[LANES - 1];
            assert_eq!(hash, halves(&message).0, "{length}");
        }
    }
}
