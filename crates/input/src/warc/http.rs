//! The payload of an HTTP response as a crawler stored it.

use std::io::{self, Read};

use flate2::bufread::{DeflateDecoder, ZlibDecoder};

use super::error::RecordProblem;
use super::fields::{Fields, kind_name, text_kind};
use super::record::{Block, MAX_HEADER_BYTES};
use super::text::Text;
use crate::document::MAX_RECORD_BYTES;
use crate::gzip::Members;

const GZIP_MAGIC: &[u8] = &[0x1F, 0x8B];

/// The two bytes of a zlib header name this method in their low bits and are a multiple of this number.
const ZLIB_METHOD: u8 = 8;
const ZLIB_CHECK: u16 = 31;

/// The content of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// A text, of at most [`MAX_RECORD_BYTES`].
    Text(Text),
    /// Anything else, by what it is.
    Other(String),
}

/// An encoding of a payload. A header lists the outermost last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    Gzip,
    Deflate,
}

/// The payload of the response in a block.
pub(super) fn payload(block: &Block<'_>) -> Result<Payload, RecordProblem> {
    let other = |kind: &str| Ok(Payload::Other(kind.to_owned()));
    let parts =
        split(block.bytes).and_then(|(header, payload)| Some((header, status(header)?, payload)));
    let Some((header, status, payload)) = parts else {
        return other("no HTTP");
    };
    // A redirect or an error page is no document.
    if status != "200" {
        return other(&format!("status {status}"));
    }
    let fields = Fields::of(header);
    let content_type = fields.get("Content-Type").unwrap_or_default();
    let Some(kind) = text_kind(&content_type) else {
        return other(&kind_name(&content_type));
    };
    let codings = match codings(fields) {
        Ok(codings) => codings,
        Err(unknown) => return other(&format!("{} in {unknown}", kind_name(&content_type))),
    };
    if !block.is_whole {
        return Err(RecordProblem::TooLong);
    }
    let mut text = payload.to_vec();
    for coding in codings {
        text = match coding {
            Coding::Chunked => without_chunks(&text)?,
            Coding::Gzip => without_gzip(&text)?,
            Coding::Deflate => without_deflate(&text)?,
        };
    }
    if text.len() > MAX_RECORD_BYTES {
        return Err(RecordProblem::TooLong);
    }
    Ok(Payload::Text(Text::new(kind, text, &content_type)))
}

/// Splits a message after the blank line that ends its header.
fn split(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut end = 0;
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        if end > MAX_HEADER_BYTES || !line.ends_with(b"\n") {
            return None;
        }
        if line.trim_ascii().is_empty() {
            return Some(message.split_at(end));
        }
    }
    None
}

/// The status in the first line, which is `HTTP/… 200 …`.
fn status(header: &[u8]) -> Option<&str> {
    let line = header.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace);
    words.next().filter(|word| word.starts_with(b"HTTP/"))?;
    std::str::from_utf8(words.next()?).ok()
}

/// More codings than this are no honest payload.
const MOST_CODINGS: usize = 4;

/// The encodings to undo, in this order; or what is said of them, if one is unknown, or there are too many.
fn codings(fields: Fields<'_>) -> Result<Vec<Coding>, String> {
    let mut codings = Vec::new();
    for field in ["Transfer-Encoding", "Content-Encoding"] {
        // Several fields of one name are one list.
        let values: Vec<_> = fields.all(field).collect();
        let text = String::from_utf8_lossy(&values.join(&b',')).to_ascii_lowercase();
        // The one named last was applied last.
        for name in text.rsplit(',').map(str::trim) {
            match name {
                "chunked" => codings.push(Coding::Chunked),
                "gzip" | "x-gzip" => codings.push(Coding::Gzip),
                "deflate" => codings.push(Coding::Deflate),
                "identity" | "" => {}
                unknown => return Err(unknown.to_owned()),
            }
        }
    }
    if codings.len() > MOST_CODINGS {
        return Err("too many encodings".to_owned());
    }
    Ok(codings)
}

/// Puts chunks together: each has its size in hexadecimal digits on a line before it, the last is
/// empty. Some crawlers do it themselves and keep the header, so what does not begin with a chunk is left
/// as it is.
fn without_chunks(chunked: &[u8]) -> Result<Vec<u8>, RecordProblem> {
    if !begins_with_chunk(chunked) {
        return Ok(chunked.to_vec());
    }
    let bad = |reason: &str| RecordProblem::BadPayload {
        coding: "chunked",
        reason: reason.to_owned(),
    };
    let mut whole = Vec::new();
    let mut rest = chunked;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| bad("it ends before its last chunk"))?;
        let size = chunk_size(&rest[..end]).ok_or_else(|| bad("a chunk has no size"))?;
        rest = &rest[end + 1..];
        if size == 0 {
            return Ok(whole);
        }
        let (chunk, after) = rest
            .split_at_checked(size)
            .ok_or_else(|| bad("it ends within a chunk"))?;
        whole.extend_from_slice(chunk);
        let after = after.strip_prefix(b"\r").unwrap_or(after);
        rest = after
            .strip_prefix(b"\n")
            .ok_or_else(|| bad("a chunk is longer than its size"))?;
    }
}

/// Whether a chunk stands first, rather than text whose first line is a number. One that was cut off must have the
/// line break of the standard after its size.
fn begins_with_chunk(payload: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b'\n', payload) else {
        return false;
    };
    let (line, rest) = (&payload[..end], &payload[end + 1..]);
    match chunk_size(line) {
        None => false,
        Some(0) => rest.trim_ascii().is_empty(),
        Some(size) => match rest.get(size..) {
            None | Some([] | [b'\r']) => line.ends_with(b"\r"),
            Some(after) => after.starts_with(b"\r\n") || after.starts_with(b"\n"),
        },
    }
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let line = std::str::from_utf8(line).ok()?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number
        .then(|| usize::from_str_radix(digits, 16).ok())
        .flatten()
}

/// Undoes gzip, as far as a text may go. Some crawlers undo it themselves and keep the header, so
/// what does not begin as gzip is left as it is.
fn without_gzip(compressed: &[u8]) -> Result<Vec<u8>, RecordProblem> {
    if !compressed.starts_with(GZIP_MAGIC) {
        return Ok(compressed.to_vec());
    }
    read_bounded(Members::new(compressed)).map_err(|error| RecordProblem::BadPayload {
        coding: "gzip",
        reason: error.to_string(),
    })
}

/// Undoes deflate, which is zlib by the standard and bare in what some servers send. What is neither
/// is left as it is, as for gzip.
fn without_deflate(compressed: &[u8]) -> Result<Vec<u8>, RecordProblem> {
    let is_zlib = compressed.first_chunk().is_some_and(|header| {
        header[0] & 0x0F == ZLIB_METHOD && u16::from_be_bytes(*header) % ZLIB_CHECK == 0
    });
    if !is_zlib {
        let bare = read_bounded(DeflateDecoder::new(compressed));
        return Ok(bare.unwrap_or_else(|_| compressed.to_vec()));
    }
    read_bounded(ZlibDecoder::new(compressed)).map_err(|error| RecordProblem::BadPayload {
        coding: "deflate",
        reason: error.to_string(),
    })
}

/// All that a decoder yields, as far as a text may go.
fn read_bounded(decoder: impl Read) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    // One byte more shows that it is too long.
    let most = MAX_RECORD_BYTES as u64 + 1;
    decoder.take(most).read_to_end(&mut whole)?;
    Ok(whole)
}
