//! The JSON lines format: one object a line, of which two fields matter.
//!
//! Fields are kept as they are written, not as a parser would represent them: a number never
//! passes through a float, so 2^64-1 and an id of `1.50` alike arrive intact.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::error::excerpt;
use super::{Content, Document, LineProblem};

/// What JSON calls white space.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The fields to read.
pub(super) struct JsonFields {
    /// The field of the id.
    pub(super) id: String,
    /// The field of the content.
    pub(super) content: JsonContent,
}

/// The field of the content, and what it holds.
pub(super) enum JsonContent {
    Text(String),
    Fingerprint(String),
}

impl JsonFields {
    pub(super) fn carry_fingerprints(&self) -> bool {
        match self.content {
            JsonContent::Text(_) => false,
            JsonContent::Fingerprint(_) => true,
        }
    }

    /// Reads a line that is not blank.
    pub(super) fn parse(&self, line: &str) -> Result<Document, LineProblem> {
        let (JsonContent::Text(content_name) | JsonContent::Fingerprint(content_name)) =
            &self.content;
        let [id, content] = find_fields(line, [&self.id, content_name])?;
        let id = match decode(id) {
            Decoded::String(id) => id.into_owned(),
            Decoded::Number(id) => id.to_owned(),
            Decoded::Other => return Err(wrong_type(&self.id, id, "a string or a number")),
        };
        let content = match &self.content {
            JsonContent::Text(name) => match decode(content) {
                Decoded::String(text) => Content::Text(text.into_owned()),
                Decoded::Number(_) | Decoded::Other => {
                    return Err(wrong_type(name, content, "a string"));
                }
            },
            JsonContent::Fingerprint(name) => match decode(content) {
                Decoded::String(digits) => fingerprint(&digits)?,
                Decoded::Number(digits) => fingerprint(digits)?,
                Decoded::Other => {
                    return Err(wrong_type(name, content, "a number or a string of digits"));
                }
            },
        };
        Ok(Document { id, content })
    }
}

fn fingerprint(digits: &str) -> Result<Content, LineProblem> {
    match digits.parse() {
        Ok(fingerprint) => Ok(Content::Fingerprint(fingerprint)),
        Err(error) => Err(LineProblem::NotFingerprint {
            value: excerpt(digits),
            error,
        }),
    }
}

fn wrong_type(name: &str, value: &str, expected: &'static str) -> LineProblem {
    LineProblem::WrongType {
        name: name.to_owned(),
        value: excerpt(value),
        expected,
    }
}

/// A value as far as it matters here.
enum Decoded<'a> {
    String(Cow<'a, str>),
    Number(&'a str),
    Other,
}

/// Decodes one valid JSON value. A string whose escapes make no Unicode text is `Other`.
fn decode(written: &str) -> Decoded<'_> {
    if let Some(text) = decode_string(written) {
        return Decoded::String(text);
    }
    if written.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Decoded::Number(written);
    }
    Decoded::Other
}

fn decode_string(written: &str) -> Option<Cow<'_, str>> {
    let inner = written.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(written).ok().map(Cow::Owned)
}

/// The values of two fields of the object on a line, as they are written.
fn find_fields<'a>(line: &'a str, names: [&str; 2]) -> Result<[&'a str; 2], LineProblem> {
    let mut found = [None; 2];
    let mut rest = open_object(line).ok_or_else(|| no_object(line))?;
    while let Some(inside) = rest {
        let (field, after) = next_field(inside).ok_or_else(|| no_object(line))?;
        for (name, slot) in names.iter().zip(&mut found) {
            if field.name != *name {
                continue;
            }
            if slot.replace(field.value).is_some() {
                return Err(LineProblem::RepeatedField {
                    value: excerpt(line),
                    name: (*name).to_owned(),
                });
            }
        }
        rest = after;
    }
    let require = |index: usize| {
        found[index].ok_or_else(|| LineProblem::MissingField {
            value: excerpt(line),
            name: names[index].to_owned(),
        })
    };
    Ok([require(0)?, require(1)?])
}

struct Field<'a> {
    name: Cow<'a, str>,
    value: &'a str,
}

/// Steps into an object: what follows its brace, or `Some(None)` where it is empty.
fn open_object(line: &str) -> Option<Option<&str>> {
    let inside = line.trim_matches(SPACE).strip_prefix('{')?;
    if inside.trim_start_matches(SPACE) == "}" {
        return Some(None);
    }
    Some(Some(inside))
}

/// Reads one field and what separates it from the next; `None` beside it where it was the last.
fn next_field(rest: &str) -> Option<(Field<'_>, Option<&str>)> {
    let (name, rest) = next_value(rest)?;
    let name = decode_string(name)?;
    let rest = rest.trim_start_matches(SPACE).strip_prefix(':')?;
    let (value, rest) = next_value(rest)?;
    let field = Field { name, value };
    let rest = rest.trim_start_matches(SPACE);
    if rest == "}" {
        return Some((field, None));
    }
    Some((field, Some(rest.strip_prefix(',')?)))
}

/// Splits one JSON value, as it is written, from what follows it.
fn next_value(rest: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (value, rest) = rest.split_at_checked(values.byte_offset())?;
    Some((value.trim_start_matches(SPACE), rest))
}

/// Says why a line is no object, in the words of the JSON parser where it has any.
fn no_object(line: &str) -> LineProblem {
    let reason = match serde_json::from_str::<IgnoredAny>(line) {
        Ok(_) => "expected {\"name\": value, …}".to_owned(),
        Err(error) => {
            let text = error.to_string();
            let words = text.split(" at line ").next().unwrap_or(&text);
            format!("{words} (column {})", error.column())
        }
    };
    LineProblem::NotJsonObject {
        value: excerpt(line),
        reason,
    }
}
