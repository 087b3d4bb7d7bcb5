//! Recipes: the named, versioned ways to turn a document into a fingerprint.
//!
//! Fingerprints of different recipes have nothing to do with each other: compared, they look like
//! random numbers, and nothing is ever found. So a recipe never changes once it has a name; a
//! better one gets a new name. Whatever changes a fingerprint is part of the name, windows
//! included: `jenkins-window-5` and `jenkins-window-7` are two recipes.
//! `tests/data/vectors.json` holds each to what it was.

mod definition;
mod explanation;
pub mod features;
mod jenkins_window;
mod leonsim;
mod lookup3;
mod moz_shingle;
mod text_recipe;
mod textdedup;
mod window;
mod words;
mod words_v1;
mod words_v2;
mod words_v3;

use std::fmt;
use std::str::FromStr;

pub use explanation::Explanation;
pub use text_recipe::TextRecipe;
pub use window::Window;
pub use words::word_runs;
pub use words_v2::normalized;

/// A way to turn a document into a fingerprint, frozen under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// From texts.
    Text(TextRecipe),
    /// From features that were hashed and weighted elsewhere ([`features::fingerprint`]).
    Features,
}

/// The input of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Takes {
    /// A text.
    Text,
    /// A list of hashes, each with its weight.
    Features,
}

impl Takes {
    /// The word for it in listings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Features => "features",
        }
    }
}

impl Recipe {
    /// The recipes to choose from, the default first: every one that has no window, and of those
    /// that have, each with its usual window.
    pub const LISTED: [Self; 10] = [
        Self::Text(TextRecipe::WordsV3),
        Self::Text(TextRecipe::WordsV2(Window::TWO)),
        Self::Text(TextRecipe::WordsV1),
        Self::Text(TextRecipe::Leonsim3),
        Self::Text(TextRecipe::Leonsim4),
        Self::Text(TextRecipe::MozShingle(Window::FOUR)),
        Self::Text(TextRecipe::JenkinsWindow(Window::FIVE)),
        Self::Text(TextRecipe::JenkinsWindowCompat(Window::FIVE)),
        Self::Text(TextRecipe::TextDedup(Window::THREE)),
        Self::Features,
    ];

    /// Its input.
    #[must_use]
    pub const fn takes(self) -> Takes {
        match self {
            Self::Text(_) => Takes::Text,
            Self::Features => Takes::Features,
        }
    }

    /// The recipe as one for texts.
    ///
    /// # Errors
    /// If it takes no texts.
    pub const fn for_texts(self) -> Result<TextRecipe, TakesNoTexts> {
        match self {
            Self::Text(recipe) => Ok(recipe),
            Self::Features => Err(TakesNoTexts),
        }
    }

    /// The Jaccard similarity of the features of two documents that the distance of their
    /// fingerprints suggests; `None` where it suggests none. Of `words-v3` it is a quarter of that of
    /// the words, and three quarters of that of the runs.
    ///
    /// A bit of a one-bit minimum differs with half the probability that the minima differ.
    #[must_use]
    pub fn similarity(self, distance: u32) -> Option<f64> {
        match self {
            Self::Text(TextRecipe::WordsV3 | TextRecipe::WordsV2(_)) => {
                Some((1.0 - f64::from(distance) / 32.0).max(0.0))
            }
            Self::Text(
                TextRecipe::WordsV1
                | TextRecipe::Leonsim3
                | TextRecipe::Leonsim4
                | TextRecipe::MozShingle(_)
                | TextRecipe::JenkinsWindow(_)
                | TextRecipe::JenkinsWindowCompat(_)
                | TextRecipe::TextDedup(_),
            )
            | Self::Features => None,
        }
    }

    /// One line on what the recipe looks at and when to choose it.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Text(recipe) => recipe.summary(),
            Self::Features => {
                "hashes with weights, made by another program: \
                 for features that no recipe here knows, or for other things than text"
            }
        }
    }
}

impl Default for Recipe {
    fn default() -> Self {
        Self::Text(TextRecipe::default())
    }
}

impl From<TextRecipe> for Recipe {
    fn from(recipe: TextRecipe) -> Self {
        Self::Text(recipe)
    }
}

/// The name that configurations, requests and commands use.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(recipe) => recipe.fmt(f),
            Self::Features => f.pad("features"),
        }
    }
}

/// A text was given where the recipe makes fingerprints of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recipe features takes no texts: give it hashed features, or fingerprints made of them")]
pub struct TakesNoTexts;

/// A recipe name that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown recipe {name:?}, known are words-v3, words-v2, words-v1, leonsim-3, leonsim-4, words-v2-N, \
     moz-shingle-N, jenkins-window-N, jenkins-window-N-compat, textdedup-N (N from 1 to 255; for \
     words-v2-2 say words-v2) and features"
)]
pub struct UnknownRecipe {
    /// The name that was given.
    pub name: String,
}

