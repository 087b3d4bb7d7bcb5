//! HTTP responses: which are texts, and what is undone.

use flate2::Compression;
use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

fn response(message: &[u8]) -> Vec<u8> {
    let fields = [
        ("WARC-Type", "response"),
        ("WARC-Target-URI", "a"),
        ("Content-Type", "application/http; msgtype=response"),
    ];
    record(&fields, message)
}

/// A response of status 200 with these header lines.
fn ok(fields: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes();
    message.extend_from_slice(payload);
    response(&message)
}

fn plain(fields: &str, payload: &[u8]) -> Vec<u8> {
    ok(&format!("Content-Type: text/plain\r\n{fields}"), payload)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut encoder = GzEncoder::new(bytes, Compression::default());
    encoder.read_to_end(&mut compressed).unwrap();
    compressed
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut encoder = ZlibEncoder::new(bytes, Compression::default());
    encoder.read_to_end(&mut compressed).unwrap();
    compressed
}

/// As some servers send it, against the standard.
fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut encoder = DeflateEncoder::new(bytes, Compression::default());
    encoder.read_to_end(&mut compressed).unwrap();
    compressed
}

/// Chunks of three bytes.
fn chunked(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    for chunk in bytes.chunks(3) {
        whole.extend_from_slice(format!("{:X};name=value\r\n", chunk.len()).as_bytes());
        whole.extend_from_slice(chunk);
        whole.extend_from_slice(b"\r\n");
    }
    whole.extend_from_slice(b"0\r\n\r\n");
    whole
}

#[test]
fn plain_text_is_read_without_its_http_header() {
    let payload = "a text\r\n\r\nof two paragraphs";
    assert_eq!(
        read(&plain("Server: x\r\n", payload.as_bytes())),
        [text("a", payload)]
    );
    assert_eq!(read(&plain("", b"")), [text("a", "")]);
}

#[test]
fn chunks_gzip_and_deflate_are_undone() {
    let payload = "a text of some length: päron";
    let bytes = payload.as_bytes();
    for (fields, stored) in [
        ("Transfer-Encoding: chunked\r\n", chunked(bytes)),
        ("Content-Encoding: gzip\r\n", gzip(bytes)),
        (
            "Transfer-Encoding: chunked\r\nContent-Encoding: X-GZip\r\n",
            chunked(&gzip(bytes)),
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            chunked(&gzip(bytes)),
        ),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            chunked(&gzip(bytes)),
        ),
        (
            "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n",
            gzip(bytes),
        ),
        ("Content-Encoding: deflate\r\n", zlib(bytes)),
        ("Content-Encoding: deflate\r\n", deflate(bytes)),
        ("Content-Encoding: deflate\r\n", bytes.to_vec()),
        ("Content-Encoding: identity\r\n", bytes.to_vec()),
        // Undone by the crawler, which kept the header.
        ("Content-Encoding: gzip\r\n", bytes.to_vec()),
        ("X-Crawl-Content-Encoding: br\r\n", bytes.to_vec()),
    ] {
        assert_eq!(
            read(&plain(fields, &stored)),
            [text("a", payload)],
            "{fields}"
        );
    }
}

/// Some crawlers put chunks together and keep the header that tells of them.
#[test]
fn a_payload_without_chunks_is_left_as_it_is() {
    for payload in [
        "",
        "a text",
        "a text\r\n\r\nof two paragraphs",
        "a\n\nlist of letters",
        "2024\nA year in hexadecimal digits",
        "2\r\nlines that begin with a number\r\n",
        "0\r\nis a number",
        "FFFFFFFFFFFFFFFFF\r\n",
        "\r\n",
        "<p>a page",
    ] {
        let fields = "Transfer-Encoding: chunked\r\n";
        assert_eq!(
            read(&plain(fields, payload.as_bytes())),
            [text("a", payload)]
        );
        let fields = "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n";
        let stored = gzip(payload.as_bytes());
        assert_eq!(read(&plain(fields, &stored)), [text("a", payload)]);
        let stored = chunked(&stored);
        assert_eq!(read(&plain(fields, &stored)), [text("a", payload)]);
    }
    let empty = "Transfer-Encoding: chunked\r\n";
    for stored in ["0\r\n\r\n", "0\r\n", "000;x=y\n\n"] {
        assert_eq!(read(&plain(empty, stored.as_bytes())), [text("a", "")]);
    }
}

