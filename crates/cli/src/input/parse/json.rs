//! The JSON lines format: one object a line, of which two fields matter.
//!
//! One pass of the parser takes the two fields out of an ordinary line. A line that is anything
//! else, faulty or merely rare, is read again by [`exact_json`], which knows every rule and says
//! what is wrong. So this pass may give up as it likes, but what it takes, it takes as that does.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use simshard_simhash::Fingerprint;

use super::{Record, RecordContent, RecordId, decimal::parse_decimal, exact_json};
use crate::input::LineProblem;

/// The fields to read.
#[derive(Clone, Debug)]
pub(in crate::input) struct JsonFields {
    /// The field of the id.
    pub(in crate::input) id: String,
    /// The field of the content.
    pub(in crate::input) content: JsonContent,
}

/// The field of the content, and what it holds.
#[derive(Clone, Debug)]
pub(in crate::input) enum JsonContent {
    /// A text.
    Text(String),
    /// A fingerprint.
    Fingerprint(String),
    /// Hashes with their weights.
    Features(String),
}

impl JsonContent {
    /// The field.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Text(name) | Self::Fingerprint(name) | Self::Features(name) => name,
        }
    }
}

impl JsonFields {
    /// Reads a line that is not blank.
    pub(super) fn parse<'a>(&self, line: &'a str) -> Result<Record<'a>, LineProblem> {
        match self.parse_ordinary(line) {
            Some(record) => Ok(record),
            None => exact_json::parse(self, line),
        }
    }

    /// Reads an object that has both fields once, as a string or an integer; may decline.
    pub(super) fn parse_ordinary<'a>(&self, line: &'a str) -> Option<Record<'a>> {
        // One field cannot be read as two in one pass; features are lists.
        if self.id == self.content.name() || matches!(self.content, JsonContent::Features(_)) {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let (id, content) = deserializer.deserialize_map(Object(self)).ok()?;
        deserializer.end().ok()?;
        let id = match id {
            Scalar::Text(id) => RecordId::Given(id),
            Scalar::Number(number) => RecordId::Number {
                source: None,
                number,
            },
        };
        let content = match (&self.content, content) {
            (JsonContent::Text(_), Scalar::Text(text)) => RecordContent::Text(text),
            (JsonContent::Fingerprint(_), Scalar::Number(number)) => {
                RecordContent::Fingerprint(Fingerprint(number))
            }
            (JsonContent::Fingerprint(_), Scalar::Text(digits)) => {
                RecordContent::Fingerprint(Fingerprint(parse_decimal(digits.as_bytes())?))
            }
            (JsonContent::Text(_), Scalar::Number(_)) | (JsonContent::Features(_), _) => {
                return None;
            }
        };
        Some(Record { id, content })
    }
}

/// The value of a field.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Number(u64),
}

/// Reads the id and the content of an object.
struct Object<'f>(&'f JsonFields);

impl<'a> Visitor<'a> for Object<'_> {
    type Value = (Scalar<'a>, Scalar<'a>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut fields: M) -> Result<Self::Value, M::Error> {
        let (mut id, mut content) = (None, None);
        while let Some(name) = fields.next_key_seed(Name(self.0))? {
            let slot = match name {
                Which::Id => &mut id,
                Which::Content => &mut content,
                Which::Other => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if slot.replace(fields.next_value_seed(AnyScalar)?).is_some() {
                return Err(M::Error::custom("a field twice"));
            }
        }
        match (id, content) {
            (Some(id), Some(content)) => Ok((id, content)),
            (None, _) | (_, None) => Err(M::Error::custom("a field missing")),
        }
    }
}

/// Which field a name is.
enum Which {
    Id,
    Content,
    Other,
}

struct Name<'f>(&'f JsonFields);

impl<'a> DeserializeSeed<'a> for Name<'_> {
    type Value = Which;

    fn deserialize<D: Deserializer<'a>>(self, name: D) -> Result<Which, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Which;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Which, E> {
        if name == self.0.id {
            return Ok(Which::Id);
        }
        match name == self.0.content.name() {
            true => Ok(Which::Content),
            false => Ok(Which::Other),
        }
    }
}

struct AnyScalar;

impl<'a> DeserializeSeed<'a> for AnyScalar {
    type Value = Scalar<'a>;

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<Scalar<'a>, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for AnyScalar {
    type Value = Scalar<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Number(number))
    }
}
