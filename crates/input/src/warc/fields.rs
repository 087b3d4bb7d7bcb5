//! The fields of a header, of a WARC record or an HTTP response: `Name: value`, a line each.

use std::borrow::Cow;

use super::error::BrokenProblem;
use crate::problem::excerpt;

/// The lines of a header after its first.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of a header, whose first line is no field.
    pub(super) fn of(header: &'a [u8]) -> Self {
        let first = header.iter().position(|byte| *byte == b'\n');
        Self(first.map_or(&[], |end| &header[end + 1..]))
    }

    /// The value of the first field of this name, in any case.
    pub(super) fn get(self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.all(name).next()
    }

    /// The values of all fields of this name, in any case. Where one goes on in lines that begin
    /// with a blank, they are joined by one.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = Cow<'a, [u8]>> {
        let mut lines = self.0.split(|byte| *byte == b'\n').peekable();
        std::iter::from_fn(move || {
            let mut value = loop {
                let line = lines.next()?;
                let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                    continue;
                };
                let (found, value) = line.split_at(colon);
                if found.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()) {
                    break Cow::Borrowed(value[1..].trim_ascii());
                }
            };
            let goes_on = |line: &&[u8]| line.starts_with(b" ") || line.starts_with(b"\t");
            while let Some(line) = lines.next_if(goes_on) {
                let value = value.to_mut();
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii());
            }
            Some(value)
        })
    }
}

/// The part of a `Content-Type` before its parameters; empty where it is no text.
pub(super) fn media_type(content_type: &[u8]) -> &str {
    let text = std::str::from_utf8(content_type).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim()
}

/// The kind of a text, by its `Content-Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// `text/plain` in UTF-8, or in a part of it.
    Plain,
    /// HTML in any character set.
    Html,
    /// XHTML in any character set.
    Xhtml,
}

/// The kind of text of a `Content-Type`; `None` if it is no readable text.
pub(super) fn text_kind(content_type: &[u8]) -> Option<TextKind> {
    match media_type(content_type).to_ascii_lowercase().as_str() {
        "text/html" => Some(TextKind::Html),
        "application/xhtml+xml" => Some(TextKind::Xhtml),
        _ => is_plain_text(content_type).then_some(TextKind::Plain),
    }
}

/// What a `Content-Type` is called where its records are counted.
pub(super) fn kind_name(content_type: &[u8]) -> String {
    let media_type = media_type(content_type).to_ascii_lowercase();
    match charsets(content_type).next() {
        _ if media_type.is_empty() => "no content type".to_owned(),
        Some(charset) if media_type == "text/plain" => {
            format!("{media_type} in {}", charset.to_ascii_lowercase())
        }
        Some(_) | None => media_type,
    }
}

fn is_plain_text(content_type: &[u8]) -> bool {
    let is_known = |charset: &str| {
        ["utf-8", "utf8", "us-ascii", "ascii"]
            .into_iter()
            .any(|known| charset.eq_ignore_ascii_case(known))
    };
    media_type(content_type).eq_ignore_ascii_case("text/plain")
        && charsets(content_type).all(is_known)
}

/// The character sets that a `Content-Type` names.
fn charsets(content_type: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(content_type).unwrap_or_default();
    text.split(';').skip(1).filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// The length of the block of a record, by its header.
pub(super) fn content_length(header: &[u8]) -> Result<u64, BrokenProblem> {
    let mut values = Fields::of(header).all("Content-Length");
    let Some(first) = values.next() else {
        return Err(BrokenProblem::NoLength);
    };
    let text = String::from_utf8_lossy(&first);
    if let Some(other) = values.find(|other| *other != first) {
        return Err(BrokenProblem::TwoLengths {
            first: excerpt(&text),
            other: excerpt(&String::from_utf8_lossy(&other)),
        });
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| BrokenProblem::BadLength {
        value: excerpt(&text),
    })
}