#[test]
fn four_codings_are_undone_and_five_are_no_text() {
    let page = |codings: usize| {
        let fields = format!(
            "Transfer-Encoding: {}\r\n",
            ["chunked"].repeat(codings).join(", ")
        );
        let stored = (0..codings).fold(b"t".to_vec(), |bytes, _| chunked(&bytes));
        plain(&fields, &stored)
    };
    let mut documents = open(&[page(5), page(4)].concat());
    assert_eq!(documents.next().unwrap().unwrap().0, text("a", "t"));
    assert_eq!(documents.other_records().total(), 1);
}

#[test]
fn what_is_no_text_of_status_200_is_counted() {
    let others = [
        ok("Content-Type: application/json\r\n", b"{}"),
        plain("Content-Encoding: zstd\r\n", b"x"),
        ok("Content-Type: text/plain; charset=shift_jis\r\n", b"x"),
        ok("", b"no type"),
        plain("Content-Encoding: br\r\n", b"x"),
        response(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\nx"),
        response(b"HTTP/1.1 301 Moved\r\nContent-Type: text/plain\r\n\r\n"),
        response(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"),
        response(b"no HTTP 200\r\nContent-Type: text/plain\r\n\r\nx"),
        response(b""),
    ];
    let mut documents = open(&[others.concat(), plain("", b"t")].concat());
    assert_eq!(documents.next().unwrap().unwrap().0, text("a", "t"));
    assert_eq!(
        documents.other_records().to_string(),
        "no HTTP: 3, application/json: 1, no content type: 1, status 301: 1, status 404: 1, \
         text/plain in br: 1, text/plain in shift_jis: 1, text/plain in zstd: 1"
    );
}

#[test]
fn plain_text_that_is_not_utf8_is_counted_where_a_server_sent_it() {
    let latin = b"caf\xE9\0";
    let resource = [
        ("WARC-Type", "resource"),
        ("WARC-Target-URI", "b"),
        ("Content-Type", "text/plain; charset=utf-8"),
    ];
    let utf16 = plain("", b"\xFF\xFEa\0");
    let warc = [
        plain("", latin),
        record(&resource, latin),
        utf16,
        plain("", b"one"),
    ]
    .concat();
    let mut documents = open(&warc);
    let read: Vec<_> = documents.by_ref().map(|result| result.unwrap().0).collect();
    assert_eq!(read, [text("a", "one")]);
    assert_eq!(
        documents.other_records().to_string(),
        "text/plain, not UTF-8: 3"
    );
}

#[test]
fn a_payload_that_cannot_be_decoded_is_an_error_and_reading_goes_on() {
    let chunks = "Transfer-Encoding: chunked\r\n";
    for (fields, stored, reason) in [
        (
            chunks,
            b"3\r\nabc\r\n".to_vec(),
            "chunked: it ends before its last chunk",
        ),
        (
            chunks,
            b"F\r\nabc".to_vec(),
            "chunked: it ends within a chunk",
        ),
        (chunks, b"F\r\n".to_vec(), "chunked: it ends within a chunk"),
        (
            chunks,
            b"3\r\nabc".to_vec(),
            "chunked: a chunk is longer than its size",
        ),
        (
            chunks,
            b"1\r\na\r\nFFFFFFFFFFFFFFFFF\r\n".to_vec(),
            "chunked: a chunk has no size",
        ),
        (
            chunks,
            b"1\r\na\r\n\xFF\r\n".to_vec(),
            "chunked: a chunk has no size",
        ),
        (
            chunks,
            b"1\r\na\r\n2\r\nabc\r\n0\r\n".to_vec(),
            "chunked: a chunk is longer than its size",
        ),
        (
            "Content-Encoding: gzip\r\n",
            gzip(b"a text")[..15].to_vec(),
            "gzip: ",
        ),
        (
            "Content-Encoding: deflate\r\n",
            zlib(b"a text")[..8].to_vec(),
            "deflate: ",
        ),
    ] {
        let warc = [plain(fields, &stored), plain("", b"t")].concat();
        let results = results(&warc);
        let message = results[0].as_ref().unwrap_err();
        let start = format!("a.wet: record 1 at byte 0: its payload cannot be decoded as {reason}");
        assert!(message.starts_with(&start), "{message}");
        assert_eq!(results[1], Ok(text("a", "t")));
    }
}

#[test]
fn a_payload_is_measured_after_it_is_decoded() {
    for (bytes, taken) in [(MAX_RECORD_BYTES, true), (MAX_RECORD_BYTES + 1, false)] {
        let spaces = vec![b' '; bytes];
        let squeezed = plain("Content-Encoding: gzip\r\n", &gzip(&spaces));
        assert!(squeezed.len() < 64 << 10);
        assert_eq!(results(&squeezed)[0].is_ok(), taken);
        assert_eq!(results(&plain("", &spaces))[0].is_ok(), taken);
    }
}

#[test]
fn a_huge_image_is_counted_like_a_small_one() {
    let image = ok(
        "Content-Type: image/png\r\n",
        &vec![b'x'; MAX_BLOCK_BYTES + 1],
    );
    let mut documents = open(&[image, conversion("b", "t")].concat());
    assert_eq!(documents.next().unwrap().unwrap().0, text("b", "t"));
    assert_eq!(documents.other_records().total(), 1);
}

/// Even if its text would be short.
#[test]
fn a_huge_page_is_a_bad_record() {
    let page = |markup: &[u8]| ok("Content-Type: text/html\r\n", markup);
    for bytes in [MAX_RECORD_BYTES + 1, MAX_BLOCK_BYTES + 1] {
        let mut markup = b"<p>t<!--".to_vec();
        markup.resize(bytes, b'x');
        let results = results(&[page(&markup), page(b"<p>t")].concat());
        let message = results[0].as_ref().unwrap_err();
        let expected =
            "a.wet: record 1 at byte 0: its text or markup takes more than 8388608 bytes";
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(results[1], Ok(text("a", "<p>t")));
    }
}

#[test]
fn pages_are_markup_in_the_character_set_of_their_header() {
    for (content_type, payload, is_xhtml) in [
        ("text/html", "<p>päron".as_bytes(), false),
        (
            "TEXT/HTML; Charset=\"ISO-8859-1\"",
            b"<p>p\xE4ron".as_slice(),
            false,
        ),
        (
            "Application/XHTML+xml;charset=UTF-8",
            "<p>päron".as_bytes(),
            true,
        ),
    ] {
        let html = Html::Main;
        let fields = format!("Content-Type: {content_type}\r\n");
        let pages: Vec<_> = open(&ok(&fields, payload)).map(Result::unwrap).collect();
        let extraction = Extraction {
            is_xhtml,
            ..html.into()
        };
        let expected = (text("a", "<p>päron"), extraction);
        assert_eq!(pages, [expected], "{fields}");
    }
}

#[test]
fn a_page_is_measured_in_utf_8() {
    let cyrillic = "Content-Type: text/html; charset=koi8-r\r\n";
    for (bytes, taken) in [
        (MAX_RECORD_BYTES / 2, true),
        (MAX_RECORD_BYTES / 2 + 1, false),
    ] {
        let page = ok(cyrillic, &vec![0xC1; bytes]);
        assert_eq!(results(&page)[0].is_ok(), taken);
    }
}
