//! The recipe `words-v1`: shingles of 4 words, hashed with XXH3.
//!
//! Everything needed to compute the same fingerprints elsewhere:
//!
//! 1. **Words.** Cut the text at the default word boundaries of UAX #29, untailored. Keep the
//!    pieces with at least one character that is `Alphabetic` or has `General_Category` N. No
//!    normalisation comes first. So `can't` and `3.14` are single words, spaces, punctuation and
//!    emoji are none, and each Han or Hiragana character is a word of its own. The boundaries
//!    deviate from UAX #29 only at an `Extended_Pictographic` character right after a zero-width
//!    joiner. It counts as no letter, even if it is one as `Ⓜ` is. A mark before it that would join
//!    a letter or a digit to the word before (WB7, WB7c, WB11) stays with that word.
//! 2. **Case.** Lower-case each word character by character, by the full mapping of
//!    `UnicodeData.txt` and the unconditional part of `SpecialCasing.txt`; no rule looks at
//!    neighbours or the language. So `İ` becomes `i` and U+0307, and `Σ` always `σ`, never `ς`.
//! 3. **Word hash.** XXH3-64, seed 0, of the word's UTF-8 bytes.
//! 4. **Features.** For each 4 consecutive words, XXH3-64, seed 0, of their 4 word hashes as 32
//!    bytes, each hash little-endian, in order. A text of 1 to 3 words has one feature, made the
//!    same way from the 8 to 24 bytes it has.
//! 5. **Fingerprint.** Each occurrence of a feature counts 1; a bit is 1 if strictly more than half
//!    of them have it. A text without words has fingerprint 0.
//!
//! Steps 1 and 2 follow Unicode 17.0. Later versions keep the result for all characters that 17.0
//! assigns, save for the rare correction of a property.
//!
//! Sources: Broder, "On the resemblance and containment of documents", 1997, for shingles;
//! <https://unicode.org/reports/tr29/>;
//! <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>.

use super::{Window, words};
use crate::scan::Level;
use crate::{BitCounter, Fingerprint};

/// The fingerprint of a text.
pub(super) fn fingerprint(text: &str) -> Fingerprint {
    fingerprint_at(Level::best(), text)
}

pub(super) fn fingerprint_at(level: Level, text: &str) -> Fingerprint {
    let mut counter = BitCounter::new();
    words::for_each_run(level, text, [Window::FOUR], |_, runs| counter.add_all(runs));
    counter.fingerprint()
}
