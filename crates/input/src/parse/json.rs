//! The JSON lines format: one object a line, of which two fields matter.
//!
//! One pass of the parser takes the two fields out of an ordinary line. A line that is anything
//! else, faulty or merely rare, is read again by [`exact_json`], which knows every rule and says
//! what is wrong. So this pass may give up as it likes, but what it takes, it takes as that does.
//!
//! Why two parsers: a single one has to keep both fields as they are written, for ids such as `1.50`.
//! In one pass with the `RawValue` of `serde_json` that was 4 to 7 % slower in 31 paired runs.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use simshard_simhash::Fingerprint;

use super::decimal::parse_decimal;
use super::exact_json;
use super::lines::is_blank;
use super::walk::Line;
use crate::document::{Record, RecordContent, RecordId};
use crate::fields::{JsonContent, JsonFields};
use crate::notation::Notation;
use crate::problem::LineProblem;

/// Reads a line; `None` for a blank one.
pub(super) fn parse<'a>(
    fields: &JsonFields,
    line: &Line<'a>,
    text: &'a str,
) -> Result<Option<Record<'a>>, LineProblem> {
    let record = match parse_ordinary(fields, text) {
        Some(record) => record,
        None if is_blank(text) => return Ok(None),
        None => exact_json::parse(fields, line, text)?,
    };
    Ok(Some(record))
}

/// Reads an object that has both fields once, as a string or an integer; may decline.
fn parse_ordinary<'a>(fields: &JsonFields, line: &'a str) -> Option<Record<'a>> {
    // One field cannot be read as two in one pass; features are lists.
    let names = Names {
        id: fields.id.as_deref()?,
        content: fields.content.only_name()?,
    };
    let is_exact = match fields.content {
        JsonContent::Texts(_) | JsonContent::Fingerprint(_, Notation::Unsigned) => false,
        JsonContent::Fingerprint(_, Notation::Signed) | JsonContent::Features(_) => true,
    };
    if is_exact || names.id == names.content {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let (id, content) = deserializer.deserialize_map(Object(names)).ok()?;
    deserializer.end().ok()?;
    let id = match id {
        Scalar::Text(id) => RecordId::Given(id),
        Scalar::Number(number) => RecordId::Number {
            source: None,
            number,
        },
    };
    let content = match (&fields.content, content) {
        (JsonContent::Texts(_), Scalar::Text(text)) => RecordContent::Text(text),
        (JsonContent::Fingerprint(..), Scalar::Number(number)) => {
            RecordContent::Fingerprint(Fingerprint(number))
        }
        (JsonContent::Fingerprint(..), Scalar::Text(digits)) => {
            RecordContent::Fingerprint(Fingerprint(parse_decimal(digits.as_bytes())?))
        }
        (JsonContent::Texts(_), Scalar::Number(_)) | (JsonContent::Features(_), _) => {
            return None;
        }
    };
    Some(Record { id, content })
}

/// The value of a field.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Number(u64),
}

/// The two fields.
#[derive(Clone, Copy)]
struct Names<'f> {
    id: &'f str,
    content: &'f str,
}

/// Reads the id and the content of an object.
struct Object<'f>(Names<'f>);

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

struct Name<'f>(Names<'f>);

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
        if name == self.0.content {
            return Ok(Which::Content);
        }
        Ok(Which::Other)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of JSON, and of what looks like it.
    const PIECES: [&str; 44] = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        " ",
        "\t",
        "\r",
        "\"id\"",
        "\"text\"",
        "\"hash\"",
        "\"a\"",
        "\"i\\u0064\"",
        "\"te\\u0078t\"",
        "\"\"",
        "\"x\"",
        "\"é😀\"",
        "\"a\\n\\\"b\\\\\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "\"\\q\"",
        "\"\u{1}\"",
        "\"\u{0}\"",
        "\"17\"",
        "\"18446744073709551616\"",
        "0",
        "-0",
        "7",
        "-7",
        "007",
        "18446744073709551615",
        "18446744073709551616",
        "1.50",
        "1e999",
        "null",
        "true",
        "nul",
        "[1,{\"id\":2}]",
        "{\"text\":\"}\"}",
        "\"id\":1",
        "\"text\":\"y\"",
        "\"hash\":9",
        "\u{FEFF}",
    ];

    fn fields() -> impl Strategy<Value = JsonFields> {
        let content = prop_oneof![
            3 => Just(JsonContent::Texts(vec!["text".to_owned()])),
            3 => Just(JsonContent::Fingerprint("hash".to_owned(), Notation::Unsigned)),
            1 => Just(JsonContent::Texts(vec!["id".to_owned()])),
        ];
        content.prop_map(|content| JsonFields {
            id: Some("id".to_owned()),
            content,
        })
    }

    /// Objects that are mostly sound, and mere rows of pieces.
    fn line() -> impl Strategy<Value = String> {
        let piece = || prop::sample::select(&PIECES[..]);
        let name = prop::sample::select(&PIECES[9..16]);
        let field = (name, piece()).prop_map(|(name, value)| format!("{name}: {value}"));
        let object = prop::collection::vec(field, 0..5)
            .prop_map(|fields| format!(" {{{}}}", fields.join(" ,")));
        let rubble = prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat());
        prop_oneof![4 => object, 1 => rubble]
    }

    /// The record as others see it.
    fn seen(record: Record<'_>) -> (String, RecordContent<'_>) {
        (record.id.to_string(), record.content)
    }

    fn cases() -> u32 {
        match std::env::var_os("SIMSHARD_LONG") {
            Some(_) => 1_000_000,
            None => 50_000,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases()))]

        #[test]
        fn what_one_pass_takes_the_rules_take_alike(line in line(), fields in fields()) {
            if let Some(record) = parse_ordinary(&fields, &line) {
                let exact = exact_json::parse(&fields, &Line::of(&line), &line);
                prop_assert_eq!(exact.map(seen), Ok(seen(record)));
            }
        }
    }

    #[test]
    fn one_pass_takes_ordinary_lines_and_copies_no_text_without_escapes() {
        let fields = |content| JsonFields {
            id: Some("id".to_owned()),
            content,
        };
        let texts = fields(JsonContent::Texts(vec!["text".to_owned()]));
        let record = parse_ordinary(&texts, r#"{"a":[{}],"text":"x é","id":"7"}"#).unwrap();
        assert!(matches!(record.id, RecordId::Given(Cow::Borrowed("7"))));
        assert!(matches!(
            record.content,
            RecordContent::Text(Cow::Borrowed("x é"))
        ));
        let record = parse_ordinary(&texts, r#"{"id":7,"text":"x\ny"}"#).unwrap();
        assert_eq!(record.id.to_string(), "7");
        let hashes = fields(JsonContent::Fingerprint(
            "hash".to_owned(),
            Notation::Unsigned,
        ));
        for line in [r#"{"id":7,"hash":17}"#, r#"{"id":7,"hash":"17"}"#] {
            let record = parse_ordinary(&hashes, line).unwrap();
            assert_eq!(record.content, RecordContent::Fingerprint(Fingerprint(17)));
        }
    }
}
