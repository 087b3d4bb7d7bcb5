//! The recipes `leonsim-3` and `leonsim-4`: the fingerprints of Leon's Python package `simhash`.
//!
//! Source: <https://github.com/1e0ng/simhash>, version 2.1, whose values are reproduced bit for bit.
//!
//! 1. Lower-case the text with Unicode's full mappings, the final sigma included (Python's
//!    `str.lower`).
//! 2. Keep only letters (`General_Category` L), numbers (N) and `_`, and close the gaps. That is
//!    what Python's `\w` matches in a `str`; combining marks go, unlike in Unicode's own
//!    definition of `\w`. The package's expression also lists U+4E00 to U+9FCC: letters, all.
//! 3. The features are all runs of `width` consecutive characters (code points). A text of fewer
//!    is one feature as a whole, and so is the empty text.
//! 4. The hash of a feature is the last 8 bytes of the MD5 of its UTF-8 bytes, read big-endian.
//! 5. Each feature counts as often as it occurs; a bit is 1 if strictly more than half have it.
//!
//! `leonsim-4` is `Simhash(text)`. `leonsim-3` is the script in the package's README, which drops
//! `[^\w]+` and passes a list of 3-character features.
//!
//! Letters and case mappings grow with Unicode. These recipes follow Unicode 17.0, so a text with
//! characters that are newer than the Unicode of a given Python may get another fingerprint there. And `Simhash(text)` of 2.1.2 under
//! NumPy 2 fails where one run occurs more than 255 times; here it counts like any other.

use std::iter;
use std::ops::Range;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::scan::Level;
use crate::scan::md5::{Blocks, LANES};
use crate::{BitCounter, Fingerprint};

/// The most bytes that a run has: 4 characters of 4 bytes.
const RUN: usize = 16;

/// The fingerprint of a text by runs of `width` characters, at most 4.
pub(super) fn fingerprint(text: &str, width: usize) -> Fingerprint {
    fingerprint_at(Level::best(), text, width)
}

fn fingerprint_at(level: Level, text: &str, width: usize) -> Fingerprint {
    let mut kept = text.to_lowercase();
    kept.retain(is_kept);

    let mut counter = BitCounter::new();
    let mut blocks = Blocks::default();
    let mut filled = 0;
    for run in runs(&kept, width) {
        blocks.set_number(filled, number(kept.as_bytes(), run.clone()), run.len());
        filled += 1;
        if filled == LANES {
            counter.add_all(&blocks.last_halves(level));
            filled = 0;
        }
    }
    counter.add_all(&blocks.last_halves(level)[..filled]);
    counter.fingerprint()
}

/// Whether Python's `\w` matches a character.
pub(super) fn is_kept(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    matches!(
        character.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
    )
}

/// Where all runs of `width` characters lie, or the whole text if it has no more than that.
fn runs(text: &str, width: usize) -> impl Iterator<Item = Range<usize>> {
    let positions = || text.char_indices().map(|(at, _)| at);
    let starts = iter::once(0).chain(positions().skip(1));
    let ends = positions().skip(width).chain(iter::once(text.len()));
    starts.zip(ends).map(|(start, end)| start..end)
}

/// The bytes of a run as a number, the first one lowest.
#[inline]
fn number(text: &[u8], run: Range<usize>) -> u128 {
    match text[run.start..].first_chunk::<RUN>() {
        Some(&bytes) => {
            u128::from_le_bytes(bytes) & !u128::MAX.checked_shl(run.len() as u32 * 8).unwrap_or(0)
        }
        None => {
            let mut bytes = [0; RUN];
            bytes[..run.len()].copy_from_slice(&text[run]);
            u128::from_le_bytes(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest, Md5};
    use proptest::prelude::*;

    use crate::TextRecipe;

    fn hash(run: &str) -> u64 {
        let digest: [u8; 16] = Md5::digest(run).into();
        u128::from_be_bytes(digest) as u64
    }

    proptest! {
        #[test]
        fn any_text_hashes_as_the_recipe_reads(
            text in "(\\PC|[a-zA-Z0-9_ ]|[ΣΑσİ𐐀𝔞é你]){0,90}",
        ) {
            for (recipe, width) in [(TextRecipe::Leonsim3, 3), (TextRecipe::Leonsim4, 4)] {
                let expected = recipe.fingerprint_by_definition(&text).unwrap();
                for level in Level::available() {
                    prop_assert_eq!(fingerprint_at(level, &text, width), expected, "{:?}", level);
                }
            }
        }
    }

    fn kept(text: &str) -> String {
        text.chars()
            .filter(|&character| is_kept(character))
            .collect()
    }

    #[test]
    fn runs_overlap_by_all_but_one_character() {
        let all =
            |text: &'static str, width| runs(text, width).map(|run| &text[run]).collect::<Vec<_>>();
        assert_eq!(all("été12", 3), ["été", "té1", "é12"]);
        assert_eq!(all("été1", 4), ["été1"]);
    }

    #[test]
    fn a_short_text_is_one_run_even_when_empty() {
        assert!(runs("é", 3).eq(iter::once(0..2)));
        assert!(runs("", 3).eq(iter::once(0..0)));
    }

    #[test]
    fn letters_numbers_and_the_underscore_are_kept() {
        assert_eq!(kept("a_B 9-²½Ⅷ!٣你。"), "a_B9²½Ⅷ٣你");
    }

    #[test]
    fn marks_and_symbols_are_dropped() {
        assert_eq!(kept("e\u{301} हिन्दी Ⓜ🙂"), "eहनद");
    }

    #[test]
    fn repeated_runs_weigh_more() {
        // aaa, aaa, aab: the majority is aaa alone.
        assert_eq!(fingerprint("aaaab", 3).0, hash("aaa"));
    }
}
