//! The recipes that make fingerprints of texts.

use std::fmt;

use super::{
    Window, definition, jenkins_window, leonsim, moz_shingle, textdedup, words_v1, words_v2,
    words_v3,
};
use crate::Fingerprint;

/// A recipe that makes fingerprints of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextRecipe {
    /// One-bit minima of lower-cased words and of runs of two, hashed with XXH3: this project's own,
    /// the default.
    #[default]
    WordsV3,
    /// One-bit minima of runs of this many lower-cased words, hashed with XXH3: this project's own.
    /// With 2 words its name has no number.
    WordsV2(Window),
    /// Shingles of 4 lower-cased words, hashed with XXH3: this project's own, the first.
    WordsV1,
    /// Slides of 3 characters, hashed with MD5: the README script of the Python package `simhash`.
    Leonsim3,
    /// Slides of 4 characters, hashed with MD5: `Simhash(text)` of the Python package `simhash`.
    Leonsim4,
    /// Shingles of tokens, hashed with MD5: the README script of `simhash-py`.
    MozShingle(Window),
    /// Windows of bytes, hashed with Jenkins' lookup3: ChenghaoMou's `simhash`, every window.
    JenkinsWindow(Window),
    /// The same without the last window, as that program has it.
    JenkinsWindowCompat(Window),
    /// Runs of characters, each once, hashed with XXH3: the `SimHash` of the Python package
    /// `text-dedup`.
    TextDedup(Window),
}

/// The part of the name before the window.
const WORDS_V2: &str = "words-v2-";
const TEXT_DEDUP: &str = "textdedup-";
const MOZ_SHINGLE: &str = "moz-shingle-";
const JENKINS_WINDOW: &str = "jenkins-window-";
/// The part of the name after the window, if the last window is dropped.
const COMPAT: &str = "-compat";

impl TextRecipe {
    /// The fingerprint of a text; `None` if the recipe gives it none. The recipes `words-v3` and
    /// `words-v2-N` give none to texts without words, and `textdedup-N` to texts of fewer than 5 characters; the
    /// others give every text one.
    #[must_use]
    pub fn fingerprint(self, text: &str) -> Option<Fingerprint> {
        match self {
            Self::WordsV3 => words_v3::fingerprint(text),
            Self::WordsV2(window) => words_v2::fingerprint(text, window),
            Self::WordsV1 => Some(words_v1::fingerprint(text)),
            Self::Leonsim3 => Some(leonsim::fingerprint(text, 3)),
            Self::Leonsim4 => Some(leonsim::fingerprint(text, 4)),
            Self::MozShingle(window) => Some(moz_shingle::fingerprint(text, window)),
            Self::JenkinsWindow(window) => Some(jenkins_window::fingerprint(text, window)),
            Self::JenkinsWindowCompat(window) => {
                Some(jenkins_window::compat_fingerprint(text, window))
            }
            Self::TextDedup(window) => textdedup::fingerprint(text, window),
        }
    }

    /// Whether a text has a fingerprint, without computing it.
    #[must_use]
    pub fn has_fingerprint(self, text: &str) -> bool {
        match self {
            Self::WordsV3 | Self::WordsV2(_) => text.contains(char::is_alphanumeric),
            Self::TextDedup(_) => text.chars().nth(textdedup::FEWEST - 1).is_some(),
            Self::WordsV1
            | Self::Leonsim3
            | Self::Leonsim4
            | Self::MozShingle(_)
            | Self::JenkinsWindow(_)
            | Self::JenkinsWindowCompat(_) => true,
        }
    }

    /// How little the texts have that the recipe makes nothing of, such as `fewer than 5 characters`; `None`
    /// where these are the texts without words. They have no fingerprint, or that of the empty text.
    #[must_use]
    pub fn too_little(self) -> Option<String> {
        match self {
            Self::WordsV3 | Self::WordsV2(_) | Self::WordsV1 | Self::Leonsim3 | Self::Leonsim4 => {
                None
            }
            Self::MozShingle(window) => Some(format!("fewer than {window} tokens")),
            Self::JenkinsWindow(_) => Some("no characters".to_owned()),
            Self::JenkinsWindowCompat(window) => Some(format!("at most {window} bytes")),
            Self::TextDedup(_) => Some(format!("fewer than {} characters", textdedup::FEWEST)),
        }
    }

