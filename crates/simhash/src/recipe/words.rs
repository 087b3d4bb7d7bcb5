//! The words of a text as hashes, and the hashes of their runs: what the recipes of words share.

mod ascii;
mod classes;
mod runs;
mod wide;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use super::Window;
use crate::scan::Level;
use ascii::AsciiWords;
pub(super) use ascii::ascii_length;
use runs::Runs;
use wide::WideWords;

/// A shorter piece of ASCII is no reason to leave the text around it, which has other characters.
const LONG_ASCII: usize = 12;

/// Hands the hashes of all runs of as many words as each of `windows` says to `take`, with the place of their window.
/// It hands over many at once, and those of a window in their order. A text with fewer words has one run; a text
/// without words has none.
pub(super) fn for_each_run<const N: usize>(
    level: Level,
    text: &str,
    windows: [Window; N],
    mut take: impl FnMut(usize, &[u64]),
) {
    let mut all = windows.map(Runs::new);
    for_each_word(level, text, |words| {
        for (at, runs) in all.iter_mut().enumerate() {
            runs.add_all(words, |runs| take(at, runs));
        }
    });
    for (at, runs) in all.into_iter().enumerate() {
        runs.finish(|runs| take(at, runs));
    }
}

/// Hands the hashes of all words to `take`, many at once, in their order.
fn for_each_word(level: Level, text: &str, mut take: impl FnMut(&[u64])) {
    let mut ascii = AsciiWords::new(level);
    let mut wide = None;
    let mut lowered = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let piece = ascii::prefix(rest);
        if piece == rest.len() || piece >= LONG_ASCII {
            take(ascii.hashes(&rest[..piece]));
            rest = &rest[piece..];
            continue;
        }
        let (piece, words) = wide.get_or_insert_with(WideWords::new).hashes(rest);
        if piece > 0 {
            take(words);
            rest = &rest[piece..];
            continue;
        }
        let (gap, after) = rest.split_at(wide::gap(rest));
        rest = after;
        for word in gap.unicode_words() {
            take(&[hash_word(word, &mut lowered)]);
        }
    }
}

/// The hashes of all runs of `window` words of a text, in their order. Words, their case and their
/// hashes are those of `words-v1`. A text with fewer words has one run; a text without words has
/// none.
#[must_use]
pub fn word_runs(text: &str, window: Window) -> Vec<u64> {
    // Words of European languages and code take about this many bytes.
    let mut all = Vec::with_capacity(text.len() / 5);
    for_each_run(Level::best(), text, [window], |_, runs| {
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
