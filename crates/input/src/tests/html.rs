//! Pages of HTML in the formats: which documents are pages, and what is taken of them.

use super::*;
use crate::Html;

pub(super) const PAGE: &str = "<nav>Menu</nav><p>a <b>fox</b> that runs through the deep dark wood behind the \
                    old mill, where none has seen it since the summer";
pub(super) const MAIN: &str = "a fox that runs through the deep dark wood behind the old mill, where none has seen \
                    it since the summer";
pub(super) const ALL: &str = "Menu\na fox that runs through the deep dark wood behind the old mill, where none \
                   has seen it since the summer";

/// The only text of an input in a format, under all the values of `--html`.
fn texts(options: &InputOptions, stdin: &[u8]) -> [String; 4] {
    [None, Some(Html::Main), Some(Html::All), Some(Html::Raw)].map(|html| {
        let options = InputOptions {
            html,
            ..options.clone()
        };
        let [document] = &all(open_bytes(&options, stdin).unwrap())[..] else {
            panic!("one document");
        };
        match &document.content {
            Content::Text(text) => text.clone(),
            Content::Fingerprint(_) => panic!("a text"),
        }
    })
}

#[test]
fn files_are_pages_by_their_names() {
    let folder = Folder::new();
    for name in ["a.html", "b.HTM", "c.xhtml", "d.html.gz"] {
        let path = folder.write(name, PAGE);
        assert_eq!(
            texts(&args(Format::Files, &[path]), b""),
            [MAIN, MAIN, ALL, PAGE],
            "{name}"
        );
    }
    for name in ["a.txt", "html", "b.html.txt"] {
        let path = folder.write(name, PAGE);
        assert_eq!(
            texts(&args(Format::Files, &[path]), b""),
            [PAGE; 4],
            "{name}"
        );
    }
}

#[test]
fn files_of_other_names_are_pages_by_how_they_begin() {
    let folder = Folder::new();
    let page = format!("<!DOCTYPE html>{PAGE}");
    for name in ["a.php", "index.html?id=3", "a"] {
        let path = folder.write(name, &page);
        assert_eq!(
            texts(&args(Format::Files, &[path]), b""),
            [MAIN, MAIN, ALL, &page],
            "{name}"
        );
    }
}

#[test]
fn a_file_that_is_a_page_may_be_in_any_character_set() {
    let folder = Folder::new();
    let utf_16: Vec<u8> = "\u{FEFF}<p>päron"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for bytes in [utf_16.as_slice(), b"<meta charset=latin1><p>p\xE4ron"] {
        let path = folder.write("a.html", bytes);
        assert_eq!(texts(&args(Format::Files, &[path]), b"")[0], "päron");
    }
    // Each of these bytes takes two of UTF-8.
    let path = folder.write("a.html", vec![0xE4; crate::MAX_RECORD_BYTES / 2 + 1]);
    let small = folder.write("b.html", "x");
    let (read, documents) = drain(open_bytes(&args(Format::Files, &[path, small]), b"").unwrap());
    assert_eq!((read.len(), documents.skipped().too_large_files), (1, 1));
}

/// Pages in Shift-JIS would become nonsense in silence.
#[test]
fn pages_whose_character_set_nothing_says_are_counted() {
    let folder = Folder::new();
    folder.write("a.html", b"<p>p\xE4ron");
    folder.write("b.html", "<p>päron");
    folder.write("c.html", b"<meta charset=latin1><p>p\xE4ron");
    folder.write("d.php", b"<html><p>p\xE4ron");
    let counts = |input| {
        let (read, documents) = drain(input);
        let skipped = documents.skipped();
        assert!(
            skipped.is_empty() && skipped.reasons().is_empty(),
            "{skipped}"
        );
        (read.len(), skipped.doubts())
    };
    let two = "2 pages without a declared character set, read as windows-1252".to_owned();
    let found = counts(open_bytes(&args(Format::Files, &[folder.path()]), b"").unwrap());
    assert_eq!(found, (4, Some(two)));

    let record = |content_type: &str, body: &[u8]| {
        let length = body.len();
        let header = format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: a\r\nContent-Type: {content_type}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        [header.as_bytes(), body, b"\r\n\r\n"].concat()
    };
    let latin = b"<p>p\xE4ron";
    let warc = [
        record("text/html", latin),
        record("text/html; charset=latin1", latin),
        record("text/html; charset=utf-8", latin),
        record("text/html", "<p>päron".as_bytes()),
    ];
    let one = "1 page without a declared character set, read as windows-1252; \
               1 page with bytes that are not in their character set"
        .to_owned();
    let found = counts(open_bytes(&args(Format::Warc, &[]), &warc.concat()).unwrap());
    assert_eq!(found, (4, Some(one)));
    let found = counts(open_bytes(&args(Format::Warc, &[]), &warc[1]).unwrap());
    assert_eq!(found, (1, None));
}

