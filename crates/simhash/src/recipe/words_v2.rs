//! The recipes `words-v2-N`, and `words-v2`, which is the one with N = 2: the lowest bits of 64
//! minima over runs of N words.
//!
//! Everything needed to compute the same fingerprints elsewhere; all arithmetic is modulo 2^64:
//!
//! 1. **Words.** Bring the whole text to NFC (Unicode 17.0), once. Then cut it into words, lower
//!    their case and hash them exactly as [`words-v1`](super::words_v1) does, without another
//!    normalisation.
//! 2. **Features.** The *set* of XXH3-64, seed 0, of each N consecutive word hashes, 8·N bytes,
//!    each hash little-endian, in order. A text of n < N words has one feature, made the same way
//!    from the 8·n bytes that it has.
//! 3. **Minima.** There are 64 bins, all empty, and rounds 0, 1, 2, … until every bin is full. In
//!    round r a feature h becomes z = h if r is 0, and else z = mix(h + r · 0x9E3779B97F4A7C15),
//!    where mix is SplitMix64's finalizer. In rounds below 64 the feature goes to bin z >> 58;
//!    round 64 + i sends every feature to bin i. A bin that the rounds before left empty keeps
//!    the least z mod 2^58 of those that the round sends to it. A full bin never changes again.
//! 4. **Fingerprint.** Bit i, from the least significant, is bit 0 of the minimum in bin i. A text
//!    without words has no fingerprint.
//!
//! Take two texts whose sets of features have the Jaccard similarity J. They share a minimum with a probability of J,
//! and else agree in its lowest bit half of the time. So fingerprints at distance d suggest J = 1 - d / 32.
//!
//! Sources: Dahlgaard, Knudsen, Thorup, "Fast similarity sketching", FOCS 2017, for the rounds. Li and König, "b-bit
//! minwise hashing", WWW 2010, for keeping one bit. Shrivastava and Li, "In defense of minhash over simhash", AISTATS
//! 2014, for why.

use std::array;
use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::{Window, words};
use crate::Fingerprint;
use crate::scan::Level;

/// The bits of a feature that are compared; those above choose a bin.
const VALUE: u64 = (1 << 58) - 1;

/// The content of an empty bin: more than any value.
const EMPTY: u64 = u64::MAX;

/// Features that are kept before repeated ones are looked for.
const ROOM: usize = 1024;

/// The fingerprint of a text by runs of `window` words; `None` if it has no words.
pub(super) fn fingerprint(text: &str, window: Window) -> Option<Fingerprint> {
    fingerprint_at(Level::best(), text, window)
}

pub(super) fn fingerprint_at(level: Level, text: &str, window: Window) -> Option<Fingerprint> {
    joined(level, text, [(window, u64::MAX)])
}

/// Bits of several fingerprints in one: of each window those that it is listed with. `None` if the
/// text has no words.
pub(super) fn joined<const N: usize>(
    level: Level,
    text: &str,
    parts: [(Window, u64); N],
) -> Option<Fingerprint> {
    let mut minima = parts.map(|(_, bits)| Minima::of(bits));
    let windows = parts.map(|(window, _)| window);
    words::for_each_run(level, &normalized(text), windows, |part, runs| {
        minima[part].add_all(runs);
    });
    minima.into_iter().try_fold(Fingerprint(0), |all, minima| {
        Some(Fingerprint(all.0 | minima.bits()?))
    })
}

/// A text in NFC (Unicode 17.0), as the recipes of minima normalise it. Texts that the quick check recognises are not
/// copied, and ASCII is not even read as characters.
pub fn normalized(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    while !rest.is_empty() {
        rest = &rest[words::ascii_length(rest.as_bytes())..];
        let end = rest.bytes().position(|byte| byte.is_ascii());
        let (others, after) = rest.split_at(end.unwrap_or(rest.len()));
        // ASCII before `others` does not matter: it begins anew what marks are ordered within.
        if is_nfc_quick(others.chars()) != IsNormalized::Yes {
            return Cow::Owned(text.nfc().collect());
        }
        rest = after;
    }
    Cow::Borrowed(text)
}

/// The least value in each bin.
struct Minima {
    bins: [u64; 64],
    /// The features of all rounds, kept only until round 0 has filled every bin.
    features: Vec<u64>,
    /// How many may be kept before repeated ones are looked for again.
    room: usize,
}

impl Minima {
    /// Nothing in the bins of these bits. The others are full from the start, of a minimum without
    /// lowest bit.
    fn of(bits: u64) -> Self {
        Self {
            bins: array::from_fn(|bin| if bits >> bin & 1 == 1 { EMPTY } else { 0 }),
            features: Vec::new(),
            room: ROOM,
        }
    }

