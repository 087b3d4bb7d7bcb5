//! The roles of HTML elements in the text of a page.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// How an element stands in the text around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// It is a part of its line, even of a word.
    Inline,
    /// It parts words.
    Space,
    /// It is a block of its own.
    Block,
    /// It is the heading of what follows.
    Heading,
}

/// The role of an element for the text in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A browser does not show it as text.
    Hidden,
    /// It is not what the page is about.
    Aside,
    /// It is what the page is about, by the author's word.
    Main,
}

/// How much of an attribute is looked at.
const ATTRIBUTE_BYTES: usize = 256;

/// In the class or id of elements that are beside the main content. Authors of all languages write
/// these in English. Most are from Readability, the reader view of Firefox.
static ASIDE: LazyLock<AhoCorasick> = LazyLock::new(|| {
    any_of(&[
        "breadcrumb",
        "byline",
        "comment",
        "cookie",
        "disqus",
        "footer",
        "gdpr",
        "masthead",
        "menu",
        "navbar",
        "navigation",
        "newsletter",
        "outbrain",
        "pager",
        "pagination",
        "popup",
        "promo",
        "recommend",
        "related",
        "share",
        "sharing",
        "sidebar",
        "social",
        "sponsor",
        "subscribe",
        "taboola",
        "toolbar",
        "trending",
    ])
});

/// These beside them say that the element holds more than that.
static NOT_ASIDE: LazyLock<AhoCorasick> = LazyLock::new(|| {
    any_of(&[
        "article", "body", "column", "content", "main", "post", "story",
    ])
});

/// Finds any of these words, in whatever case.
fn any_of(words: &[&str]) -> AhoCorasick {
    let mut builder = AhoCorasick::builder();
    builder
        .ascii_case_insensitive(true)
        .build(words)
        .expect("a few words make a small automaton")
}

/// How the element of a name stands in the text. One that is not known is a block: parting words
/// that belong together does less harm than joining others.
pub(super) fn flow(name: &[u8]) -> Flow {
    match name {
        b"a" | b"abbr" | b"acronym" | b"b" | b"bdi" | b"bdo" | b"big" | b"cite" | b"code"
        | b"data" | b"del" | b"dfn" | b"em" | b"font" | b"i" | b"img" | b"ins" | b"kbd"
        | b"label" | b"mark" | b"nobr" | b"q" | b"rb" | b"rp" | b"rt" | b"rtc" | b"ruby" | b"s"
        | b"samp" | b"small" | b"span" | b"strike" | b"strong" | b"sub" | b"sup" | b"time"
        | b"tt" | b"u" | b"var" | b"wbr" => Flow::Inline,
        b"audio" | b"br" | b"button" | b"canvas" | b"iframe" | b"input" | b"link" | b"math"
        | b"meta" | b"noscript" | b"object" | b"picture" | b"script" | b"select" | b"source"
        | b"style" | b"svg" | b"td" | b"template" | b"th" | b"video" => Flow::Space,
        b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => Flow::Heading,
        _ => Flow::Block,
    }
}

/// The role of the element of a name. A form is none: some sites wrap whole pages in one.
pub(super) fn role_of_name(name: &[u8]) -> Option<Role> {
    Some(match name {
        b"audio" | b"button" | b"canvas" | b"datalist" | b"dialog" | b"iframe" | b"noframes"
        | b"noscript" | b"script" | b"select" | b"style" | b"svg" | b"template" | b"textarea"
        | b"title" | b"video" => Role::Hidden,
        b"aside" | b"footer" | b"header" | b"nav" => Role::Aside,
        b"article" | b"main" => Role::Main,
        _ => return None,
    })
}

/// The role that an attribute gives to its element.
pub(super) fn role_of_attribute(name: &[u8], value: &[u8]) -> Option<Role> {
    let value = &value[..value.len().min(ATTRIBUTE_BYTES)];
    match name {
        b"hidden" => Some(Role::Hidden),
        b"aria-hidden" => value.eq_ignore_ascii_case(b"true").then_some(Role::Hidden),
        b"style" => is_not_displayed(value).then_some(Role::Hidden),
        b"role" => match value {
            b"main" | b"article" => Some(Role::Main),
            b"alert" | b"banner" | b"complementary" | b"contentinfo" | b"dialog" | b"menu"
            | b"menubar" | b"navigation" | b"search" => Some(Role::Aside),
            _ => None,
        },
        b"itemprop" => (value == b"articleBody").then_some(Role::Main),
        b"class" | b"id" => {
            (ASIDE.is_match(value) && !NOT_ASIDE.is_match(value)).then_some(Role::Aside)
        }
        _ => None,
    }
}

fn is_not_displayed(style: &[u8]) -> bool {
    let style = String::from_utf8_lossy(style).to_ascii_lowercase();
    style.split(';').any(|declaration| {
        declaration
            .split_once(':')
            .is_some_and(|(property, value)| {
                property.trim() == "display" && value.trim_start().starts_with("none")
            })
    })
}

/// Whether an element has no end tag.
pub(super) fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area"
            | b"base"
            | b"br"
            | b"col"
            | b"embed"
            | b"hr"
            | b"img"
            | b"input"
            | b"link"
            | b"meta"
            | b"param"
            | b"source"
            | b"track"
            | b"wbr"
    )
}