/// Servers call images and archives pages, too.
#[test]
fn binary_records_that_are_pages_by_their_type_are_counted() {
    let record = |fields: &str, block: &str| {
        let length = block.len();
        format!(
            "WARC/1.0\r\nWARC-Target-URI: a\r\n{fields}\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
        )
    };
    let resource = "WARC-Type: resource\r\nContent-Type: text/html";
    let response = "WARC-Type: response\r\nContent-Type: application/http";
    let http = "HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml\r\n\r\n";
    let png = "PNG\r\n\u{1A}\n\0\0\0\rIHDR";
    let warc = [
        record(resource, png),
        record(response, &format!("{http}{png}")),
        record(resource, "%PDF-1.4\n"),
        record(resource, "<p>a\0b"),
    ];
    let input = open_bytes(&args(Format::Warc, &[]), warc.concat().as_bytes()).unwrap();
    let (read, documents) = drain(input);
    assert_eq!(read, [text("a", "ab")]);
    let skipped = documents.skipped().to_string();
    assert_eq!(skipped, "skipped 3 other records (text/html, binary: 3)");
}

#[test]
fn texts_of_objects_are_pages_only_where_the_caller_says_so() {
    let line = serde_json::json!({"id": "a", "text": PAGE}).to_string();
    let escaped = line.replace('m', "\\u006d").replace('f', "\\u0066");
    for line in [line, escaped] {
        let texts = texts(&args(Format::Jsonl, &[]), line.as_bytes());
        assert_eq!(texts, [PAGE, MAIN, ALL, PAGE]);
    }
}

/// The texts of the only record of a crawl.
fn texts_of_record(kind: &str, content_type: &str, block: &str) -> [String; 4] {
    let warc = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: a\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    );
    texts(&args(Format::Warc, &[]), warc.as_bytes())
}

#[test]
fn records_of_a_crawl_are_pages_by_their_type() {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{PAGE}");
    for (kind, content_type, block) in [
        ("response", "application/http", http.as_str()),
        ("resource", "text/html", PAGE),
        ("conversion", "application/xhtml+xml", PAGE),
    ] {
        let texts = texts_of_record(kind, content_type, block);
        assert_eq!(texts, [MAIN, MAIN, ALL, PAGE], "{kind}");
    }
}

#[test]
fn pages_are_xhtml_by_their_names_and_types() {
    let folder = Folder::new();
    let page = format!("<html><head><title/><script src=\"a.js\"/></head><body>{PAGE}");
    let (read, empty) = ([MAIN, MAIN, ALL, &page], ["", "", "", &page]);
    for (name, expected) in [
        ("a.xhtml", read),
        ("a.XHTML.gz", read),
        ("a.html", empty),
        ("a", empty),
    ] {
        let path = folder.write(name, &page);
        assert_eq!(
            texts(&args(Format::Files, &[path]), b""),
            expected,
            "{name}"
        );
    }
    for (content_type, expected) in [("application/xhtml+xml", read), ("text/html", empty)] {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n{page}");
        let response = texts_of_record("response", "application/http", &http);
        assert_eq!(response, expected, "{content_type}");
        let resource = texts_of_record("resource", content_type, &page);
        assert_eq!(resource, expected, "{content_type}");
    }
}

#[test]
fn other_formats_have_no_pages() {
    for format in [Format::Lines, Format::Hashes, Format::Tsv] {
        let options = InputOptions {
            html: Some(Html::Raw),
            ..args(format, &[])
        };
        let refused = message(open_bytes(&options, b""));
        let expected = format!(
            "--html belongs to --format jsonl, csv, parquet, arrow, warc or files, but the format is {format}"
        );
        assert!(refused.starts_with(&expected), "{refused}");
    }
}
