//! Documents as they are read: owned, or as they stand in a chunk of input.

use std::borrow::Cow;
use std::fmt;

use simshard_simhash::{Fingerprint, Window, word_runs};

/// The longest id of a document, in bytes: corpora take no longer ones.
pub const MAX_ID_BYTES: usize = 1024;

/// The longest line or file that is taken as a document: 8 MiB.
pub const MAX_RECORD_BYTES: usize = 8 << 20;

/// Most values of a row of CSV.
pub(crate) const MAX_VALUES: usize = 1 << 20;

/// One document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// At most [`MAX_ID_BYTES`]; may be empty where the input says so.
    pub id: String,
    /// Its content.
    pub content: Content,
}

/// The content of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A text, yet to be fingerprinted.
    Text(String),
    /// A fingerprint computed earlier.
    Fingerprint(Fingerprint),
}

/// The kind of content of an input's documents, before they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Texts, yet to be fingerprinted.
    Texts,
    /// Hashed features with weights: fingerprints once they are read.
    Features,
    /// Fingerprints computed earlier.
    Fingerprints,
}

/// A document as it stands in a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its id.
    pub id: RecordId<'a>,
    /// Its content.
    pub content: RecordContent<'a>,
}

/// A document's id, which displays as it is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordId<'a> {
    /// It was given.
    Given(Cow<'a, str>),
    /// It is a number: the one given or that of the line, this after its source where there are
    /// several.
    Number {
        /// The source.
        source: Option<&'a str>,
        /// The number.
        number: u64,
    },
}

/// The content of such a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordContent<'a> {
    /// A text, yet to be fingerprinted.
    Text(Cow<'a, str>),
    /// A fingerprint, computed earlier or from features.
    Fingerprint(Fingerprint),
}

impl RecordContent<'_> {
    /// Whether it is a text with fewer words than this.
    pub(crate) fn is_shorter(&self, min_words: usize) -> bool {
        let Self::Text(text) = self else {
            return false;
        };
        let words = || Window::new(1).map_or(0, |one| word_runs(text, one).len());
        min_words > 0 && words() < min_words
    }
}

impl fmt::Display for RecordId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(id) => f.write_str(id),
            Self::Number {
                source: Some(source),
                number,
            } => write!(f, "{source}:{number}"),
            Self::Number {
                source: None,
                number,
            } => number.fmt(f),
        }
    }
}

impl<'a> From<&'a Document> for Record<'a> {
    fn from(document: &'a Document) -> Self {
        let content = match &document.content {
            Content::Text(text) => RecordContent::Text(text.into()),
            Content::Fingerprint(fingerprint) => RecordContent::Fingerprint(*fingerprint),
        };
        let id = RecordId::Given((&document.id).into());
        Self { id, content }
    }
}

impl From<Record<'_>> for Document {
    fn from(record: Record<'_>) -> Self {
        let content = match record.content {
            RecordContent::Text(text) => Content::Text(text.into_owned()),
            RecordContent::Fingerprint(fingerprint) => Content::Fingerprint(fingerprint),
        };
        let id = record.id.to_string();
        Self { id, content }
    }
}
