//! Broken and random HTML.

use std::collections::BTreeSet;

use proptest::prelude::*;
use simshard_input::{Content, Format, Html, InputOptions, Needs, parse_bytes};

use super::splice::{Bytes, spliced, spliced_text};
use super::{assert_within_limits, cases};

const PIECES: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<!",
    "<!--",
    "-->",
    "--!>",
    "<![CDATA[",
    "]]>",
    "<?xml encoding='",
    "<?xml version='1.0'?>",
    "?>",
    "<!DOCTYPE html>",
    "<html>",
    "<head>",
    "<body>",
    "<p>",
    "</p>",
    "<p hidden>",
    "<div>",
    "</div>",
    "<div class='sidebar'>",
    "<div id=\"",
    "'",
    "\"",
    "=",
    " ",
    "\n",
    "<main>",
    "</main>",
    "<article>",
    "</article>",
    "<nav>",
    "</nav>",
    "<aside>",
    "</aside>",
    "<header>",
    "<h1>",
    "</h1>",
    "<br/>",
    "<a href=x>",
    "</a>",
    "<b>",
    "</b>",
    "<td>",
    "<template>",
    "</template>",
    "<script>SECRET",
    "<script/>",
    "</script>",
    "<style>",
    "</style>",
    "<title>",
    "<title/>",
    "</title>",
    "<textarea>",
    "</textarea>",
    "<plaintext>",
    "<svg>",
    "</svg>",
    "<svg/>",
    "<math>",
    "<noscript>",
    "</noscript>",
    "&",
    "&amp",
    "&nGt;",
    "&lt;",
    "&#",
    "&#x",
    "&#0;",
    "&#xD800;",
    "&#x110000;",
    ";",
    "<meta charset=",
    "utf-16le",
    "shift_jis",
    "gb18030",
    "replacement",
    "x-user-defined",
    "koi8-r",
    "a word",
    "日本語",
    "ไทย",
    "\u{FEFF}",
    "\u{0}",
    "A sentence that is long enough to be taken for the main content of a page, by its length. ",
];

/// The types in a header.
const TYPES: [&str; 6] = [
    "text/html",
    "text/html; charset=utf-8",
    "text/html; charset=utf-16be",
    "text/html; charset=iso-2022-jp",
    "text/html; charset=",
    "application/xhtml+xml",
];

fn check_page(markup: &str) {
    let all = Html::All.text(markup);
    let main = Html::Main.text(markup);
    assert_eq!(Html::Raw.text(markup), markup);
    // The longest that a reference becomes is six bytes for five.
    assert!(all.len() <= markup.len() / 5 * 6 + 5);
    let lines: BTreeSet<&str> = all.lines().collect();
    assert!(main.lines().all(|line| lines.contains(line)));
    assert_eq!(main.is_empty(), all.is_empty());
}

#[test]
fn spliced_pages() {
    proptest!(cases(), |(markup in spliced_text(PIECES, 40))| check_page(&markup));
}

/// HT2. Of whole tags only: half of one before `<script>` makes it text or a comment.
#[test]
fn scripts_are_in_no_text() {
    let is_whole = |piece: &&&str| {
        piece.starts_with('<') == piece.ends_with('>') && !piece.starts_with(['&', '"', '\''])
    };
    let pieces = PIECES.iter().filter(is_whole).copied();
    let mut pieces: Vec<_> = pieces.filter(|piece| *piece != "<plaintext>").collect();
    pieces.extend(["<script>SECRET", "<script>SECRET</script>"]);
    let page = prop::collection::vec(prop::sample::select(pieces), 0..80);
    // At any depth in others.
    proptest!(cases(), |(depth in 0..40_usize, page in page)| {
        let page = "<section role=menu>".repeat(depth) + &page.concat();
        assert!(!Html::All.text(&page).contains("SECRET"), "{page:?}");
    });
}

#[test]
fn spliced_bytes_in_a_record() {
    let pieces: Vec<_> = PIECES
        .iter()
        .map(|piece| piece.as_bytes().to_vec())
        .collect();
    let html = prop::sample::select(&[None, Some(Html::All), Some(Html::Raw)][..]);
    let content_type = prop::sample::select(&TYPES[..]);
    let inputs = (spliced(pieces, 24), content_type, html);
    proptest!(cases(), |((Bytes(page), content_type, html) in inputs)| {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n");
        let header = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: a\r\n\
             Content-Type: application/http\r\nContent-Length: {}\r\n\r\n",
            http.len() + page.len()
        );
        let warc = [header.as_bytes(), http.as_bytes(), &page, b"\r\n\r\n"].concat();
        let mut options = InputOptions::walking(Vec::new());
        options.format = Some(Format::Warc);
        options.html = html;
        let documents = parse_bytes(&options, Needs::CLIENT, warc).unwrap();
        assert_within_limits(&documents);
        // Binary content is counted.
        let is_text = !page.iter().any(u8::is_ascii_control);
        assert!(documents.len() <= 1 && (!is_text || documents.len() == 1));
        for document in documents {
            let Content::Text(text) = &document.content else { panic!("{document:?}") };
            assert!(!text.contains('\0'));
        }
    });
}
