//! What reading WARC promises, rule by rule.

mod damage;
mod left_out;
mod responses;

use std::io::{self, Cursor, Read};

use super::*;

/// A record with these fields beside its length.
fn record(fields: &[(&str, &str)], block: &[u8]) -> Vec<u8> {
    let mut record = b"WARC/1.0\r\n".to_vec();
    for (name, value) in fields {
        record.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    record.extend_from_slice(format!("Content-Length: {}\r\n\r\n", block.len()).as_bytes());
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

/// A text as WET files have it.
fn conversion(uri: &str, text: &str) -> Vec<u8> {
    let fields = [
        ("WARC-Type", "conversion"),
        ("WARC-Target-URI", uri),
        ("WARC-Record-ID", "<urn:uuid:1>"),
        ("Content-Type", "text/plain"),
    ];
    record(&fields, text.as_bytes())
}

fn info() -> Vec<u8> {
    let fields = [
        ("WARC-Type", "warcinfo"),
        ("Content-Type", "application/warc-fields"),
    ];
    record(&fields, b"Software-Info: a crawler\r\n")
}

fn open(warc: &[u8]) -> WarcDocuments {
    open_reader(Cursor::new(warc.to_vec()))
}

fn open_reader(from: impl Read + Send + 'static) -> WarcDocuments {
    WarcDocuments::new("a.wet".to_owned(), Box::new(from), Html::Main, Ids::Any)
}

fn read(warc: &[u8]) -> Vec<Document> {
    open(warc).map(|result| result.unwrap().0).collect()
}

/// What is left of each text: the document, or the message.
fn results(warc: &[u8]) -> Vec<Result<Document, String>> {
    let plain = |(document, _)| document;
    let results = open(warc).map(|result| result.map(plain).map_err(|error| error.to_string()));
    results.collect()
}

/// The message of the only error, and that nothing follows it.
fn refusal(warc: &[u8]) -> String {
    let mut results = results(warc);
    assert_eq!(results.len(), 1, "{results:?}");
    results.remove(0).unwrap_err()
}

fn text(id: &str, text: &str) -> Document {
    Document {
        id: id.to_owned(),
        content: Content::Text(text.to_owned()),
    }
}

#[test]
fn the_texts_of_a_wet_file_are_its_documents() {
    let warc = [
        info(),
        conversion("http://a/", "one\r\n\r\nWARC/1.0\r\n"),
        conversion("http://b/?q=å", ""),
    ];
    let expected = [
        text("http://a/", "one\r\n\r\nWARC/1.0\r\n"),
        text("http://b/?q=å", ""),
    ];
    assert_eq!(read(&warc.concat()), expected);
}

#[test]
fn how_the_bytes_arrive_changes_nothing() {
    /// Hands out one byte at a time.
    struct Trickle(Cursor<Vec<u8>>);
    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(1);
            self.0.read(&mut buffer[..most])
        }
    }
    let warc = [info(), conversion("a", "one"), conversion("b", "two")].concat();
    let trickled = open_reader(Trickle(Cursor::new(warc.clone())));
    let trickled: Vec<_> = trickled.map(|result| result.unwrap().0).collect();
    assert_eq!(trickled, read(&warc));
}

#[test]
fn a_gzip_member_for_each_record_is_read_to_the_last() {
    use flate2::Compression;
    use flate2::read::{GzEncoder, MultiGzDecoder};

    let mut compressed = Vec::new();
    for record in [info(), conversion("a", "one"), conversion("b", "two")] {
        let mut member = GzEncoder::new(record.as_slice(), Compression::default());
        member.read_to_end(&mut compressed).unwrap();
    }
    let decoder = |bytes: &[u8]| MultiGzDecoder::new(Cursor::new(bytes.to_vec()));
    let read: Vec<_> = open_reader(decoder(&compressed))
        .map(|result| result.unwrap().0)
        .collect();
    assert_eq!(read, [text("a", "one"), text("b", "two")]);

    let cut = &compressed[..compressed.len() - 20];
    let mut results = open_reader(decoder(cut)).collect::<Vec<_>>();
    let error = results.pop().unwrap().unwrap_err();
    assert!(
        matches!(error, WarcError::Unreadable { record: 3, .. }),
        "{error}"
    );
    let at = info().len() + conversion("a", "one").len();
    assert!(
        error
            .to_string()
            .starts_with(&format!("a.wet: record 3 at byte {at}: cannot read on: ")),
        "{error}"
    );
    assert_eq!(results.len(), 1);
}

#[test]
fn a_record_without_a_uri_is_called_by_its_own_id() {
    let fields = [
        ("WARC-Type", "conversion"),
        ("WARC-Record-ID", "<urn:uuid:7>"),
    ];
    assert_eq!(read(&record(&fields, b"t")), [text("<urn:uuid:7>", "t")]);
    let message = refusal(&record(&fields[..1], b"t"));
    let expected = "a.wet: record 1 at byte 0: it has neither a WARC-Target-URI nor a \
                    WARC-Record-ID";
    assert_eq!(message, expected);
}

#[test]
fn a_record_without_a_type_is_a_bad_one() {
    let field = ("WARC-Target-URI", "a");
    for fields in [vec![field], vec![("WARC-Type", " "), field]] {
        let warc = [record(&fields, b"t"), conversion("b", "u")].concat();
        let message = "a.wet: record 1 at byte 0: it has no WARC-Type".to_owned();
        assert_eq!(results(&warc), [Err(message), Ok(text("b", "u"))]);
        assert!(open(&warc).other_records().is_empty());
        assert!(open(&warc).next().unwrap().unwrap_err().is_bad_record());
    }
}

