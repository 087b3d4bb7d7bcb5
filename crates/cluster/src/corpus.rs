//! The record of a corpus in the metadata: its checked name, the identity of
//! this creation, and the configuration that never changes afterwards.

use std::fmt;
use std::time::SystemTime;

use simshard_topology::CorpusUid;
use uuid::Uuid;

/// The longest corpus name, in characters.
const MAX_CORPUS_NAME_LENGTH: usize = 128;

/// The name of a corpus: 1 to 128 of `a-z`, `0-9`, `.`, `_` and `-`, a letter or
/// digit first. So it is safe in file names, keys and addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorpusName(String);

/// Why a text is no corpus name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCorpusName {
    /// It is empty.
    #[error("a corpus name is empty, give it 1 to {MAX_CORPUS_NAME_LENGTH} characters")]
    Empty,
    /// It is too long.
    #[error(
        "a corpus name has {length} characters, shorten it to at most {MAX_CORPUS_NAME_LENGTH}"
    )]
    TooLong {
        /// How many characters it has.
        length: usize,
    },
    /// It starts with punctuation.
    #[error("corpus name {name:?} starts with {found:?}, start it with one of a-z or 0-9")]
    BadStart {
        /// The text.
        name: String,
        /// Its first character.
        found: char,
    },
    /// It has a character that is not allowed.
    #[error("corpus name {name:?} contains {found:?}, use only a-z, 0-9, '.', '_' and '-'")]
    BadCharacter {
        /// The text.
        name: String,
        /// The first character that is not allowed.
        found: char,
    },
}

impl CorpusName {
    /// Checks `name` and takes it.
    ///
    /// # Errors
    /// When it breaks one of the rules of [`CorpusName`].
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidCorpusName> {
        let name = name.into();
        let Some(first) = name.chars().next() else {
            return Err(InvalidCorpusName::Empty);
        };
        // The length comes first, so that no error repeats a huge text.
        let length = name.chars().count();
        if length > MAX_CORPUS_NAME_LENGTH {
            return Err(InvalidCorpusName::TooLong { length });
        }
        if let Some(found) = name.chars().find(|&c| !is_allowed(c)) {
            return Err(InvalidCorpusName::BadCharacter { name, found });
        }
        if !first.is_ascii_alphanumeric() {
            return Err(InvalidCorpusName::BadStart { name, found: first });
        }
        Ok(Self(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_allowed(character: char) -> bool {
    matches!(character, 'a'..='z' | '0'..='9' | '.' | '_' | '-')
}

impl fmt::Display for CorpusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A new random uid.
pub fn random_corpus_uid() -> CorpusUid {
    CorpusUid(Uuid::new_v4().into_bytes())
}

/// Whether a corpus can be used. A deleted corpus has no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorpusState {
    /// Its creation has begun. It cannot be used yet: some nodes may not hold it.
    Creating,
    /// It can be used.
    Live,
    /// Its deletion has begun. It cannot be used any more, and its name is not free yet.
    Deleting,
}

/// One corpus in the metadata store. The store keeps the figures as they are given;
/// the caller checks whether they make sense together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorpusRecord {
    /// Its name.
    pub name: CorpusName,
    /// Which creation under that name this is.
    pub uid: CorpusUid,
    /// Into how many blocks its fingerprints are cut.
    pub blocks: u32,
    /// The largest distance at which its searches are complete.
    pub distance: u32,
    /// The recipe that turned its texts into fingerprints.
    pub recipe: String,
    /// When it was created, by its creator's clock.
    pub create_time: SystemTime,
    /// Whether it can be used.
    pub state: CorpusState,
}

impl CorpusRecord {
    /// Whether this creation goes on with that of another record of the same name.
    pub(crate) fn completes(&self, begun: &Self) -> bool {
        let is_creating = |record: &Self| record.state == CorpusState::Creating;
        is_creating(self)
            && is_creating(begun)
            && (self.blocks, self.distance) == (begun.blocks, begun.distance)
            && self.recipe == begun.recipe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_are_taken_as_they_are() {
        let longest = "a".repeat(128);
        for name in ["default", "a", "7", "crawl-2026.11_b", "0.-_", &longest] {
            let parsed = CorpusName::new(name).unwrap();
            assert_eq!(parsed.as_str(), name);
            assert_eq!(parsed.to_string(), name);
        }
    }

    #[test]
    fn bad_names_are_refused_with_what_is_wrong() {
        let bad_start = |name: &str, found| InvalidCorpusName::BadStart {
            name: name.to_owned(),
            found,
        };
        let bad_character = |name: &str, found| InvalidCorpusName::BadCharacter {
            name: name.to_owned(),
            found,
        };
        let cases = [
            ("", InvalidCorpusName::Empty),
            (".hidden", bad_start(".hidden", '.')),
            ("-", bad_start("-", '-')),
            ("Default", bad_character("Default", 'D')),
            ("a b", bad_character("a b", ' ')),
            ("../etc", bad_character("../etc", '/')),
            ("caf\u{e9}", bad_character("caf\u{e9}", '\u{e9}')),
            ("a\n", bad_character("a\n", '\n')),
        ];
        for (name, expected) in cases {
            assert_eq!(CorpusName::new(name), Err(expected), "{name:?}");
        }
        assert_eq!(
            CorpusName::new("a".repeat(129)),
            Err(InvalidCorpusName::TooLong { length: 129 })
        );
    }

    #[test]
    fn a_bad_name_teaches_the_rule() {
        let message = CorpusName::new("My Corpus").unwrap_err().to_string();
        assert_eq!(
            message,
            "corpus name \"My Corpus\" contains 'M', use only a-z, 0-9, '.', '_' and '-'"
        );
    }

    #[test]
    fn uids_differ() {
        assert_ne!(random_corpus_uid(), random_corpus_uid());
    }
}
