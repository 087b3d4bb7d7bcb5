//! The recipes `jenkins-window-N` and `jenkins-window-N-compat`: the fingerprints of ChenghaoMou's
//! C++ program `simhash`.
//!
//! Source: <https://github.com/ChenghaoMou/simhash>, `src/main.cpp` and `include/jenkins.h`.
//!
//! 1. The features are all windows of N consecutive bytes of the text's UTF-8 as it is. Case,
//!    spacing and punctuation count, and windows may begin and end within a character. A shorter
//!    text is one feature as a whole; the empty text has none.
//! 2. The hash of a feature is lookup3's `hashlittle2` with both seeds 0: `pc` makes the upper 32
//!    bits, `pb` the lower. (The comment in lookup3 itself suggests the other order.)
//! 3. Each occurrence of a feature counts 1; a bit is 1 if strictly more than half of them have it.
//!    A text without features has fingerprint 0.
//!
//! The program drops the last window of each text. So does `-compat`, which gives its fingerprints:
//! a text of N bytes or fewer has no feature then. (Shorter ones make the program itself crash.)

use super::{Window, lookup3};
use crate::{BitCounter, Fingerprint};

/// Features that are hashed together.
const BATCH: usize = 64;

/// Bytes of the number that a short window is read as.
const NUMBER: usize = 16;

/// The fingerprint of a text by all its windows.
pub(super) fn fingerprint(text: &str, window: Window) -> Fingerprint {
    let size = window.size().min(text.len());
    match size {
        0 => Fingerprint(0),
        _ => count(text.as_bytes(), size),
    }
}

/// The fingerprint of a text by all its windows but the last.
pub(super) fn compat_fingerprint(text: &str, window: Window) -> Fingerprint {
    let bytes = text.as_bytes();
    let but_last = &bytes[..bytes.len().saturating_sub(1)];
    count(but_last, window.size())
}

/// The fingerprint by all windows of `size` bytes.
fn count(bytes: &[u8], size: usize) -> Fingerprint {
    let mut counter = BitCounter::new();
    let mut hashes = [0; BATCH];
    // As long as a number's worth of bytes follows the start, short windows are read as numbers.
    let mut rest = bytes;
    if size <= 12 {
        let kept = (1 << (size * 8)) - 1;
        while let Some(numbers) = rest.get(..BATCH + NUMBER - 1) {
            for (hash, number) in hashes.iter_mut().zip(numbers.array_windows()) {
                *hash = joined(lookup3::hash_block(
                    u128::from_le_bytes(*number) & kept,
                    size,
                ));
            }
            counter.add_all(&hashes);
            rest = &rest[BATCH..];
        }
    }
    for window in rest.windows(size) {
        counter.add(joined(lookup3::hash(window, (0, 0))));
    }
    counter.fingerprint()
}

/// The two hashes as one of 64 bits.
#[inline]
pub(super) fn joined((pc, pb): (u32, u32)) -> u64 {
    u64::from(pc) << 32 | u64::from(pb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextRecipe;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_hashes_as_the_recipe_reads(
            text in "\\PC{0,300}",
            size in prop_oneof![1..=14_u8, 1..=255_u8],
        ) {
            let window = Window::new(size).unwrap();
            for recipe in [TextRecipe::JenkinsWindow(window), TextRecipe::JenkinsWindowCompat(window)] {
                prop_assert_eq!(recipe.fingerprint(&text), recipe.fingerprint_by_definition(&text));
            }
        }
    }

    #[test]
    fn a_text_of_one_window_or_less_is_one_feature_or_none() {
        let whole = |text: &str| Fingerprint(joined(lookup3::hash(text.as_bytes(), (0, 0))));
        for text in ["a", "abcd", "abcde"] {
            assert_eq!(fingerprint(text, Window::FIVE), whole(text));
            assert_eq!(compat_fingerprint(text, Window::FIVE), Fingerprint(0));
        }
        assert_eq!(fingerprint("", Window::FIVE), Fingerprint(0));
        assert_eq!(compat_fingerprint("abcdef", Window::FIVE), whole("abcde"));
    }
}
