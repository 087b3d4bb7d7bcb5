//! The recipes `textdedup-N`: the SimHash of the Python package `text-dedup`.
//!
//! Source: <https://github.com/ChenghaoMou/text-dedup>, version 0.4.0, `simhash.py` with 64 bits.
//!
//! 1. The features are all runs of N consecutive characters (code points) of the text, each counted
//!    once. Each character is lower-cased by itself with Unicode's full mappings, the final sigma
//!    included (Python's `str.lower`). A text of fewer than N characters is one feature.
//! 2. The hash of a feature is XXH3-64, seed 0, of its UTF-8 bytes.
//! 3. A bit is 1 if strictly more than half of the features have it. The package writes these bits
//!    as 8 bytes, the most significant first.
//! 4. A text of fewer than 5 characters has no fingerprint: the package gives it a signature of one
//!    bit, which it then cannot permute.
//!
//! Case mappings grow with Unicode. These recipes follow Unicode 17.0.

use xxhash_rust::xxh3::xxh3_64;

use super::Window;
use crate::{Fingerprint, compute};

/// The fewest characters of a text that has a fingerprint: `min_length` of the package.
pub(super) const FEWEST: usize = 5;

/// The fingerprint of a text by runs of `window` characters; `None` if it is too short.
pub(super) fn fingerprint(text: &str, window: Window) -> Option<Fingerprint> {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    if starts.len() < FEWEST {
        return None;
    }
    let size = window.size().min(starts.len());
    starts.push(text.len());
    let mut lowered = String::new();
    let ends = starts[size..].iter();
    let mut hashes: Vec<u64> = starts
        .iter()
        .zip(ends)
        .map(|(&start, &end)| hash(&text[start..end], &mut lowered))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    Some(compute(hashes))
}

/// The hash of a run in lower case. `lowered` is room to work in, kept from run to run.
fn hash(run: &str, lowered: &mut String) -> u64 {
    lowered.clear();
    if run.is_ascii() {
        lowered.push_str(run);
        lowered.make_ascii_lowercase();
    } else {
        lowered.push_str(&run.to_lowercase());
    }
    xxh3_64(lowered.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextRecipe;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_hashes_as_the_recipe_reads(
            text in "(\\PC|[a-zA-Z0-9_ ]|[ΣΑσİ𐐀𝔞é你]){0,90}",
            size in prop_oneof![1..=8_u8, 1..=255_u8],
        ) {
            let recipe = TextRecipe::TextDedup(Window::new(size).unwrap());
            prop_assert_eq!(recipe.fingerprint(&text), recipe.fingerprint_by_definition(&text));
        }
    }

    #[test]
    fn a_text_of_fewer_than_five_characters_has_no_fingerprint() {
        assert_eq!(fingerprint("", Window::FOUR), None);
        assert_eq!(fingerprint("éééé", Window::FOUR), None);
        assert_ne!(fingerprint("ééééé", Window::FOUR), None);
    }

    #[test]
    fn a_text_shorter_than_the_window_is_one_feature() {
        let window = Window::new(9).unwrap();
        let whole = Fingerprint(xxh3_64(b"abcdefg"));
        assert_eq!(fingerprint("abcDEFG", window), Some(whole));
    }

    #[test]
    fn a_repeated_run_counts_once() {
        let window = Window::new(1).unwrap();
        assert_eq!(fingerprint("aaaaabc", window), fingerprint("abcbc", window));
    }
}
