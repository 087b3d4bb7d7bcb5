//! The roles of HTML elements in the text of a page.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// How an element breaks the text around it.
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

/// What gives an element its role: the last of these that does, whatever comes first in the markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// Its name, unless it is one of those below.
    Name,
    /// A guess from its class or id.
    Class,
    /// The attribute `role` or `itemprop`, or the name `main`.
    Author,
    /// A name or an attribute that hides it.
    Hiding,
}

/// The role of an element for the text in it. Where a source gives two, the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A browser does not show it as text, or does not read it out.
    Hidden,
    /// It is perhaps not what the page is about.
    GuessedAside,
    /// It is not what the page is about.
    Aside,
    /// It is what the page is about, by the author's word.
    Main,
}

/// How much of an attribute is looked at, except for `style`.
const ATTRIBUTE_BYTES: usize = 256;

/// Words of an id that names a part of a layout, at most.
const MOST_WORDS: usize = 3;

/// In the class or id of elements that are beside the main content. Authors of all languages write
/// these in English. Most are from Readability, the reader view of Firefox.
static ASIDE: LazyLock<AhoCorasick> = LazyLock::new(|| {
    any_of(&[
        "breadcrumb",
        "byline",
        "comment",
        "cookie",
        "copyright",
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

/// These beside them say that the element holds the content, or that it stands beside a sidebar.
static CONTENT: LazyLock<AhoCorasick> = LazyLock::new(|| {
    any_of(&[
        "article",
        "body",
        "column",
        "content",
        "has-sidebar",
        "main",
        "no-sidebar",
        "post",
        "story",
        "with-sidebar",
        "withsidebar",
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

/// How the element of a name breaks the text. One that is not known is a block: parting words
/// that belong together does less harm than joining others.
pub(super) fn flow(name: &[u8]) -> Flow {
    match name {
        b"a" | b"abbr" | b"acronym" | b"b" | b"bdi" | b"bdo" | b"big" | b"cite" | b"code"
        | b"data" | b"del" | b"dfn" | b"em" | b"font" | b"i" | b"img" | b"ins" | b"kbd"
        | b"label" | b"mark" | b"nobr" | b"q" | b"rb" | b"rp" | b"rt" | b"rtc" | b"ruby" | b"s"
        | b"samp" | b"small" | b"span" | b"strike" | b"strong" | b"sub" | b"sup" | b"time"
        | b"tt" | b"u" | b"var" | b"wbr" | b"g-emoji" | b"math-renderer" | b"relative-time" => {
            Flow::Inline
        }
        b"audio" | b"br" | b"button" | b"canvas" | b"iframe" | b"input" | b"link" | b"math"
        | b"meta" | b"noscript" | b"object" | b"picture" | b"script" | b"select" | b"source"
        | b"style" | b"svg" | b"td" | b"template" | b"th" | b"video" => Flow::Space,
        b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => Flow::Heading,
        // Formulas as MathJax draws them.
        name if name.starts_with(b"mjx-") => Flow::Space,
        _ => Flow::Block,
    }
}

/// The level of a heading by its name.
pub(super) fn level(name: &[u8]) -> Option<u8> {
    match name {
        [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

/// The role of the element of a name. A form is none: some sites wrap whole pages in one.
pub(super) fn role_of_name(name: &[u8]) -> Option<(Source, Role)> {
    Some(match name {
        b"audio" | b"button" | b"canvas" | b"datalist" | b"dialog" | b"iframe" | b"noembed"
        | b"noframes" | b"noscript" | b"script" | b"select" | b"style" | b"svg" | b"template"
        | b"textarea" | b"title" | b"video" => (Source::Hiding, Role::Hidden),
        b"main" => (Source::Author, Role::Main),
        b"aside" | b"footer" | b"header" | b"nav" => (Source::Name, Role::Aside),
        b"article" => (Source::Name, Role::Main),
        _ => return None,
    })
}

/// Whether an attribute is an id that names its element as content. A class often says how an element is laid out, so
/// it does not speak against the id.
pub(super) fn names_content(name: &[u8], value: &[u8]) -> bool {
    let value = beginning(value);
    name == b"id" && CONTENT.is_match(value) && !is_sentence(value)
}

/// Whether it is an id by which a layout names its content, whatever is made from text.
pub(super) fn is_id_of_content(name: &[u8], value: &[u8]) -> bool {
    let ids = [
        &b"content"[..],
        b"main",
        b"main-content",
        b"maincontent",
        b"primary",
        b"primary-content",
    ];
    name == b"id" && ids.iter().any(|id| id.eq_ignore_ascii_case(value))
}

/// The part of an attribute that is looked at.
fn beginning(value: &[u8]) -> &[u8] {
    &value[..value.len().min(ATTRIBUTE_BYTES)]
}

/// The role that an attribute gives to its element.
pub(super) fn role_of_attribute(name: &[u8], value: &[u8]) -> Option<(Source, Role)> {
    let style = value;
    let value = beginning(value);
    let hides = match name {
        b"hidden" => true,
        b"aria-hidden" => value.eq_ignore_ascii_case(b"true"),
        b"style" => is_not_displayed(style),
        _ => false,
    };
    if hides {
        return Some((Source::Hiding, Role::Hidden));
    }
    match (name, value) {
        (b"role", b"main" | b"article") | (b"itemprop", b"articleBody") => {
            Some((Source::Author, Role::Main))
        }
        (
            b"role",
            b"alert" | b"banner" | b"complementary" | b"contentinfo" | b"dialog" | b"menu"
            | b"menubar" | b"navigation" | b"search",
        ) => Some((Source::Author, Role::Aside)),
        (b"id", _) if is_sentence(value) => None,
        (b"class" | b"id", _) if ASIDE.is_match(value) && !CONTENT.is_match(value) => {
            Some((Source::Class, Role::GuessedAside))
        }
        _ => None,
    }
}

/// Whether an id has more words than names of parts have. Generators make such ids from headings.
fn is_sentence(id: &[u8]) -> bool {
    let words = id.split(|byte| matches!(byte, b'-' | b'_' | b'.'));
    words.filter(|word| !word.is_empty()).count() > MOST_WORDS
}

/// Whether the id of an element is made from its text or heading, by its name: that of a section, a heading or a term.
pub(super) fn has_text_for_id(name: &[u8]) -> bool {
    matches!(
        name,
        b"section" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"dt"
    )
}

/// The same by an attribute: `class="section"` is what a section was before HTML 5. Texinfo writes others.
pub(super) fn is_class_of_section(attribute: &[u8], value: &[u8]) -> bool {
    let mut words = beginning(value).split(u8::is_ascii_whitespace);
    attribute == b"class"
        && words.any(|word| word == b"section" || word.ends_with(b"-level-extent"))
}

fn is_not_displayed(style: &[u8]) -> bool {
    style.split(|byte| *byte == b';').any(|declaration| {
        let colon = declaration.iter().position(|byte| *byte == b':');
        let (property, value) = declaration.split_at(colon.unwrap_or(declaration.len()));
        let value = value.get(1..).unwrap_or_default().trim_ascii_start();
        let begins_with_none = value
            .get(..4)
            .is_some_and(|it| it.eq_ignore_ascii_case(b"none"));
        begins_with_none && property.trim_ascii().eq_ignore_ascii_case(b"display")
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