    /// The same fingerprint, computed word for word as the recipe is defined, and slowly: to hold
    /// [`fingerprint`](Self::fingerprint) against.
    #[must_use]
    pub fn fingerprint_by_definition(self, text: &str) -> Option<Fingerprint> {
        definition::fingerprint(self, text)
    }

    pub(super) const fn summary(self) -> &'static str {
        match self {
            Self::WordsV3 => {
                "words and runs of 2 words in any script, blind to case, spacing and most \
                 punctuation, as minima: the choice for documents"
            }
            Self::WordsV2(_) => {
                "runs of words, 2 unless the name says how many, read like those of words-v3, as \
                 minima: finds less, and less that is unlike, the longer the runs"
            }
            Self::WordsV1 => {
                "runs of 4 words, read like those of words-v3, as a simhash: for corpora that have \
                 it, as it misses most edited texts"
            }
            Self::Leonsim3 => {
                "runs of 3 characters, as the README script of Python's simhash package: \
                 for fingerprints made by that script"
            }
            Self::Leonsim4 => {
                "runs of 4 characters, as Simhash(text) of Python's simhash package 2.1: \
                 for fingerprints made by that package"
            }
            Self::MozShingle(_) => {
                "runs of tokens between spaces, as the README script of Moz's simhash-py: \
                 for fingerprints made that way, as indentation makes texts alike"
            }
            Self::JenkinsWindow(_) => {
                "windows of bytes, as ChenghaoMou's simhash means them: \
                 for fingerprints made that way, as indentation makes texts alike"
            }
            Self::JenkinsWindowCompat(_) => {
                "windows of bytes without the last, as ChenghaoMou's simhash has them: \
                 for fingerprints made by that program, as indentation makes texts alike"
            }
            Self::TextDedup(_) => {
                "runs of characters, each once, as the SimHash of Python's text-dedup 0.4: \
                 for fingerprints made by that package, as it misses many edited texts"
            }
        }
    }

    /// Reads an exact name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "words-v3" => return Some(Self::WordsV3),
            "words-v2" => return Some(Self::WordsV2(Window::TWO)),
            "words-v1" => return Some(Self::WordsV1),
            "leonsim-3" => return Some(Self::Leonsim3),
            "leonsim-4" => return Some(Self::Leonsim4),
            _ => {}
        }
        if let Some(window) = name.strip_prefix(MOZ_SHINGLE) {
            return Window::from_name(window).map(Self::MozShingle);
        }
        if let Some(window) = name.strip_prefix(WORDS_V2) {
            let named = Window::from_name(window).filter(|&window| window != Window::TWO);
            return named.map(Self::WordsV2);
        }
        if let Some(window) = name.strip_prefix(TEXT_DEDUP) {
            return Window::from_name(window).map(Self::TextDedup);
        }
        let window = name.strip_prefix(JENKINS_WINDOW)?;
        match window.strip_suffix(COMPAT) {
            Some(window) => Window::from_name(window).map(Self::JenkinsWindowCompat),
            None => Window::from_name(window).map(Self::JenkinsWindow),
        }
    }
}

/// The name that configurations, requests and commands use.
impl fmt::Display for TextRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WordsV3 => f.pad("words-v3"),
            Self::WordsV2(Window::TWO) => f.pad("words-v2"),
            Self::WordsV2(window) => f.pad(&format!("{WORDS_V2}{window}")),
            Self::WordsV1 => f.pad("words-v1"),
            Self::Leonsim3 => f.pad("leonsim-3"),
            Self::Leonsim4 => f.pad("leonsim-4"),
            Self::MozShingle(window) => f.pad(&format!("{MOZ_SHINGLE}{window}")),
            Self::JenkinsWindow(window) => f.pad(&format!("{JENKINS_WINDOW}{window}")),
            Self::JenkinsWindowCompat(window) => {
                f.pad(&format!("{JENKINS_WINDOW}{window}{COMPAT}"))
            }
            Self::TextDedup(window) => f.pad(&format!("{TEXT_DEDUP}{window}")),
        }
    }
}
