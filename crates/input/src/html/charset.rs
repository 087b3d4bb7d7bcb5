//! From bytes to characters, in the order of the HTML standard: a byte order mark, the `charset` of
//! the HTTP header, a `meta` element or XML declaration at the beginning; else UTF-8 where that fits, and
//! windows-1252 where it does not.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::memmem;

/// Within how many bytes a page may declare its character set.
const PRESCAN_BYTES: usize = 1024;

/// The markup of a page, whose HTTP header may have a `Content-Type`. Bytes that the character set
/// does not have become U+FFFD; NULs are left out, as browsers do.
pub(crate) fn decoded(bytes: &[u8], content_type: Option<&[u8]>) -> String {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((encoding, mark)) => (encoding, &bytes[mark..]),
        None => (encoding_of(bytes, content_type), bytes),
    };
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    let mut text = text.into_owned();
    if memchr::memchr(0, text.as_bytes()).is_some() {
        text.retain(|character| character != '\0');
    }
    text
}

fn encoding_of(bytes: &[u8], content_type: Option<&[u8]>) -> &'static Encoding {
    let head = &bytes[..bytes.len().min(PRESCAN_BYTES)];
    let declared = content_type
        .and_then(|value| encoding_after(value, b"charset"))
        .or_else(|| declared_in(head));
    match declared {
        Some(encoding) => encoding,
        None if std::str::from_utf8(bytes).is_ok() => UTF_8,
        None => WINDOWS_1252,
    }
}

/// The character set that the beginning of a page declares. What can be read in ASCII is not
/// UTF-16, whatever it says.
fn declared_in(head: &[u8]) -> Option<&'static Encoding> {
    let declared = in_xml_declaration(head).or_else(|| in_meta(head))?;
    Some(declared.output_encoding())
}

fn in_xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let end = memchr::memchr(b'>', declaration)?;
    encoding_after(&declaration[..end], b"encoding")
}

/// That of the first `meta` element outside of comments that names one.
fn in_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut rest = head;
    loop {
        rest = &rest[memchr::memchr(b'<', rest)? + 1..];
        if let Some(comment) = rest.strip_prefix(b"!--") {
            rest = &comment[memmem::find(comment, b"-->")?..];
            continue;
        }
        let (name, after) = rest.split_at_checked(4)?;
        if name.eq_ignore_ascii_case(b"meta") {
            let end = memchr::memchr(b'>', after)?;
            if let Some(encoding) = encoding_after(&after[..end], b"charset") {
                return Some(encoding);
            }
        }
    }
}

/// The character set in `name=label`, where the label may be quoted.
fn encoding_after(text: &[u8], name: &[u8]) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    memmem::find_iter(&lower, name).find_map(|at| {
        let after = lower[at + name.len()..].trim_ascii_start();
        let value = after.strip_prefix(b"=")?.trim_ascii_start();
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        let value = value.strip_prefix(b"'").unwrap_or(value);
        let ends = |byte: &u8| matches!(byte, b'"' | b'\'' | b';') || byte.is_ascii_whitespace();
        let end = value.iter().position(ends).unwrap_or(value.len());
        Encoding::for_label_no_replacement(&value[..end])
    })
}
