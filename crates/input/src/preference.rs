//! Which of several near-duplicates is preferred: a rank for each, the higher the better.

use std::fmt;
use std::str::FromStr;

use crate::document::RecordContent;
use crate::error::InputError;
use crate::fields::{RankField, RankedBy};
use crate::format::Format;
use crate::rank::LOWEST;

/// Which of several near-duplicates is preferred. Of equals it is the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The first of the input.
    First,
    /// That of the longest text, in characters.
    Longest,
    /// That of the latest date or the largest number in a field; those without one come last.
    Field(RankField),
}

/// A name of no preference.
#[derive(Debug, thiserror::Error)]
#[error("expected first, longest, newest:FIELD or highest:FIELD")]
pub struct ParsePreferenceError;

impl FromStr for Preference {
    type Err = ParsePreferenceError;

    fn from_str(name: &str) -> Result<Self, ParsePreferenceError> {
        let (by, field) = match name.split_once(':') {
            None if name == "first" => return Ok(Self::First),
            None if name == "longest" => return Ok(Self::Longest),
            Some(("newest", field)) => (RankedBy::Date, field),
            Some(("highest", field)) => (RankedBy::Number, field),
            None | Some(_) => return Err(ParsePreferenceError),
        };
        if field.is_empty() {
            return Err(ParsePreferenceError);
        }
        let name = field.to_owned();
        Ok(Self::Field(RankField { name, by }))
    }
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Longest => f.write_str("longest"),
            Self::Field(field) => match field.by {
                RankedBy::Date => write!(f, "newest:{}", field.name),
                RankedBy::Number => write!(f, "highest:{}", field.name),
            },
        }
    }
}

impl Preference {
    /// What a format lacks for this; `None` if nothing.
    pub(crate) fn lacks(&self, format: Format, has_texts: bool) -> Option<&'static str> {
        match self {
            Self::First => None,
            Self::Longest => (!has_texts).then_some("texts, not fingerprints or features"),
            Self::Field(_) => (!format.has_other_fields())
                .then_some("fields, which jsonl, csv, parquet and warc have"),
        }
    }

    /// The field that it is by, if any.
    pub(crate) fn field(&self) -> Option<&RankField> {
        match self {
            Self::First | Self::Longest => None,
            Self::Field(field) => Some(field),
        }
    }

    /// Refuses a field that no document has, unless there is no document.
    pub(crate) fn check(&self, ranks: &[u64]) -> Result<(), InputError> {
        match self.field() {
            Some(field) if !ranks.is_empty() && ranks.iter().all(|&rank| rank == LOWEST) => {
                Err(InputError::NoRanks {
                    preference: self.to_string(),
                    field: field.name.clone(),
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The rank of a record, to which the field gives this one.
    pub(crate) fn rank(&self, content: &RecordContent<'_>, by_field: u64) -> u64 {
        match (self, content) {
            (Self::Longest, RecordContent::Text(text)) => text.chars().count() as u64,
            (Self::First, _) | (Self::Longest, RecordContent::Fingerprint(_)) => LOWEST,
            (Self::Field(_), _) => by_field,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_called_as_they_are_shown() {
        for name in ["first", "longest", "newest:a:b", "highest:score"] {
            assert_eq!(name.parse::<Preference>().unwrap().to_string(), name);
        }
        for name in ["", "newest", "newest:", "highest:", "first:x", "last"] {
            assert!(name.parse::<Preference>().is_err(), "{name}");
        }
    }
}
