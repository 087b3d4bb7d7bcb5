//! The recipe `words-v1`: shingles of 4 words, hashed with XXH3.
//!
//! Everything needed to compute the same fingerprints elsewhere:
//!
//! 1. **Words.** Cut the text at the default word boundaries of UAX #29, untailored, and keep the
//!    pieces with at least one character that is `Alphabetic` or has `General_Category` N. No
//!    normalisation comes first. So `can't` and `3.14` are single words, spaces, punctuation
//!    and emoji are none, and each Han or Hiragana character is a word of its own.
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

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use crate::{BitCounter, Fingerprint};

/// Words in a shingle.
const SHINGLE: usize = 4;

/// Bytes of a word hash.
const HASH_BYTES: usize = 8;

/// The fingerprint of a text.
pub(super) fn fingerprint(text: &str) -> Fingerprint {
    let mut shingles = Shingles::new();
    let mut lowered = String::new();
    // No word boundary rule reaches across a line feed (WB3a, WB3b), so lines can be cut one by
    // one, and those of plain ASCII take the library's fast path whatever the others hold.
    for line in text.split('\n') {
        for word in line.unicode_words() {
            shingles.add(hash_word(word, &mut lowered));
        }
    }
    shingles.fingerprint()
}

/// Counts the features of a sequence of word hashes.
struct Shingles {
    counter: BitCounter,
    /// The hashes of the latest words, the newest last.
    latest: [u8; SHINGLE * HASH_BYTES],
    /// How many words the first shingle still lacks.
    missing: usize,
}

impl Shingles {
    const fn new() -> Self {
        Self {
            counter: BitCounter::new(),
            latest: [0; SHINGLE * HASH_BYTES],
            missing: SHINGLE,
        }
    }

    fn add(&mut self, word: u64) {
        self.latest.copy_within(HASH_BYTES.., 0);
        self.latest[(SHINGLE - 1) * HASH_BYTES..].copy_from_slice(&word.to_le_bytes());
        self.missing = self.missing.saturating_sub(1);
        if self.missing == 0 {
            self.counter.add(xxh3_64(&self.latest));
        }
    }

    fn fingerprint(mut self) -> Fingerprint {
        if self.missing > 0 && self.missing < SHINGLE {
            let short = &self.latest[self.missing * HASH_BYTES..];
            self.counter.add(xxh3_64(short));
        }
        self.counter.fingerprint()
    }
}

/// The hash of a word in lower case. `lowered` is room to work in, kept from word to word.
fn hash_word(word: &str, lowered: &mut String) -> u64 {
    let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if word.bytes().all(is_lower) {
        return xxh3_64(word.as_bytes());
    }
    lowered.clear();
    if word.is_ascii() {
        lowered.push_str(word);
        lowered.make_ascii_lowercase();
    } else {
        lowered.extend(word.chars().flat_map(char::to_lowercase));
    }
    xxh3_64(lowered.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The recipe read aloud: a list of words, a list of hashes, a list of features.
    fn fingerprint_slowly(text: &str) -> Fingerprint {
        let hashes: Vec<u64> = text
            .split_word_bounds()
            .filter(|piece| piece.contains(char::is_alphanumeric))
            .map(|word| {
                let lowered: String = word.chars().flat_map(char::to_lowercase).collect();
                xxh3_64(lowered.as_bytes())
            })
            .collect();
        let mut features = Vec::new();
        for shingle in hashes.windows(SHINGLE.min(hashes.len()).max(1)) {
            let bytes: Vec<u8> = shingle.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            features.push(xxh3_64(&bytes));
        }

        let mut value = 0;
        for bit in 0..64 {
            let ones = features
                .iter()
                .filter(|&feature| feature >> bit & 1 == 1)
                .count();
            value |= u64::from(ones > features.len() - ones) << bit;
        }
        Fingerprint(value)
    }

    /// Pieces that meet each other at every kind of word boundary.
    const PIECES: [&str; 34] = [
        "a",
        "B",
        "word",
        "Word",
        "don't",
        "3.14",
        "1,000",
        "a.b",
        "a:b",
        "x_y",
        "_",
        "'",
        ".",
        ",",
        " ",
        "  ",
        "\n",
        "\r\n",
        "é",
        "E\u{301}",
        "ß",
        "ẞ",
        "İ",
        "Σ",
        "ΟΔΟΣ",
        "你好",
        "ひらカタ",
        "हिन्दी",
        "العربية",
        "שמ\"ל",
        "🙂",
        "👩\u{200d}🚀",
        "\u{200d}",
        "Ⓜ",
    ];

    proptest! {
        #[test]
        fn mixed_scripts_hash_as_the_recipe_reads(
            pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40),
        ) {
            let text = pieces.concat();
            prop_assert_eq!(fingerprint(&text), fingerprint_slowly(&text), "{:?}", text);
        }

        #[test]
        fn any_text_hashes_as_the_recipe_reads(text in "\\PC{0,80}") {
            prop_assert_eq!(fingerprint(&text), fingerprint_slowly(&text), "{:?}", text);
        }

        #[test]
        fn ascii_hashes_as_the_recipe_reads(text in "[ -~\n]{0,200}") {
            prop_assert_eq!(fingerprint(&text), fingerprint_slowly(&text), "{:?}", text);
        }
    }

    #[test]
    fn case_spacing_and_punctuation_do_not_matter() {
        let plain = fingerprint("the quick brown fox jumps over the lazy dog");
        let dressed = fingerprint("The QUICK brown fox — jumps\n\tover (the lazy) dog!");
        assert_eq!(plain, dressed);
    }

    #[test]
    fn a_text_without_words_has_fingerprint_zero() {
        for text in ["", " \n", "?!… — 🙂"] {
            assert_eq!(fingerprint(text), Fingerprint(0), "{text:?}");
        }
    }

    #[test]
    fn one_to_three_words_make_one_feature() {
        let hash = |word: &str| xxh3_64(word.as_bytes()).to_le_bytes();
        assert_eq!(fingerprint("One").0, xxh3_64(&hash("one")));
        let three = [hash("one"), hash("two"), hash("three")].concat();
        assert_eq!(fingerprint("one two three").0, xxh3_64(&three));
    }

    #[test]
    fn lower_case_looks_at_no_neighbours() {
        assert_eq!(fingerprint("ΟΔΟΣ"), fingerprint("οδοσ"));
        assert_ne!(fingerprint("ΟΔΟΣ"), fingerprint("οδος"));
        assert_eq!(fingerprint("İ"), fingerprint("i\u{307}"));
    }
}
