//! WARC among the formats: its documents are the texts of its records.

use std::io::Write;

use flate2::Compression as Level;
use flate2::write::GzEncoder;

use super::*;

/// A record of a type, at an address, with some content.
fn record(kind: &str, uri: &str, content_type: &str, block: &[u8]) -> Vec<u8> {
    let header = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n",
        block.len()
    );
    [header.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn page(uri: &str, text: &str) -> Vec<u8> {
    record("conversion", uri, "text/plain", text.as_bytes())
}

fn image(uri: &str) -> Vec<u8> {
    record("resource", uri, "image/png", b"\x89PNG")
}

/// A text that is no text.
fn bad_page(uri: &str) -> Vec<u8> {
    record("conversion", uri, "text/plain", b"caf\xe9")
}

/// Each record in a member of its own, as crawls have it.
fn gzip(records: &[Vec<u8>]) -> Vec<u8> {
    let members = records.iter().flat_map(|record| {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(record).unwrap();
        encoder.finish().unwrap()
    });
    members.collect()
}

/// The same with zstd.
fn zstd(records: &[Vec<u8>]) -> Vec<u8> {
    records
        .iter()
        .flat_map(|record| super::cutting::zstd(record))
        .collect()
}

#[test]
fn documents_are_the_texts_of_all_sources_compressed_or_not() {
    let folder = Folder::new();
    let paths = [
        folder.write(
            "a.warc.wet.gz",
            gzip(&[page("http://a", "one"), image("i")]),
        ),
        PathBuf::from("-"),
        folder.write("b.wet", page("http://b", "two")),
    ];
    let stdin = page("http://s", "three");
    let input = open_bytes(&args(Format::Warc, &paths), &stdin).unwrap();
    assert_eq!(input.document_count(), Some(3));
    assert_eq!(input.carries(), crate::Carries::Texts);
    let (read, documents) = drain(input);
    let expected = [
        text("http://a", "one"),
        text("http://s", "three"),
        text("http://b", "two"),
    ];
    assert_eq!(read, expected);
    assert_eq!(documents.skipped().other_records.total(), 1);
}

/// I1.
#[test]
fn a_bad_record_at_the_end_of_the_last_source_stops_before_the_first_document() {
    let folder = Folder::new();
    let good = folder.write("good.wet", page("http://a", "one"));
    let bad = [page("http://b", "two"), bad_page("http://c")];
    for (name, content) in [("bad.wet", bad.concat()), ("bad.wet.gz", gzip(&bad))] {
        let bad = folder.write(name, content);
        let paths = [good.clone(), bad.clone()];
        let message = message(open_bytes(&args(Format::Warc, &paths), b""));
        let expected = format!("{}: record 2 at byte ", bad.display());
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.contains("is not valid UTF-8"), "{message}");
    }
}

#[test]
fn a_nul_byte_makes_a_bad_record() {
    let records = [page("http://a", "a\0b"), page("http://b", "two")].concat();
    let refused = message(open_bytes(&args(Format::Warc, &[]), &records));
    assert!(
        refused.starts_with("<stdin>: record 1 at byte 0"),
        "{refused}"
    );
    assert!(refused.contains("its byte 2 is NUL"), "{refused}");
    let (read, documents) = drain(open_bytes(&skipping(Format::Warc, &[]), &records).unwrap());
    assert_eq!(read, [text("http://b", "two")]);
    assert_eq!(documents.skipped().bad_records, 1);
}

#[test]
fn bad_records_are_counted_where_they_may_be_skipped() {
    let records = [
        image("i"),
        bad_page("http://a"),
        image("j"),
        page("http://b", "two"),
        image("k"),
    ];
    let input = open_bytes(&skipping(Format::Warc, &[]), &records.concat()).unwrap();
    assert_eq!(input.document_count(), None);
    let (read, documents) = drain(input);
    assert_eq!(read, [text("http://b", "two")]);
    let skipped = documents.skipped();
    assert_eq!(
        skipped.to_string(),
        "skipped 1 bad record, 3 other records (image/png: 3)"
    );
}

/// The error at the end of an input that is read to there.
fn last_error(options: &InputOptions) -> String {
    let read = open_bytes(options, b"").map(|input| input.documents().last());
    let error = read.map_or_else(Some, |last| last.and_then(Result::err));
    error.expect("an error at the end").to_string()
}

