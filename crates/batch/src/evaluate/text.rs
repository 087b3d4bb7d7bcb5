//! A text as it is evaluated: what is known of it once it is read and let go.

use std::hash::{DefaultHasher, Hash, Hasher};

use simshard_simhash::{Degenerate, Fingerprint, TextRecipe, Window, normalized, word_runs};

/// The parts of a text that an evaluation keeps.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) id: String,
    /// Its runs of words, each once, by their hashes.
    pub(super) runs: Vec<u64>,
    /// A hash of its words in their order.
    pub(super) words: u64,
    pub(super) length: Length,
    pub(super) degenerate: Option<Degenerate>,
    /// One for each recipe; `None` where it gives none.
    pub(super) fingerprints: Vec<Option<Fingerprint>>,
}

/// How long a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// Fewer than 50 words.
    Short,
    /// 50 to 299 words.
    Middling,
    /// 300 to 999 words.
    Long,
    /// 1000 words or more.
    Longest,
}

impl Length {
    /// All of them, the shortest first.
    pub const ALL: [Self; 4] = [Self::Short, Self::Middling, Self::Long, Self::Longest];

    const fn of(words: usize) -> Self {
        match words {
            0..50 => Self::Short,
            50..300 => Self::Middling,
            300..1000 => Self::Long,
            1000.. => Self::Longest,
        }
    }

    /// Its words, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "under 50",
            Self::Middling => "50-299",
            Self::Long => "300-999",
            Self::Longest => "1000 and more",
        }
    }
}

/// A hash of the words of a text in their order; `None` if it has none. Texts of the same words have the same
/// hash.
pub(super) fn words_of(text: &str, window: Window) -> Option<u64> {
    hash_of(&word_runs(&normalized(text), window))
}

fn hash_of(runs: &[u64]) -> Option<u64> {
    if runs.is_empty() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    runs.hash(&mut hasher);
    Some(hasher.finish())
}

impl Text {
    /// Looks at a text; `None` if it has no words. Its words are those in NFC; recipes get it as it is.
    pub(super) fn new(
        id: String,
        text: &str,
        window: Window,
        recipes: &[TextRecipe],
    ) -> Option<Self> {
        let composed = normalized(text);
        let mut runs = word_runs(&composed, window);
        let words = hash_of(&runs)?;
        let count = match Window::new(1) {
            // It may have fewer words than a run.
            Some(one) if runs.len() == 1 => word_runs(&composed, one).len(),
            _ => runs.len() + window.size() - 1,
        };
        let length = Length::of(count);
        runs.sort_unstable();
        runs.dedup();
        runs.shrink_to_fit();
        Some(Self {
            id,
            runs,
            words,
            length,
            degenerate: Degenerate::of(text),
            fingerprints: recipes.iter().map(|one| one.fingerprint(text)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_equal_word_for_word_have_one_hash_and_others_have_not() {
        let window = Window::new(3).unwrap();
        let text = |text| Text::new(String::new(), text, window, &[]).unwrap();
        let one = text("One two three four, five.");
        assert_eq!(one.words, text("one two\nTHREE four five").words);
        assert_eq!((one.runs.len(), one.length), (3, Length::Short));
        for other in ["one two three four", "one two three five four", "one two"] {
            assert_ne!(one.words, text(other).words, "{other}");
        }
        assert!(Text::new(String::new(), " ?! ", window, &[]).is_none());
    }

    #[test]
    fn repeated_runs_count_once_and_lengths_are_those_of_all_words() {
        let window = Window::new(5).unwrap();
        let text = Text::new("a".to_owned(), &"x ".repeat(300), window, &[]).unwrap();
        assert_eq!((text.runs.len(), text.length), (1, Length::Long));
        assert_eq!(text.degenerate, Some(Degenerate::Few));
        let window = Window::new(64).unwrap();
        for (words, length) in [
            (10, Length::Short),
            (49, Length::Short),
            (63, Length::Middling),
            (64, Length::Middling),
        ] {
            let text = Text::new("a".to_owned(), &"x ".repeat(words), window, &[]).unwrap();
            assert_eq!(text.length, length, "{words} words");
        }
    }

    #[test]
    fn composed_and_decomposed_characters_are_the_same() {
        let window = Window::new(2).unwrap();
        let [composed, decomposed] = [
            "caf\u{e9} na\u{ef}f \u{ac00}",
            "cafe\u{301} nai\u{308}f \u{1100}\u{1161}",
        ]
        .map(|text| Text::new(String::new(), text, window, &[TextRecipe::WordsV1]).unwrap());
        assert_eq!(
            (composed.words, &composed.runs),
            (decomposed.words, &decomposed.runs)
        );
        // Recipes see the text as it is.
        assert_ne!(composed.fingerprints, decomposed.fingerprints);
    }
}
