//! The recipes that make fingerprints of texts.

use std::fmt;

use super::{Window, definition, jenkins_window, leonsim, moz_shingle, words_v1};
use crate::Fingerprint;

/// A recipe that makes fingerprints of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextRecipe {
    /// Shingles of 4 lower-cased words, hashed with XXH3: this project's own, and the default.
    #[default]
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
}

/// What stands in the name before the window.
const MOZ_SHINGLE: &str = "moz-shingle-";
const JENKINS_WINDOW: &str = "jenkins-window-";
/// What stands after it where the last window is dropped.
const COMPAT: &str = "-compat";

impl TextRecipe {
    /// The fingerprint of a text.
    #[must_use]
    pub fn fingerprint(self, text: &str) -> Fingerprint {
        match self {
            Self::WordsV1 => words_v1::fingerprint(text),
            Self::Leonsim3 => leonsim::fingerprint(text, 3),
            Self::Leonsim4 => leonsim::fingerprint(text, 4),
            Self::MozShingle(window) => moz_shingle::fingerprint(text, window),
            Self::JenkinsWindow(window) => jenkins_window::fingerprint(text, window),
            Self::JenkinsWindowCompat(window) => jenkins_window::compat_fingerprint(text, window),
        }
    }

    /// The same fingerprint, computed word for word as the recipe is defined, and slowly: to hold
    /// [`fingerprint`](Self::fingerprint) against.
    #[must_use]
    pub fn fingerprint_by_definition(self, text: &str) -> Fingerprint {
        definition::fingerprint(self, text)
    }

    pub(super) const fn summary(self) -> &'static str {
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
            Self::MozShingle(_) => {
                "runs of tokens between spaces, as the README script of Moz's simhash-py: \
                 for fingerprints made that way"
            }
            Self::JenkinsWindow(_) => {
                "windows of bytes, as ChenghaoMou's simhash means them: \
                 for short texts and any data, sensitive to case and spacing"
            }
            Self::JenkinsWindowCompat(_) => {
                "windows of bytes without the last, as ChenghaoMou's simhash has them: \
                 for fingerprints made by that program"
            }
        }
    }

    /// Reads an exact name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "words-v1" => return Some(Self::WordsV1),
            "leonsim-3" => return Some(Self::Leonsim3),
            "leonsim-4" => return Some(Self::Leonsim4),
            _ => {}
        }
        if let Some(window) = name.strip_prefix(MOZ_SHINGLE) {
            return Window::from_name(window).map(Self::MozShingle);
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
            Self::WordsV1 => f.pad("words-v1"),
            Self::Leonsim3 => f.pad("leonsim-3"),
            Self::Leonsim4 => f.pad("leonsim-4"),
            Self::MozShingle(window) => f.pad(&format!("{MOZ_SHINGLE}{window}")),
            Self::JenkinsWindow(window) => f.pad(&format!("{JENKINS_WINDOW}{window}")),
            Self::JenkinsWindowCompat(window) => {
                f.pad(&format!("{JENKINS_WINDOW}{window}{COMPAT}"))
            }
        }
    }
}