/// In the header of a member, too, of which a reader may see a byte and no more. Where only the checksum at its end is
/// cut, the record in it is whole.
#[test]
fn a_file_that_ends_too_early_is_an_error_even_when_bad_records_are_skipped() {
    let pages = [page("http://a", "one"), page("http://b", "two")];
    let folder = Folder::new();
    for compress in [gzip, zstd] {
        let (first, whole) = (compress(&pages[..1]).len(), compress(&pages));
        for length in first + 1..whole.len() {
            let paths = [folder.write("cut.wet", &whole[..length])];
            let refused = last_error(&args(Format::Warc, &paths));
            let place = |record: usize| {
                let at = pages[..record - 1].concat().len();
                format!(
                    "{}: record {record} at byte {at}: cannot read on: ",
                    paths[0].display()
                )
            };
            let is_at = |record| refused.starts_with(&place(record));
            let is_whole = length > first + 20 && is_at(3);
            assert!(is_at(2) || is_whole, "{length}: {refused}");
            let remedy = "data ends too early: the file is not complete: copy or download it again";
            assert!(refused.ends_with(remedy), "{length}: {refused}");
            assert_eq!(
                last_error(&skipping(Format::Warc, &paths)),
                refused,
                "{length}"
            );
        }
    }
}

#[test]
fn a_file_that_ends_within_the_first_member_of_gzip_is_an_error() {
    let whole = gzip(&[page("http://a", "one")]);
    let folder = Folder::new();
    for length in 0..whole.len() {
        let path = folder.write("cut.wet.gz", &whole[..length]);
        let refused = last_error(&skipping(Format::Warc, std::slice::from_ref(&path)));
        assert!(
            refused.contains(&*path.to_string_lossy()),
            "{length}: {refused}"
        );
        let expected = "the gzip data ends too early: the file is not complete";
        assert!(refused.contains(expected), "{length}: {refused}");
    }
}

#[test]
fn an_empty_archive_is_counted_and_named_and_refused_where_there_is_no_other() {
    let folder = Folder::new();
    let empty = folder.write("empty.warc", "");
    let one = std::slice::from_ref(&empty);
    let told = format!(
        "{}: record 1 at byte 0: there is none, as the file is empty",
        empty.display()
    );
    assert_eq!(
        last_error(&args(Format::Warc, one)),
        format!("{told}; add --skip-bad-lines if that is as it should be")
    );
    let both = [
        empty.clone(),
        folder.write("a.warc", page("http://a", "one")),
    ];
    for (options, documents) in [
        (skipping(Format::Warc, one), 0),
        (skipping(Format::Warc, &both), 1),
        (args(Format::Warc, &both), 1),
    ] {
        let (read, all) = drain(open_bytes(&options, b"").unwrap());
        assert_eq!(read.len(), documents);
        assert_eq!(all.skipped().to_string(), "skipped 1 empty archive");
        assert_eq!(all.skipped().bad_ones(), [told.as_str()]);
    }
}

#[test]
fn an_input_without_any_text_is_refused_unless_bad_records_are_skipped() {
    let folder = Folder::new();
    let images = folder.write("images.warc", [image("i"), image("j")].concat());
    let texts = folder.write("texts.warc", page("http://a", "one"));
    let read = |options: &InputOptions| -> Result<usize, InputError> {
        let input = open_bytes(options, b"")?;
        let documents = input.documents().collect::<Result<Vec<_>, _>>();
        Ok(documents?.len())
    };
    let one = std::slice::from_ref(&images);
    let message = read(&args(Format::Warc, one)).unwrap_err().to_string();
    let expected = "no record of the input holds a text: image/png: 2; add --skip-bad-lines";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(read(&skipping(Format::Warc, one)).unwrap(), 0);
    let both = [images.clone(), texts];
    assert_eq!(read(&args(Format::Warc, &both)).unwrap(), 1);
    let bad = folder.write("bad.warc", bad_page("http://c"));
    let only_bad = read(&skipping(Format::Warc, std::slice::from_ref(&bad)));
    let message = only_bad.unwrap_err().to_string();
    let expected = "nothing was read: skipped 1 bad record; the first: ";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(read(&skipping(Format::Warc, &[images, bad])).unwrap(), 0);
}

#[test]
fn an_id_that_cannot_be_printed_is_a_bad_record() {
    let opened = open_for_tsv(&args(Format::Warc, &[]), &page("http://a\tb", "one"));
    let message = message(opened);
    assert!(
        message.contains("has a tab, a line break or a NUL byte"),
        "{message}"
    );
}