impl FromStr for Recipe {
    type Err = UnknownRecipe;

    /// Reads an exact name: no other case, no white space, no abbreviation, no leading zeros.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let recipe = match name {
            "features" => Some(Self::Features),
            _ => TextRecipe::from_name(name).map(Self::Text),
        };
        recipe.ok_or_else(|| UnknownRecipe {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_its_recipe() {
        let windows = (1..=u8::MAX).filter_map(Window::new).flat_map(|window| {
            [
                TextRecipe::MozShingle(window),
                TextRecipe::JenkinsWindow(window),
                TextRecipe::JenkinsWindowCompat(window),
                TextRecipe::WordsV2(window),
                TextRecipe::TextDedup(window),
            ]
            .map(Recipe::Text)
        });
        for recipe in Recipe::LISTED.into_iter().chain(windows) {
            assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }
    }

    #[test]
    fn the_listed_names_are_these() {
        let names = Recipe::LISTED.map(|recipe| recipe.to_string());
        let expected = [
            "words-v3",
            "words-v2",
            "words-v1",
            "leonsim-3",
            "leonsim-4",
            "moz-shingle-4",
            "jenkins-window-5",
            "jenkins-window-5-compat",
            "textdedup-3",
            "features",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for name in [
            "",
            "words",
            "words-v2-",
            "words-v2-0",
            "words-v2-2",
            "words-v2-03",
            "words-v2-256",
            "words-v1-4",
            "words-v3-1",
            "words-v4",
            "Words-v1",
            " words-v1",
            "leonsim",
            "leonsim-5",
            "moz-shingle",
            "moz-shingle-",
            "moz-shingle-0",
            "moz-shingle-04",
            "moz-shingle-+4",
            "moz-shingle-256",
            "moz-shingle-4-compat",
            "jenkins-window",
            "jenkins-window-0-compat",
            "jenkins-window-compat",
            "jenkins-window-5-compat-compat",
            "textdedup",
            "textdedup-0",
            "features-1",
        ] {
            let error = name.parse::<Recipe>().unwrap_err();
            let message = error.to_string();
            assert!(message.starts_with(&format!("unknown recipe {name:?}, known are words-v3,")));
        }
    }

    #[test]
    fn the_answer_to_an_unknown_name_names_every_listed_one() {
        let message = "?".parse::<Recipe>().unwrap_err().to_string();
        for recipe in Recipe::LISTED {
            let name = recipe.to_string();
            let pattern = name.replace(['3', '4', '5'], "N");
            assert!(
                message.contains(&pattern) || message.contains(&name),
                "{recipe}"
            );
        }
    }

    #[test]
    fn the_default_is_words_v3_and_comes_first() {
        assert_eq!(Recipe::default().to_string(), "words-v3");
        assert_eq!(Recipe::LISTED[0], Recipe::default());
    }

    #[test]
    fn only_minima_suggest_a_similarity() {
        for recipe in Recipe::LISTED {
            let is_minima = ["words-v3", "words-v2"].contains(&&*recipe.to_string());
            assert_eq!(recipe.similarity(3).is_some(), is_minima, "{recipe}");
        }
        let similarities = [0, 3, 32, 64].map(|distance| Recipe::default().similarity(distance));
        assert_eq!(similarities, [1.0, 0.90625, 0.0, 0.0].map(Some));
    }

    #[test]
    fn what_has_a_fingerprint_is_known_without_it() {
        let texts = (0..0x3400_u32).chain(0xf900..0x2_0000);
        let texts = texts.filter_map(char::from_u32).map(String::from);
        let longer = ["", "abcd", "abcde", "ééééé", "?!?!?!", " \u{345}"].map(str::to_owned);
        for text in texts.chain(longer) {
            for recipe in [
                TextRecipe::WordsV3,
                TextRecipe::WordsV2(Window::TWO),
                TextRecipe::TextDedup(Window::THREE),
                TextRecipe::WordsV1,
            ] {
                let made = recipe.fingerprint(&text);
                assert_eq!(
                    recipe.has_fingerprint(&text),
                    made.is_some(),
                    "{recipe} {text:?}"
                );
            }
        }
    }

    #[test]
    fn only_features_takes_no_texts() {
        for recipe in Recipe::LISTED {
            let is_text = recipe != Recipe::Features;
            assert_eq!(recipe.for_texts().is_ok(), is_text);
            assert_eq!(recipe.takes() == Takes::Text, is_text);
        }
    }

    #[test]
    fn each_summary_is_one_line() {
        for recipe in Recipe::LISTED {
            let summary = recipe.summary();
            assert!(
                !summary.is_empty() && !summary.contains(['\n', '\t']),
                "{summary}"
            );
            assert!(!summary.contains("  "), "{summary}");
        }
    }
}
