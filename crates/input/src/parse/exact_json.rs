//! The JSON lines format by all its rules, whatever a line holds, with the reason where it is bad.
//!
//! Fields are kept as they are written, not as a parser would represent them. A number never passes through a float, so
//! 2^64-1 and an id of `1.50` alike arrive intact.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::walk::Line;
use super::{decimal, features};
use crate::document::{Record, RecordContent, RecordId};
use crate::fields::{self, JsonContent, JsonFields};
use crate::problem::{LineProblem, excerpt};

/// About how much a message says of the fields that there are.
const NAMES_BYTES: usize = 100;

/// The white space of JSON.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Reads a line that is not blank.
pub(super) fn parse<'a>(
    fields: &JsonFields,
    line: &Line<'a>,
    text: &'a str,
) -> Result<Record<'a>, LineProblem> {
    let flags = fields.content.flags();
    let contents = fields.content.names().iter();
    let contents = contents.map(|name| (flags, name.as_str()));
    let id = fields.id.as_deref();
    let id = id.map(|name| (fields::ID_FLAGS, name));
    let wanted: Vec<_> = id.into_iter().chain(contents).collect();
    let found = find_fields(text, &wanted)?;
    let (id, contents) = match (id, found.split_first()) {
        (Some((_, name)), Some((id, contents))) => (given_id(name, id)?, contents),
        (None, _) | (_, None) => (line.id(), found.as_slice()),
    };
    let content = parse_content(&fields.content, contents)?;
    Ok(Record { id, content })
}

fn given_id<'a>(name: &str, written: &'a str) -> Result<RecordId<'a>, LineProblem> {
    match decode(written) {
        Decoded::String(id) => Ok(RecordId::Given(id)),
        Decoded::Number(id) => Ok(RecordId::Given(Cow::Borrowed(id))),
        Decoded::Other => Err(wrong_type(name, written, "a string or a number")),
    }
}

fn parse_content<'a>(
    kind: &JsonContent,
    contents: &[&'a str],
) -> Result<RecordContent<'a>, LineProblem> {
    let written = contents.first().copied().unwrap_or_default();
    let fingerprint = match kind {
        JsonContent::Texts(names) => return texts(names, contents).map(RecordContent::Text),
        JsonContent::Fingerprint(name, notation) => match decode(written) {
            Decoded::String(digits) => decimal::fingerprint(digits.as_bytes(), *notation)?,
            Decoded::Number(digits) => decimal::fingerprint(digits.as_bytes(), *notation)?,
            Decoded::Other => {
                return Err(wrong_type(name, written, "a number or a string of digits"));
            }
        },
        JsonContent::Features(name) => {
            let features = features::parse(written)
                .ok_or_else(|| wrong_type(name, written, features::EXPECTED))?;
            let too_large = || LineProblem::WeightsTooLarge { name: name.clone() };
            features.fingerprint().ok_or_else(too_large)?
        }
    };
    Ok(RecordContent::Fingerprint(fingerprint))
}

/// The joined texts of some fields. One that is null is as an empty one.
fn texts<'a>(names: &[String], contents: &[&'a str]) -> Result<Cow<'a, str>, LineProblem> {
    let mut texts = Vec::with_capacity(names.len());
    for (name, written) in names.iter().zip(contents) {
        match decode(written) {
            Decoded::String(text) => texts.push(text),
            Decoded::Other if *written == "null" => {}
            Decoded::Number(_) | Decoded::Other => {
                return Err(wrong_type(name, written, "a string or null"));
            }
        }
    }
    Ok(fields::join(texts))
}

fn wrong_type(name: &str, value: &str, expected: &'static str) -> LineProblem {
    let name = name.to_owned();
    if let Some(escape) = lone_surrogate(value) {
        let escape = escape.to_owned();
        return LineProblem::LoneSurrogate { name, escape };
    }
    LineProblem::WrongType {
        name,
        value: excerpt(value),
        expected,
    }
}

