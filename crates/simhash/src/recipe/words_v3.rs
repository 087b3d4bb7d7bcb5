//! The recipe `words-v3`: the lowest bits of 64 minima, 16 over words and 48 over runs of 2 words.
//!
//! Bit i is that of [`words-v2-1`](super::words_v2) if i is a multiple of 4, and that of `words-v2`
//! otherwise. A text without words has no fingerprint.
//!
//! A changed word changes two runs of 2 words, but only one word, and none that the text has
//! elsewhere too. So distance 3 finds more edited texts than with `words-v2`. The bits of words are
//! spread, because unlike texts of one language share words: blocks of such bits alone would often
//! be equal by chance.
//!
//! Fingerprints at distance d suggest 1 - d / 32 for a mean of two Jaccard similarities. That of the
//! sets of words has the weight 1/4, and that of the sets of runs 3/4.

use super::{Window, words_v2};
use crate::Fingerprint;
use crate::scan::Level;

/// The bits that look at words.
const OF_WORDS: u64 = 0x1111_1111_1111_1111;

/// The fingerprint of a text; `None` if it has no words.
pub(super) fn fingerprint(text: &str) -> Option<Fingerprint> {
    fingerprint_at(Level::best(), text)
}

pub(super) fn fingerprint_at(level: Level, text: &str) -> Option<Fingerprint> {
    let parts = [(Window::ONE, OF_WORDS), (Window::TWO, !OF_WORDS)];
    words_v2::joined(level, text, parts)
}
