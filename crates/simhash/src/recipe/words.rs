//! The words of a text as hashes, and the hashes of their runs: what the recipes of words share.

mod ascii;
mod runs;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use super::Window;
use crate::scan::Level;
use ascii::AsciiWords;
pub(super) use ascii::ascii_length;
use runs::Runs;

/// Hands the hashes of all runs of `window` words to `take`, many at once, in their order. A text
/// with fewer words has one run; a text without words has none.
pub(super) fn for_each_run(level: Level, text: &str, window: Window, take: impl FnMut(&[u64])) {
    let mut runs = Runs::new(window, take);
    let mut ascii = AsciiWords::new(level);
    let mut lowered = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(ascii::prefix(rest));
        rest = after;
        if !piece.is_empty() {
            runs.add_all(ascii.hashes(piece));
            continue;
        }
        let (gap, after) = rest.split_at(ascii::gap(rest));
        rest = after;
        for word in gap.unicode_words() {
            runs.add_all(&[hash_word(word, &mut lowered)]);
        }
    }
    runs.finish();
}

/// The hashes of all runs of `window` words of a text, in their order. Words, their case and their
/// hashes are those of `words-v1`. A text with fewer words has one run; a text without words has
/// none.
#[must_use]
pub fn word_runs(text: &str, window: Window) -> Vec<u64> {
    // Words of European languages and code take about this many bytes.
    let mut all = Vec::with_capacity(text.len() / 5);
    for_each_run(Level::best(), text, window, |runs| {
        all.extend_from_slice(runs);
    });
    all
}

/// The hash of a word in lower case. `lowered` is room to work in, kept from word to word.
fn hash_word(word: &str, lowered: &mut String) -> u64 {
    lowered.clear();
    lowered.extend(word.chars().flat_map(char::to_lowercase));
    xxh3_64(lowered.as_bytes())
}

#[cfg(test)]
pub(super) mod tests;
