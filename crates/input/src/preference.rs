//! Which of several near-duplicates is preferred: a rank for each, the higher the better.

mod date;

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::document::{Record, RecordContent};
use crate::error::InputError;
use crate::format::Format;
use crate::parse::inner_json_field;
use crate::problem::{LineProblem, excerpt};

/// The rank of a record without the field that ranks it.
const LOWEST: u64 = 0;

/// Which of several near-duplicates is preferred. Of equals it is the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The first of the input.
    First,
    /// That of the longest text, in characters.
    Longest,
    /// That of the latest date in this field; records without one come last.
    Newest(String),
    /// That of the largest number in this field; records without one come last.
    Highest(String),
}

/// A name of no preference.
#[derive(Debug, thiserror::Error)]
#[error("expected first, longest, newest:FIELD or highest:FIELD")]
pub struct ParsePreferenceError;

impl FromStr for Preference {
    type Err = ParsePreferenceError;

    fn from_str(name: &str) -> Result<Self, ParsePreferenceError> {
        match name.split_once(':') {
            None if name == "first" => Ok(Self::First),
            None if name == "longest" => Ok(Self::Longest),
            Some(("newest", field)) if !field.is_empty() => Ok(Self::Newest(field.to_owned())),
            Some(("highest", field)) if !field.is_empty() => Ok(Self::Highest(field.to_owned())),
            None | Some(_) => Err(ParsePreferenceError),
        }
    }
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Longest => f.write_str("longest"),
            Self::Newest(field) => write!(f, "newest:{field}"),
            Self::Highest(field) => write!(f, "highest:{field}"),
        }
    }
}

impl Preference {
    /// What a format lacks for this; `None` if nothing.
    pub(crate) fn lacks(&self, format: Format, has_texts: bool) -> Option<&'static str> {
        match self {
            Self::First => None,
            Self::Longest => (!has_texts).then_some("texts, not fingerprints or features"),
            Self::Newest(_) | Self::Highest(_) => {
                let needs = match format {
                    Format::Csv | Format::Parquet | Format::Arrow => {
                        "a field of JSON lines, as columns are not read for it"
                    }
                    Format::Hashes
                    | Format::Lines
                    | Format::Tsv
                    | Format::Warc
                    | Format::Files
                    | Format::Jsonl => "fields, which JSON lines have",
                };
                (!format.has_other_fields()).then_some(needs)
            }
        }
    }

    /// Refuses a field that no document has, unless there is no document.
    pub(crate) fn check(&self, ranks: &[u64]) -> Result<(), InputError> {
        match self {
            Self::Newest(field) | Self::Highest(field)
                if !ranks.is_empty() && ranks.iter().all(|&rank| rank == LOWEST) =>
            {
                Err(InputError::NoRanks {
                    preference: self.to_string(),
                    field: field.clone(),
                })
            }
            Self::First | Self::Longest | Self::Newest(_) | Self::Highest(_) => Ok(()),
        }
    }

    /// The rank of a record, which stands on this line.
    pub(crate) fn rank(&self, line: &[u8], record: &Record<'_>) -> Result<u64, LineProblem> {
        match self {
            Self::First => Ok(LOWEST),
            Self::Longest => Ok(match &record.content {
                RecordContent::Text(text) => text.chars().count() as u64,
                RecordContent::Fingerprint(_) => LOWEST,
            }),
            Self::Newest(field) => match value(line, field)? {
                Value::Null => Ok(LOWEST),
                Value::String(date) => match date::ticks(&date) {
                    Some(ticks) => Ok(1 + ticks),
                    None => Err(no_date(field, &Value::String(date))),
                },
                other
                @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    Err(no_date(field, &other))
                }
            },
            Self::Highest(field) => {
                let value = value(line, field)?;
                match value.as_f64() {
                    Some(number) => Ok(ascending(number)),
                    None if value.is_null() => Ok(LOWEST),
                    None => Err(no_number(field, &value)),
                }
            }
        }
    }
}

fn no_number(field: &str, value: &Value) -> LineProblem {
    LineProblem::WrongType {
        name: field.to_owned(),
        value: excerpt(&value.to_string()),
        expected: "a number, or null",
    }
}

fn no_date(field: &str, value: &Value) -> LineProblem {
    LineProblem::WrongType {
        name: field.to_owned(),
        value: excerpt(&value.to_string()),
        expected: "a date as 2026-01-31T23:59:59Z (RFC 3339), or null",
    }
}

/// A number that grows as the given one does, and is never the lowest.
fn ascending(number: f64) -> u64 {
    // The two zeros are one number.
    let bits = (number + 0.0).to_bits();
    let sign = 1 << 63;
    if bits & sign == 0 { bits | sign } else { !bits }
}

/// The value of a field; null where there is none.
fn value(line: &[u8], field: &str) -> Result<Value, LineProblem> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let found = deserializer.deserialize_map(Field(field));
    let found = found.map_err(|error| LineProblem::NotJsonObject {
        value: excerpt(&String::from_utf8_lossy(line)),
        reason: error.to_string(),
    })?;
    let found = found.ok_or_else(|| LineProblem::RepeatedField {
        value: excerpt(&String::from_utf8_lossy(line)),
        name: field.to_owned(),
    })?;
    if !found.is_null() || !field.contains('.') {
        return Ok(found);
    }
    // A path into the object.
    let text = std::str::from_utf8(line).unwrap_or_default();
    let inner = inner_json_field(text, field)?;
    Ok(inner
        .and_then(|inner| serde_json::from_str(inner).ok())
        .unwrap_or(Value::Null))
}

/// Reads one field of an object: `None` if it is there twice.
struct Field<'f>(&'f str);

impl<'a> Visitor<'a> for Field<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut fields: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        let mut is_repeated = false;
        while let Some(name) = fields.next_key::<std::borrow::Cow<'_, str>>()? {
            if name == self.0 {
                let value = fields.next_value::<Value>().map_err(M::Error::custom)?;
                is_repeated |= found.replace(value).is_some();
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok((!is_repeated).then(|| found.unwrap_or(Value::Null)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend() {
        let ascend = [
            f64::MIN,
            -2.5,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            1e-300,
            1.0,
            2.0,
            f64::MAX,
        ];
        assert!(ascend.is_sorted_by(|a, b| ascending(*a) < ascending(*b)));
        assert_eq!(ascending(-0.0), ascending(0.0));
        assert!(ascending(f64::MIN) > LOWEST);
    }

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