    /// Adds features: round 0.
    fn add_all(&mut self, features: &[u64]) {
        let needs_more = self.needs_more();
        for &feature in features {
            let bin = &mut self.bins[(feature >> 58) as usize];
            *bin = (*bin).min(feature & VALUE);
        }
        if needs_more {
            self.keep(features);
        }
    }

    /// Whether a bin is empty.
    fn needs_more(&self) -> bool {
        self.bins.contains(&EMPTY)
    }

    /// Keeps features for further rounds. A text that repeats itself has fewer than it has runs.
    fn keep(&mut self, features: &[u64]) {
        self.features.extend_from_slice(features);
        if self.features.len() > self.room {
            self.features.sort_unstable();
            self.features.dedup();
            self.room = ROOM.max(2 * self.features.len());
        }
    }

    /// The lowest bits of the minima, after all further rounds that it takes; `None` without
    /// features.
    fn bits(mut self) -> Option<u64> {
        if self.needs_more() && self.features.is_empty() {
            return None;
        }
        for round in 1..128 {
            if !self.needs_more() {
                break;
            }
            self.play(round);
        }
        let bits = self.bins.iter().rev();
        Some(bits.fold(0, |all, least| all << 1 | least & 1))
    }

    /// Plays a round other than the first.
    fn play(&mut self, round: u64) {
        let before = self.bins;
        for &feature in &self.features {
            let mixed = mix(feature, round);
            let bin = round.checked_sub(64).unwrap_or(mixed >> 58) as usize;
            if before[bin] == EMPTY {
                self.bins[bin] = self.bins[bin].min(mixed & VALUE);
            }
        }
    }
}

/// A feature in a round other than the first: SplitMix64's finalizer.
const fn mix(feature: u64, round: u64) -> u64 {
    let sum = feature.wrapping_add(round.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let once = (sum ^ sum >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    twice ^ twice >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextRecipe;
    use proptest::prelude::*;

    fn plain(text: &str) -> Option<Fingerprint> {
        fingerprint(text, Window::TWO)
    }

    proptest! {
        #[test]
        fn every_form_of_a_text_has_its_fingerprint(text in "([a-zé]{1,3} |\\PC|[가-힣]|[\u{300}-\u{36f}]){0,60}") {
            let composed: String = text.nfc().collect();
            let decomposed: String = text.nfd().collect();
            for form in [composed, decomposed] {
                prop_assert_eq!(plain(&form), plain(&text), "{:?}", form);
            }
        }

        #[test]
        fn a_normalized_text_is_in_nfc(text in "(a|\\PC|[à-ü]|[\u{300}-\u{36f}]){0,9}") {
            let expected: String = text.nfc().collect();
            let normalized = normalized(&text);
            prop_assert_eq!(&normalized, &expected);
        }

        #[test]
        fn repeated_texts_have_the_minima_of_one(words in "([a-d]{1,2} ){1,40}", count in 2..200_usize) {
            // From the second repetition on there is no new run.
            prop_assert_eq!(plain(&words.repeat(2)), plain(&words.repeat(count)));
        }
    }

    #[test]
    fn a_text_without_words_has_no_fingerprint() {
        for text in ["", " \n", "?!… — 🙂", "\u{301}"] {
            assert_eq!(plain(text), None, "{text:?}");
        }
        assert_ne!(plain("0"), None);
    }

    #[test]
    fn huge_texts_hash_as_the_recipe_reads() {
        let different: String = (0..20_000).map(|number| format!("w{number} é ")).collect();
        for text in [different, "one two ".repeat(100_000), "x".repeat(1 << 20)] {
            for recipe in [TextRecipe::WordsV2(Window::TWO), TextRecipe::WordsV3] {
                let expected = recipe.fingerprint_by_definition(&text);
                assert_eq!(recipe.fingerprint(&text), expected, "{recipe}");
            }
        }
    }

    #[test]
    fn features_of_a_text_that_repeats_itself_are_kept_once() {
        let mut minima = Minima::of(u64::MAX);
        for _ in 0..100 {
            minima.add_all(&[7; 256]);
        }
        assert!(minima.features.len() <= ROOM, "{}", minima.features.len());
    }

    #[test]
    fn only_texts_that_change_are_copied() {
        for text in ["plain", "née — “quoted” 你好 한글", "x\u{301}?"] {
            let copied = matches!(normalized(text), Cow::Owned(_));
            assert_eq!(copied, text.contains('\u{301}'), "{text}");
        }
    }
}
