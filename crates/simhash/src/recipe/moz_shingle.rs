//! The recipes `moz-shingle-N`: the fingerprints of the README script of Moz's `simhash-py`.
//!
//! Source: <https://github.com/seomoz/simhash-py>, version 0.4.
//!
//! 1. The tokens are what is between single spaces (U+0020) of the text, Python's
//!    `text.split(' ')`. Nothing is lower-cased or dropped. Other white space is part of a token,
//!    and two spaces in a row have an empty token between them.
//! 2. The features are all runs of N consecutive tokens, joined by a space again. A text of fewer
//!    tokens has no feature.
//! 3. The hash of a feature is the first 8 bytes of the MD5 of its UTF-8 bytes, big-endian
//!    (`unsigned_hash`).
//! 4. Each occurrence of a feature counts 1; a bit is 1 if strictly more than half of them have it.
//!    A text without features has fingerprint 0.
//!
//! The script there passes `shingle(text.split(' '), window=4)` to `unsigned_hash`, which takes
//! bytes: joining the tokens by a space is how its tests make one of the other.

use md5::{Digest, Md5};

use super::Window;
use crate::scan::Level;
use crate::scan::md5::{Blocks, LANES, LONGEST};
use crate::{BitCounter, Fingerprint};

/// The fingerprint of a text by runs of `window` tokens.
pub(super) fn fingerprint(text: &str, window: Window) -> Fingerprint {
    let level = Level::best();
    let mut counter = BitCounter::new();
    let mut blocks = Blocks::default();
    let mut filled = 0;
    for shingle in shingles(text, window.size()) {
        if shingle.len() > LONGEST {
            counter.add(hash_long(shingle));
            continue;
        }
        blocks.set(filled, shingle);
        filled += 1;
        if filled == LANES {
            counter.add_all(&blocks.first_halves(level));
            filled = 0;
        }
    }
    counter.add_all(&blocks.first_halves(level)[..filled]);
    counter.fingerprint()
}

/// All runs of `window` tokens.
fn shingles(text: &str, window: usize) -> impl Iterator<Item = &[u8]> {
    let bytes = text.as_bytes();
    let spaces = || (0..bytes.len()).filter(|&at| bytes[at] == b' ');
    let starts = std::iter::once(0).chain(spaces().map(|space| space + 1));
    let ends = spaces().chain([bytes.len()]).skip(window - 1);
    starts.zip(ends).map(|(start, end)| &bytes[start..end])
}

/// The first 8 bytes of the MD5 of a feature of any length.
fn hash_long(shingle: &[u8]) -> u64 {
    let digest: [u8; 16] = Md5::digest(shingle).into();
    (u128::from_be_bytes(digest) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextRecipe;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_hashes_as_the_recipe_reads(
            text in "([a-zé]{0,9} ){0,80}|\\PC{0,60}",
            window in 1..=20_u8,
        ) {
            let recipe = TextRecipe::MozShingle(Window::new(window).unwrap());
            prop_assert_eq!(recipe.fingerprint(&text), recipe.fingerprint_by_definition(&text));
        }
    }

    #[test]
    fn tokens_lie_between_single_spaces() {
        let all = |text: &'static str, window| {
            let texts = shingles(text, window).map(|shingle| str::from_utf8(shingle).unwrap());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(all("a b c d e", 4), ["a b c d", "b c d e"]);
        assert_eq!(all("a  b\nc ", 2), ["a ", " b\nc", "b\nc "]);
        assert_eq!(all("", 1), [""]);
        assert_eq!(all("a b c", 4), [""; 0]);
    }
}
