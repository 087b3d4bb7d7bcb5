//! Whether bytes are a page of HTML, by how they begin. This is for files whose name does not say it, as those of a web
//! server often do not.

/// What a page begins with, in any case.
const BEGINNINGS: [&[u8]; 2] = [b"<!doctype html", b"<html"];

/// Bytes of comments and declarations before the page that are looked through.
const LOOKED_AT: usize = 4096;

/// Whether these bytes begin a page, with its document type or its first tag. Only a byte order mark, white space,
/// comments and the declaration of XML may come before.
pub(crate) fn begins_a_page(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut rest = &bytes[..bytes.len().min(LOOKED_AT)];
    loop {
        rest = rest.trim_ascii_start();
        let ends_in: &[u8] = match rest {
            [b'<', b'?', b'x', b'm', b'l', ..] => b"?>",
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            _ => return BEGINNINGS.iter().any(|beginning| begins(rest, beginning)),
        };
        let Some(end) = memchr::memmem::find(rest, ends_in) else {
            return false;
        };
        rest = &rest[end + ends_in.len()..];
    }
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
    }
}
