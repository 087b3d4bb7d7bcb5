//! Recipes: the named, versioned ways to turn a text into a fingerprint.
//!
//! Fingerprints of different recipes have nothing to do with each other: compared, they look like
//! random numbers, and nothing is ever found. So a recipe never changes once it has a name; a
//! better one gets a new name. `tests/data/vectors.json` holds each to that.

mod leonsim;
mod words_v1;

use std::fmt;
use std::str::FromStr;

use crate::Fingerprint;

/// A way to turn a text into a fingerprint, frozen under its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// Shingles of 4 lower-cased words, hashed with XXH3: this project's own, and the default.
    #[default]
    WordsV1,
    /// Slides of 3 characters, hashed with MD5: the README script of the Python package `simhash`.
    Leonsim3,
    /// Slides of 4 characters, hashed with MD5: `Simhash(text)` of the Python package `simhash`.
    Leonsim4,
}

impl Recipe {
    /// Every recipe, the default first.
    pub const ALL: [Self; 3] = [Self::WordsV1, Self::Leonsim3, Self::Leonsim4];

    /// The name that configurations, requests and commands use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WordsV1 => "words-v1",
            Self::Leonsim3 => "leonsim-3",
            Self::Leonsim4 => "leonsim-4",
        }
    }

    /// One line on what the recipe looks at and when to choose it.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::WordsV1 => {
                "runs of 4 words in any script, blind to case, spacing and most punctuation: \
                 the choice for documents of a paragraph or more"
            }
            Self::Leonsim3 => {
                "runs of 3 characters, as the README script of Python's simhash package: \
                 for short texts, or fingerprints made by that script"
            }
            Self::Leonsim4 => {
                "runs of 4 characters, as Simhash(text) of Python's simhash package 2.1: \
                 for short texts, or fingerprints made by that package"
            }
        }
    }

    /// The fingerprint of a text.
    #[must_use]
    pub fn fingerprint(self, text: &str) -> Fingerprint {
        match self {
            Self::WordsV1 => words_v1::fingerprint(text),
            Self::Leonsim3 => leonsim::fingerprint(text, 3),
            Self::Leonsim4 => leonsim::fingerprint(text, 4),
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A recipe name that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown recipe {name:?}, known are {}", known_names())]
pub struct UnknownRecipe {
    /// What was asked for.
    pub name: String,
}

fn known_names() -> String {
    Recipe::ALL.map(Recipe::name).join(", ")
}

impl FromStr for Recipe {
    type Err = UnknownRecipe;

    /// Reads an exact name: no other case, no white space, no abbreviation.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|recipe| recipe.name() == name)
            .ok_or_else(|| UnknownRecipe {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_its_recipe() {
        for recipe in Recipe::ALL {
            assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for name in ["", "words", "words-v2", "Words-v1", " words-v1", "leonsim"] {
            let error = name.parse::<Recipe>().unwrap_err();
            let message =
                format!("unknown recipe {name:?}, known are words-v1, leonsim-3, leonsim-4");
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn the_default_is_words_v1_and_comes_first() {
        assert_eq!(Recipe::default(), Recipe::WordsV1);
        assert_eq!(Recipe::ALL[0], Recipe::default());
    }

    #[test]
    fn each_summary_is_one_line() {
        for recipe in Recipe::ALL {
            let summary = recipe.summary();
            assert!(
                !summary.is_empty() && !summary.contains(['\n', '\t']),
                "{summary}"
            );
            assert!(!summary.contains("  "), "{summary}");
        }
    }
}
