//! Whether bytes are a page of HTML, by how they begin. This is for files whose name does not say it, as those of a web
//! server often do not. It is also for those whose name says it, and which are something else.

use crate::byte_order_mark::without_byte_order_mark;
use crate::utf16::is_utf16;

/// What a page begins with, in any case.
const BEGINNINGS: [&[u8]; 2] = [b"<!doctype html", b"<html"];

/// What may come before that, and how it ends.
const BEFORE: [(&[u8], &[u8]); 2] = [(b"<?xml", b"?>"), (b"<!--", b"-->")];

/// What a file of PDF begins with.
pub(crate) const PDF: &[u8] = b"%PDF-";

/// A file is binary if the share of its control characters is larger than one in this.
const CONTROL_SHARE: usize = 100;

/// Bytes of comments and declarations before the page that are looked through.
const LOOKED_AT: usize = 4096;

/// Whether these bytes begin a page, with its document type or its first tag. Only a byte order mark, white space,
/// comments and the declaration of XML may come before.
pub(crate) fn begins_a_page(bytes: &[u8]) -> bool {
    tells(bytes) == Some(true)
}

/// Whether these bytes may come before a page, and more of them can tell.
pub(crate) fn may_precede_a_page(bytes: &[u8]) -> bool {
    tells(bytes).is_none()
}

/// Whether these bytes begin a page; `None` if more of them can tell.
fn tells(bytes: &[u8]) -> Option<bool> {
    let bytes = without_byte_order_mark(bytes);
    let mut rest = &bytes[..bytes.len().min(LOOKED_AT)];
    let unclear = (bytes.len() >= LOOKED_AT).then_some(false);
    loop {
        rest = rest.trim_ascii_start();
        let before = BEFORE.iter().find(|(start, _)| rest.starts_with(start));
        let Some((_, end)) = before else {
            break;
        };
        let Some(at) = memchr::memmem::find(rest, end) else {
            return unclear;
        };
        rest = &rest[at + end.len()..];
    }
    if BEGINNINGS.iter().any(|start| begins(rest, start)) {
        return Some(true);
    }
    let is_part_of = |start: &[u8]| {
        let part = start.get(..rest.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(rest))
    };
    let mut starts = BEFORE.iter().map(|(start, _)| *start).chain(BEGINNINGS);
    if starts.any(is_part_of) {
        return unclear;
    }
    Some(false)
}

/// Whether a file is not the page that its name promises: PDF, or binary. Some pages hold a few control characters by
/// mistake, and those of UTF-16 many. So they count only if no tag comes first, and in numbers.
pub(crate) fn is_no_page(bytes: &[u8]) -> bool {
    if is_utf16(bytes) {
        return false;
    }
    let head = without_byte_order_mark(bytes);
    let head = &head[..head.len().min(LOOKED_AT)];
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || is_control(*byte);
    let first = head.iter().find(|byte| !is_blank(byte));
    let has_tag_first = first == Some(&b'<');
    let controls = head.iter().filter(|byte| is_control(**byte)).count();
    head.starts_with(PDF) || (!has_tag_first && controls > head.len() / CONTROL_SHARE)
}

/// Whether a response is not the page that its header promises. UTF-16 is full of NULs.
pub(crate) fn is_no_served_page(bytes: &[u8], content_type: &[u8]) -> bool {
    let is_utf16 = memchr::memmem::find(&content_type.to_ascii_lowercase(), b"utf-16").is_some();
    !is_utf16 && is_no_page(bytes)
}

/// Whether a byte is in no text of any character set. These are the binary data bytes of the MIME Sniffing Standard.
const fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F)
}

/// Whether it begins with this name, whatever its case, and the name ends there.
fn begins(bytes: &[u8], name: &[u8]) -> bool {
    let Some((start, rest)) = bytes.split_at_checked(name.len()) else {
        return false;
    };
    let ends = rest
        .first()
        .is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b'>');
    start.eq_ignore_ascii_case(name) && ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_with_its_type_or_its_first_tag() {
        for page in [
            "<!DOCTYPE html>",
            "<!doctype HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\">",
            "<html>",
            "<HTML\nlang=en>",
            "\u{feff}\r\n\t <html>",
            "<?xml version=\"1.0\"?>\n<!DOCTYPE html>",
            "<!-- saved from a > page --><!-- twice --> <html>",
        ] {
            assert!(begins_a_page(page.as_bytes()), "{page}");
        }
        let late = format!("<!--{}--><html>", " ".repeat(LOOKED_AT));
        for other in [
            "",
            "<",
            "<p>text",
            "<htmlish>",
            "<!doctype htm",
            "a page of <html>",
            "# About\n<html>",
            "<!-- no end <html>",
            "<?xml version=\"1.0\"?><rss>",
            &late,
        ] {
            assert!(!begins_a_page(other.as_bytes()), "{other}");
        }
        // It is told as soon as it can be.
        let page = "\u{feff}\n<?xml version=\"1.0\"?><!-- a > page -->\n<!DOCTYPE HTML>";
        for end in "\u{feff}".len()..page.len() {
            let beginning = &page.as_bytes()[..end];
            let tells = end + 1 == page.len();
            assert_eq!(begins_a_page(beginning), tells, "{end} bytes");
            assert_eq!(may_precede_a_page(beginning), !tells, "{end} bytes");
        }
        for other in ["<p>", "text", "<!-- x --> text", &late] {
            assert!(!may_precede_a_page(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn what_is_no_page_has_control_characters_and_no_tag() {
        for other in [
            &b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR"[..],
            b"\xFF\xD8\xFF\xE0\0\x10JFIF",
            b"GIF89a\x01\0\x01\0",
            b"%PDF-1.4\n1 0 obj",
            b"\x1F\x8B\x08\0",
            b"\x7FELF\x02\x01\x01",
            b"\0\0\0\x18ftypmp42",
            b"words and a \0",
        ] {
            assert!(is_no_page(other), "{}", String::from_utf8_lossy(other));
        }
        let late = [" ".repeat(LOOKED_AT).as_bytes(), b"\0"].concat();
        for page in [
            &b""[..],
            b"only words",
            b"<p>a \0 by mistake",
            b"\xEF\xBB\xBF\n<p>a\0",
            b"\xFF\xFE<\0p\0",
            b"\xFE\xFFp\0",
            b"<\0p\0",
            b"\0\n\0<\0p",
            b"caf\xE9 \x93quoted\x94",
            b"\x1B$B$3\x1B(B in ISO-2022-JP",
            &late,
        ] {
            assert!(!is_no_page(page), "{}", String::from_utf8_lossy(page));
        }
    }
}