/// A value as far as it matters here.
pub(crate) enum Decoded<'a> {
    String(Cow<'a, str>),
    Number(&'a str),
    Other,
}

/// Decodes one valid JSON value. A string whose escapes make no Unicode text is `Other`.
pub(crate) fn decode(written: &str) -> Decoded<'_> {
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

/// The first escape of a string that is half of a surrogate pair without the other half; `None` if there is none, or it
/// is no string.
fn lone_surrogate(written: &str) -> Option<&str> {
    let mut rest = written.strip_prefix('"')?;
    loop {
        rest = &rest[rest.find('\\')?..];
        let next = rest.get(ESCAPED_UNIT.len()..).and_then(escaped_unit);
        let length = match (escaped_unit(rest), next) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * ESCAPED_UNIT.len(),
            (Some(0xD800..=0xDFFF), _) => return rest.get(..ESCAPED_UNIT.len()),
            (Some(_), _) => ESCAPED_UNIT.len(),
            (None, _) => r"\n".len(),
        };
        rest = rest.get(length..)?;
    }
}

/// A unit of UTF-16 as JSON may write it.
const ESCAPED_UNIT: &str = r"\u0000";

/// The unit that an escape at the beginning of this writes.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(r"\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// The values of some fields of the object on a line, as they are written. Each has the arguments
/// that name it, for whom it lacks.
fn find_fields<'a>(
    line: &'a str,
    fields: &[(&'static str, &str)],
) -> Result<Vec<&'a str>, LineProblem> {
    let mut found = vec![None; fields.len()];
    let mut rest = open_object(line).ok_or_else(|| no_object(line))?;
    while let Some(inside) = rest {
        let (field, after) = next_field(inside).ok_or_else(|| no_object(line))?;
        for ((_, name), slot) in fields.iter().zip(&mut found) {
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
    for ((_, name), slot) in fields.iter().zip(&mut found) {
        if slot.is_none() {
            *slot = inner(line, name)?;
        }
    }
    let required = fields.iter().zip(found).map(|((flags, name), value)| {
        value.ok_or_else(|| LineProblem::MissingField {
            value: excerpt(line),
            name: (*name).to_owned(),
            present: names(line),
            flags,
        })
    });
    required.collect()
}

/// The value of a field of the object on a line, or of one inside objects by its path, as it is written.
pub(crate) fn field<'a>(line: &'a str, name: &str) -> Result<Option<&'a str>, LineProblem> {
    match only_field(line, name)? {
        Some(value) => Ok(Some(value)),
        None => inner(line, name),
    }
}

/// The value of a field inside objects, as it is written, by a path such as `meta.url`; `None` if there is
/// none. A name without a dot is no path.
fn inner<'a>(object: &'a str, path: &str) -> Result<Option<&'a str>, LineProblem> {
    let (mut object, mut path) = (object, path);
    while let Some((name, rest)) = path.split_once('.') {
        match only_field(object, name)? {
            Some(value) => (object, path) = (value, rest),
            None => return Ok(None),
        }
        if !path.contains('.') {
            return only_field(object, path);
        }
    }
    Ok(None)
}

/// The value of one field of an object; `None` if it has none, or is no object.
fn only_field<'a>(object: &'a str, name: &str) -> Result<Option<&'a str>, LineProblem> {
    let mut found = None;
    let mut rest = open_object(object).flatten();
    while let Some((field, after)) = rest.and_then(next_field) {
        if field.name == name && found.replace(field.value).is_some() {
            return Err(LineProblem::RepeatedField {
                value: excerpt(object),
                name: name.to_owned(),
            });
        }
        rest = after;
    }
    Ok(found)
}

/// The names of an object's fields, as many as make a message of some length.
fn names(line: &str) -> String {
    let mut names = String::new();
    let mut rest = open_object(line).flatten();
    while let Some((field, after)) = rest.and_then(next_field) {
        if names.len() >= NAMES_BYTES {
            return names + ", …";
        }
        let lead = if names.is_empty() { "" } else { ", " };
        names += &format!("{lead}\"{}\"", excerpt(&field.name));
        rest = after;
    }
    names
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
