//! From bytes to characters, in the order of the HTML standard. First comes a byte order mark, then the `charset` of
//! the HTTP header, then a `meta` element or XML declaration at the beginning. Without any, it is UTF-16 where the
//! first tag is. Else it is UTF-8 where that fits, up to a last character that is cut, and windows-1252 where it does
//! not.

use std::borrow::Cow;

use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::memmem;

/// Within how many bytes a page may declare its character set.
const PRESCAN_BYTES: usize = 1024;
/// More than the longest label of a character set has.
const LABEL_BYTES: usize = 64;

/// A page in UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) markup: String,
    pub(crate) doubt: Option<Doubt>,
}

/// Why a page may not be what its author wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It was read as windows-1252, as nothing says its character set, and it is not UTF-8.
    Undeclared,
    /// The character set that it declares does not have some of its bytes.
    Misdeclared,
}

/// The markup of a page, whose HTTP header may have a `Content-Type`. Bytes that the character set
/// does not have become U+FFFD; NULs are left out, as browsers do.
pub(crate) fn decoded(bytes: &[u8], content_type: Option<&[u8]>) -> Decoded {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((encoding, mark)) => (Some(encoding), &bytes[mark..]),
        None => (encoding_of(bytes, content_type), bytes),
    };
    let read_as = encoding.unwrap_or(WINDOWS_1252);
    let (text, has_others) = read_as.decode_without_bom_handling(bytes);
    let doubt = match encoding {
        None => Some(Doubt::Undeclared),
        Some(_) if has_others && !is_so_far(read_as, bytes) => Some(Doubt::Misdeclared),
        Some(_) => None,
    };
    Decoded {
        markup: without_nuls(text).into_owned(),
        doubt,
    }
}

pub(super) fn without_nuls(text: Cow<'_, str>) -> Cow<'_, str> {
    match memchr::memchr(0, text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace('\0', "")),
        None => text,
    }
}

/// The character set of a page, if anything tells it.
fn encoding_of(bytes: &[u8], content_type: Option<&[u8]>) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(PRESCAN_BYTES)];
    let declared = content_type
        .and_then(|value| encoding_after(value, b"charset"))
        .or_else(|| declared_in(head));
    match declared {
        Some(encoding) => Some(encoding),
        None if head.starts_with(b"<\0") => Some(UTF_16LE),
        None if head.starts_with(b"\0<") => Some(UTF_16BE),
        None => is_utf8_so_far(bytes).then_some(UTF_8),
    }
}

/// Whether these bytes are of a character set, or the beginning of such: crawlers cut long pages, even within a
/// character.
fn is_so_far(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    let mut text = String::with_capacity(room.unwrap_or_default());
    let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, false);
    result == DecoderResult::InputEmpty
}

/// The same of UTF-8.
fn is_utf8_so_far(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
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

/// That of the first `meta` element outside of comments and tags that names one; none behind a tag that
/// does not end here.
fn in_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut rest = head;
    loop {
        rest = &rest[memchr::memchr(b'<', rest)? + 1..];
        // The dashes of `<!-->` both begin the comment and end it.
        if let Some(comment) = rest.strip_prefix(b"!").filter(|it| it.starts_with(b"--")) {
            rest = &comment[memmem::find(comment, b"-->")?..];
            continue;
        }
        let tag = rest.strip_prefix(b"/").unwrap_or(rest);
        if !tag.first().is_some_and(u8::is_ascii_alphabetic) {
            if matches!(rest.first(), Some(b'!' | b'/' | b'?')) {
                rest = &rest[memchr::memchr(b'>', rest)?..];
            }
            continue;
        }
        // That of an end tag is empty here.
        let name;
        (name, rest) = rest.split_at(rest.iter().position(|byte| ends_name(*byte))?);
        let attributes;
        (attributes, rest) = attributes_of(rest)?;
        if name.eq_ignore_ascii_case(b"meta")
            && let Some(encoding) = declared_by(&attributes)
        {
            return Some(encoding);
        }
    }
}

/// That of a `meta` element: its own, or that of the header that it repeats.
fn declared_by(attributes: &[Attribute<'_>]) -> Option<&'static Encoding> {
    let get = |name: &[u8]| {
        let mut found = attributes.iter();
        found.find_map(|(one, value)| one.eq_ignore_ascii_case(name).then_some(*value))
    };
    if let Some(label) = get(b"charset") {
        return Encoding::for_label_no_replacement(label);
    }
    let header = get(b"http-equiv")?;
    let content = get(b"content").filter(|_| header.eq_ignore_ascii_case(b"content-type"))?;
    encoding_after(content, b"charset")
}

/// A name and a value.
type Attribute<'a> = (&'a [u8], &'a [u8]);

/// The attributes of a tag, and what follows it; `None` if it does not end here.
fn attributes_of(mut rest: &[u8]) -> Option<(Vec<Attribute<'_>>, &[u8])> {
    let mut attributes = Vec::new();
    loop {
        let is_between = |byte: &u8| *byte == b'/' || byte.is_ascii_whitespace();
        rest = &rest[rest.iter().position(|byte| !is_between(byte))?..];
        if let Some(after) = rest.strip_prefix(b">") {
            return Some((attributes, after));
        }
        // A first `=` is part of the name.
        let mut bytes = rest.iter().skip(1);
        let (name, after) =
            rest.split_at(1 + bytes.position(|byte| *byte == b'=' || ends_name(*byte))?);
        let value;
        (value, rest) = match after.trim_ascii_start().strip_prefix(b"=") {
            Some(after) => value_of(after.trim_ascii_start())?,
            None => (&b""[..], after),
        };
        attributes.push((name, value));
    }
}

/// The value at the beginning of this, and what follows it.
fn value_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let [quote @ (b'"' | b'\''), quoted @ ..] = text {
        let end = memchr::memchr(*quote, quoted)?;
        return Some((&quoted[..end], &quoted[end + 1..]));
    }
    let is_end = |byte: &u8| *byte == b'>' || byte.is_ascii_whitespace();
    Some(text.split_at(text.iter().position(is_end)?))
}

/// Whether a byte is behind the name of a tag or an attribute.
const fn ends_name(byte: u8) -> bool {
    matches!(byte, b'/' | b'>') || byte.is_ascii_whitespace()
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
        let value = &value[..value.len().min(LABEL_BYTES)];
        let end = value.iter().position(ends).unwrap_or(value.len());
        Encoding::for_label_no_replacement(&value[..end])
    })
}
