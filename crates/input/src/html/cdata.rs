//! CDATA sections of XHTML, which hold characters and no markup, even in a script.
//!
//! The tokenizer ends a script at its end tag, wherever that is. So the characters of a section are written as
//! references first.

use std::borrow::Cow;

use memchr::memmem;

const COMMENT: &str = "<!--";
const SECTION: &str = "<![CDATA[";
const SECTION_END: &str = "]]>";

/// A page of XHTML whose sections are characters, with references for what could be markup. Comments stay. A comment that
/// has no end stays as it is, and so does a section that has none before the next one begins.
pub(super) fn as_characters(markup: &str) -> Cow<'_, str> {
    let mut written = String::new();
    let (mut done, mut from) = (0, 0);
    while let Some(at) = found(markup, from, "<!") {
        if markup[at..].starts_with(COMMENT) {
            // The dashes of `<!-->` both begin the comment and end it.
            let Some(end) = found(markup, at + "<!".len(), "-->") else {
                break;
            };
            from = end + "-->".len();
        } else if markup[at..].starts_with(SECTION) {
            let start = at + SECTION.len();
            let Some(end) = found(markup, start, SECTION_END) else {
                break;
            };
            if let Some(last) = markup[start..end].rfind(SECTION) {
                // The end is that of the last section that begins before it: the others have none.
                from = start + last;
                continue;
            }
            written.push_str(&markup[done..at]);
            push_references(&mut written, &markup[start..end]);
            from = end + SECTION_END.len();
            done = from;
        } else {
            from = at + "<!".len();
        }
    }
    if done == 0 {
        return Cow::Borrowed(markup);
    }
    written.push_str(&markup[done..]);
    Cow::Owned(written)
}

/// Where this begins in a page, not before a place.
fn found(markup: &str, from: usize, what: &str) -> Option<usize> {
    let rest = &markup.as_bytes()[from..];
    memmem::find(rest, what.as_bytes()).map(|at| from + at)
}

/// Adds characters, with references for those that markup is made of.
fn push_references(written: &mut String, characters: &str) {
    for part in characters.split_inclusive(['&', '<']) {
        match part.as_bytes().last() {
            Some(b'&') => written.extend([&part[..part.len() - 1], "&amp;"]),
            Some(b'<') => written.extend([&part[..part.len() - 1], "&lt;"]),
            Some(_) | None => written.push_str(part),
        }
    }
}
