//! What the formats say, read aloud, line by line.

use serde::Deserialize;
use simshard_input::{Content, Document};
use simshard_simhash::Fingerprint;

use super::{Kind, MAX_ID_BYTES};

/// A JSON line with an id that is a string, and a text.
#[derive(Deserialize)]
struct Text {
    id: String,
    text: String,
}

/// A JSON line with an id that is a string, and a fingerprint that is a number.
#[derive(Deserialize)]
struct Print {
    id: String,
    hash: u64,
}

/// The number of lines in some bytes.
pub(super) fn line_count(bytes: &[u8]) -> u64 {
    lines(bytes).count() as u64
}

/// The documents among the lines: all of them, or, for JSON, some that there must be, in their
/// order.
pub(super) fn documents(kind: Kind, bytes: &[u8]) -> Vec<Document> {
    let mut documents = Vec::new();
    for (number, line) in (1..).zip(lines(bytes)) {
        let Ok(mut line) = std::str::from_utf8(line) else {
            continue;
        };
        if number == 1 {
            line = line.strip_prefix('\u{FEFF}').unwrap_or(line);
        }
        if line.contains('\0') {
            continue;
        }
        documents.extend(document(kind, number, line));
    }
    documents.retain(|document| document.id.len() <= MAX_ID_BYTES);
    documents
}

fn document(kind: Kind, number: u64, line: &str) -> Option<Document> {
    let (id, content) = match kind {
        Kind::Hashes => (number.to_string(), print(line)?),
        Kind::Lines => {
            let is_blank = line.chars().all(char::is_whitespace);
            let text = (!is_blank).then(|| line.to_owned())?;
            (number.to_string(), Content::Text(text))
        }
        Kind::Tsv => {
            let columns: Vec<&str> = line.split('\t').collect();
            let [id, digits] = columns[..] else {
                return None;
            };
            (id.to_owned(), print(digits)?)
        }
        Kind::JsonTexts => {
            let Text { id, text } = object(line)?;
            (id, Content::Text(text))
        }
        Kind::JsonFingerprints => {
            let Print { id, hash } = object(line)?;
            (id, Content::Fingerprint(Fingerprint(hash)))
        }
        Kind::JsonFeatures => return None,
    };
    Some(Document { id, content })
}

/// The lines of some bytes, without their line breaks.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| match line.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => line,
    })
}

fn print(digits: &str) -> Option<Content> {
    let are_digits = digits.chars().all(|digit| digit.is_ascii_digit());
    let value = digits.parse().ok().filter(|_| are_digits)?;
    Some(Content::Fingerprint(Fingerprint(value)))
}

/// An object; the library reads arrays as structs too.
fn object<'a, T: Deserialize<'a>>(line: &'a str) -> Option<T> {
    let is_object = line.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(line).ok()).flatten()
}
