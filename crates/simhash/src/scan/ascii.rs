//! The classes of ASCII bytes that word boundaries depend on, as one bit a byte.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use super::Level;
#[cfg(target_arch = "x86_64")]
use super::{ascii_avx2, ascii_avx512};

/// Bytes that are classified together: one for each bit of a mask.
pub(crate) const BLOCK: usize = 64;

/// The bytes of one block by class: bit `i` of a mask stands for byte `i`. What follows the end of
/// the text is in no class.
///
/// The classes are those of UAX #29's `Word_Break` as far as they occur in ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    /// `ALetter`: A to Z and a to z.
    pub(crate) letters: u64,
    /// `Numeric`: 0 to 9.
    pub(crate) digits: u64,
    /// `ExtendNumLet`: the underscore.
    pub(crate) underscores: u64,
    /// `MidLetter`, `MidNumLet` or `Single_Quote`: `:`, `.` and `'` hold letters together.
    pub(crate) between_letters: u64,
    /// `MidNum`, `MidNumLet` or `Single_Quote`: `,`, `;`, `.` and `'` hold digits together.
    pub(crate) between_digits: u64,
}

/// Classifies ASCII text block by block, and copies it to `lowered` in lower case. Zeros fill the
/// last block of the copy.
///
/// # Panics
/// If `classes` or `lowered` has less room than the blocks of the text need.
pub(crate) fn classify(level: Level, text: &[u8], lowered: &mut [u8], classes: &mut [Classes]) {
    debug_assert!(text.is_ascii());
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    let (lower_blocks, _) = lowered.as_chunks_mut::<BLOCK>();
    assert!(lower_blocks.len().min(classes.len()) >= text.len().div_ceil(BLOCK));
    classify_blocks(level, blocks, lower_blocks, classes);
    if !rest.is_empty() {
        let mut padded = [0; BLOCK];
        padded[..rest.len()].copy_from_slice(rest);
        let at = blocks.len();
        classify_blocks(
            level,
            &[padded],
            &mut lower_blocks[at..],
            &mut classes[at..],
        );
    }
}

fn classify_blocks(
    level: Level,
    blocks: &[[u8; BLOCK]],
    lowered: &mut [[u8; BLOCK]],
    classes: &mut [Classes],
) {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) | Level::Avx512(_) => unsafe {
            ascii_avx512::classify_blocks(blocks, lowered, classes);
        },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { ascii_avx2::classify_blocks(blocks, lowered, classes) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => classify_blocks_scalar(blocks, lowered, classes),
        Level::Scalar => classify_blocks_scalar(blocks, lowered, classes),
    }
}

fn classify_blocks_scalar(
    blocks: &[[u8; BLOCK]],
    lowered: &mut [[u8; BLOCK]],
    classes: &mut [Classes],
) {
    for ((block, lower), class) in blocks.iter().zip(lowered).zip(classes) {
        *class = Classes::default();
        for (at, (byte, low)) in block.iter().zip(lower).enumerate() {
            *low = byte.to_ascii_lowercase();
            let kind = KINDS[usize::from(byte & 0x7f)];
            class.letters |= u64::from(kind & 1) << at;
            class.digits |= u64::from(kind >> 1 & 1) << at;
            class.underscores |= u64::from(kind >> 2 & 1) << at;
            class.between_letters |= u64::from(kind >> 3 & 1) << at;
            class.between_digits |= u64::from(kind >> 4) << at;
        }
    }
}

/// The classes of each ASCII character: bits 0 to 4 in the order of the fields of [`Classes`].
const KINDS: [u8; 128] = {
    let mut kinds = [0; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'A'..=b'Z' | b'a'..=b'z' => 1,
            b'0'..=b'9' => 1 << 1,
            b'_' => 1 << 2,
            b':' => 1 << 3,
            b'.' | b'\'' => 1 << 3 | 1 << 4,
            b',' | b';' => 1 << 4,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The classes and the lower case of a text at one level.
    fn all(level: Level, text: &[u8]) -> (Vec<Classes>, Vec<u8>) {
        let blocks = text.len().div_ceil(BLOCK);
        let mut classes = vec![Classes::default(); blocks];
        let mut lowered = vec![0xff; blocks * BLOCK];
        classify(level, text, &mut lowered, &mut classes);
        (classes, lowered)
    }

    proptest! {
        #[test]
        fn every_level_classifies_like_scalar_code(
            text in prop::collection::vec(0..128_u8, 0..300),
        ) {
            let expected = all(Level::Scalar, &text);
            for level in Level::available() {
                prop_assert_eq!(&all(level, &text), &expected, "{:?}", level);
            }
        }
    }

    #[test]
    fn every_character_has_its_classes() {
        let text: Vec<u8> = (0..128).collect();
        let of = |mask: fn(&Classes) -> u64| -> String {
            let (classes, _) = all(Level::Scalar, &text);
            let has = |byte: &u8| {
                mask(&classes[usize::from(*byte) / BLOCK]) >> (usize::from(*byte) % BLOCK) & 1 == 1
            };
            (0..128).filter(has).map(char::from).collect()
        };
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        assert_eq!(of(|classes| classes.letters), letters);
        assert_eq!(of(|classes| classes.digits), "0123456789");
        assert_eq!(of(|classes| classes.underscores), "_");
        assert_eq!(of(|classes| classes.between_letters), "'.:");
        assert_eq!(of(|classes| classes.between_digits), "',.;");
    }

    #[test]
    fn the_copy_is_in_lower_case_and_padded_with_zeros() {
        let (_, lowered) = all(Level::Scalar, b"@AZ[`az{");
        assert_eq!(&lowered[..8], b"@az[`az{");
        assert_eq!(lowered[8..], [0; 56]);
    }
}