#[test]
fn a_uri_in_angle_brackets_is_read_without_them() {
    assert_eq!(
        read(&conversion("<http://a/>", "t")),
        [text("http://a/", "t")]
    );
    assert_eq!(
        read(&conversion("<http://a/", "t")),
        [text("<http://a/", "t")]
    );
}

#[test]
fn fields_are_found_in_any_case_and_over_several_lines() {
    let warc =
        b"WARC/1.1\nwarc-TYPE:conversion\nno field\nWARC-Target-URI : http://a/\n\t b\n  c\n\
                 CONTENT-LENGTH:1\n\nt\n";
    assert_eq!(read(warc), [text("http://a/ b c", "t")]);
}

#[test]
fn records_that_are_no_text_are_counted_by_what_they_hold() {
    let typed = |kind, content| record(&[("WARC-Type", kind), ("Content-Type", content)], b"x");
    let warc = [
        info(),
        typed("request", "application/http; msgtype=request"),
        typed("metadata", "application/warc-fields"),
        typed("revisit", "application/http; msgtype=response"),
        typed("metadata", "application/json"),
        typed("resource", "text/css"),
        typed("resource", "image/png"),
        typed("conversion", "image/png"),
        typed("conversion", "text/plain; charset=iso-8859-1"),
        typed("response", "text/dns"),
        typed("continuation", "text/plain"),
        typed("invented", "text/plain"),
        record(
            &[
                ("WARC-Type", "resource"),
                ("Content-Type", "text/plain"),
                ("WARC-Segment-Number", "1"),
            ],
            b"x",
        ),
        conversion("a", "t"),
    ];
    let mut documents = open(&warc.concat());
    let read: Vec<_> = documents.by_ref().map(|result| result.unwrap().0).collect();
    assert_eq!(read, [text("a", "t")]);
    assert_eq!(
        documents.other_records().to_string(),
        "image/png: 2, continuation: 1, invented: 1, metadata: 1, metadata in application/json: 1, \
         part of a record: 1, request: 1, revisit: 1, text/css: 1, text/dns: 1, \
         text/plain in iso-8859-1: 1"
    );
}

#[test]
fn plain_text_resources_are_documents() {
    for content in [
        "text/plain",
        "TEXT/Plain; charset=\"UTF-8\"",
        "text/plain;charset=us-ascii",
    ] {
        let fields = [
            ("WARC-Type", "resource"),
            ("WARC-Target-URI", "a"),
            ("Content-Type", content),
        ];
        assert_eq!(read(&record(&fields, b"t")), [text("a", "t")], "{content}");
    }
}

#[test]
fn the_records_of_arc_are_those_of_warc() {
    let arc = "filedesc://a.arc 0.0.0.0 20080430204825 text/plain 76\n\
               1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n\n\
               dns:a 1.2.3.4 20080430204825 text/dns 4\n1234\n\
               http://a/ 1.2.3.4 20080430204826 text/html 53\n\
               HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\none\n\n\
               two\n\
               http://b/ 1.2.3.4 20080430204826 text/html 26\n\
               HTTP/1.1 404 Not Found\r\n\r\n\n";
    let mut documents = open(arc.as_bytes());
    let read: Vec<_> = documents.by_ref().map(|result| result.unwrap().0).collect();
    assert_eq!(read, [text("http://a/", "one\n\ntwo")]);
    assert_eq!(
        documents.other_records().to_string(),
        "status 404: 1, text/dns: 1"
    );
    let shorter = arc.replace("text/html 53", "text/html 51");
    let error = results(shorter.as_bytes()).pop().unwrap().unwrap_err();
    assert!(
        error.contains("record 3 at byte") && error.ends_with("its own length is wrong"),
        "{error}"
    );
    let cut = refusal(&arc.as_bytes()[..170]);
    assert!(cut.ends_with("the file ends within it"), "{cut}");
}

#[test]
fn a_file_without_content_has_no_documents_and_is_counted_if_it_is_empty() {
    let request = record(&[("WARC-Type", "request")], b"");
    for (warc, empty) in [(&b""[..], 1), (b"\r\n\r\n", 1), (&info(), 1), (&request, 0)] {
        let mut documents = open(warc);
        assert!(documents.next().is_none());
        assert_eq!(documents.take_counts().empty_archives, empty);
        assert!(documents.next().is_none());
        assert_eq!(documents.take_counts(), Skipped::default());
    }
}

#[test]
fn a_bad_record_is_told_and_the_ones_after_it_are_read() {
    let mut not_text = conversion("b", "xyz");
    let at = not_text.len() - 6;
    not_text[at] = 0xFF;
    let good = conversion("a", "one");
    let warc = [
        good.clone(),
        not_text,
        conversion(&"u".repeat(1025), "t"),
        good.clone(),
    ]
    .concat();
    let results = results(&warc);
    assert_eq!(results.len(), 4);
    let message = format!(
        "a.wet: record 2 at byte {}: \"x\u{FFFD}z\" is no text: its byte 2 is not valid UTF-8",
        good.len()
    );
    assert_eq!(results[1], Err(message));
    let message = results[2].as_ref().unwrap_err();
    assert!(
        message.ends_with("takes 1025 bytes: at most 1024 are allowed"),
        "{message}"
    );
    assert_eq!(results[3], Ok(text("a", "one")));
    assert!(open(&warc).nth(1).unwrap().unwrap_err().is_bad_record());
}

#[test]
fn ids_that_tsv_cannot_hold_are_refused_where_tsv_is_to_be_written() {
    let warc = conversion("a\tb", "t");
    let from = Box::new(Cursor::new(warc.clone()));
    let mut documents = WarcDocuments::new("a.wet".to_owned(), from, Html::Main, Ids::Tsv);
    assert!(documents.next().unwrap().unwrap_err().is_bad_record());
    assert_eq!(read(&warc), [text("a\tb", "t")]);
}
