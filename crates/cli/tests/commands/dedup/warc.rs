//! `dedup` of WARC: records are written again, those without text too.

use std::fs;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use simshard_testkit::run;

use super::{Folder, Made, dedup, reference, refuse};
use crate::{BINARY, log};

/// A record of a type with this block.
fn record(kind: &str, uri: &str, content_type: &str, block: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

/// A record with a text in one of the ways that archives have it.
fn text(way: usize, uri: &str, text: &str) -> String {
    let http = |content_type: &str, body: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n{body}")
    };
    match way {
        0 => record("conversion", uri, "text/plain", text),
        1 => record("resource", uri, "text/plain", text),
        2 => record(
            "response",
            uri,
            "application/http",
            &http("text/plain", text),
        ),
        _ => {
            let page = format!("<html><p>{text}</p></html>");
            record(
                "response",
                uri,
                "application/http",
                &http("text/html", &page),
            )
        }
    }
}

/// A record without a text.
fn other(way: usize, uri: &str) -> String {
    match way {
        0 => record("request", uri, "application/http", "GET / HTTP/1.1\r\n\r\n"),
        1 => record(
            "metadata",
            uri,
            "application/warc-fields",
            "fetchTimeMs: 7\r\n",
        ),
        2 => record(
            "revisit",
            uri,
            "application/http",
            "HTTP/1.1 200 OK\r\n\r\n",
        ),
        3 => record(
            "response",
            uri,
            "application/http",
            "HTTP/1.1 404 No\r\n\r\ngone",
        ),
        _ => record(
            "resource",
            uri,
            "image/png",
            &"\0x\r\n\r\nWARC/1.0\r\n".repeat(40_000),
        ),
    }
}

/// An archive of random records: all of them, and those that are documents by their place.
pub(super) struct Archive {
    pub(super) records: Vec<String>,
    texts: Vec<(usize, String)>,
}

impl Archive {
    pub(super) fn new(seed: u64, count: usize, ways: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut records = vec![record(
            "warcinfo",
            "a",
            "application/warc-fields",
            "a: b\r\n",
        )];
        let mut texts = Vec::new();
        let base = "one two three four five six seven eight nine ten eleven twelve thirteen";
        for number in 0..count {
            let uri = format!("http://a/{number}");
            let place = records.len();
            if random.u8(..4) == 0 {
                records.push(other(random.usize(..5), &uri));
                continue;
            }
            // Signs make a text longer, and change none of its words; a word changes a few bits.
            let sign = ["¡", "."][random.usize(..2)].repeat(random.usize(..9));
            let content = match random.u8(..12) {
                0 => "!?".to_owned(),
                _ => format!("{base} {} {}{sign}", random.u8(..3), random.u8(..3)),
            };
            records.push(text(random.usize(..ways), &uri, &content));
            texts.push((place, content));
        }
        Self { records, texts }
    }

    /// The documents that have a fingerprint, and the place of each among the records.
    fn made(&self, folder: &Folder) -> (Vec<Made>, Vec<usize>) {
        let input = folder.write("hash.warc", self.records.concat());
        let hashes = run(BINARY, ["hash", &input], "").stdout;
        let hashes = String::from_utf8(hashes).unwrap();
        let hash = |row: &str| row.split('\t').nth(1).unwrap().parse().unwrap();
        let mut rows = hashes.lines().skip(1);
        let (mut made, mut places) = (Vec::new(), Vec::new());
        for (place, text) in &self.texts {
            if text.starts_with("one") {
                let row = rows.next().unwrap();
                made.push(Made {
                    id: row.split('\t').next().unwrap().to_owned(),
                    fingerprint: hash(row),
                    date: None,
                    score: Some(text.chars().count() as i32),
                    line: self.records[*place].clone(),
                });
                places.push(*place);
            }
        }
        assert_eq!(rows.next(), None);
        (made, places)
    }
}

/// Each record in a member of its own.
pub(super) fn gzip(records: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let members = records.iter().flat_map(|record| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(record.as_ref()).unwrap();
        encoder.finish().unwrap()
    });
    members.collect()
}

/// The content of each member.
fn members(path: &str) -> Vec<String> {
    let bytes = fs::read(path).unwrap();
    let (mut rest, mut members) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let mut member = String::new();
        let mut decoder = GzDecoder::new(&mut rest);
        decoder.read_to_string(&mut member).unwrap();
        members.push(member);
    }
    members
}

/// DD1, DD2, I6.
#[test]
fn what_is_kept_of_an_archive_is_what_a_linear_scan_says() {
    let folder = Folder::new();
    let [plain, gz, zst] =
        ["out.warc", "out.warc.gz", "out.warc.zst"].map(|name| folder.path(name));
    for (seed, ways, keep, by) in [
        (1, 3, "longest", "cluster"),
        (2, 3, "longest", "pairs"),
        (3, 4, "first", "cluster"),
        (4, 4, "first", "pairs"),
    ] {
        let archive = Archive::new(seed, 200, ways);
        let (made, places) = archive.made(&folder);
        let preference = if keep == "longest" { "highest:s" } else { keep };
        let causes = reference(&made, preference, by);
        assert!(causes.len() > 20, "seed {seed}");
        let dropped: Vec<usize> = causes.keys().map(|&document| places[document]).collect();
        let all = archive.records.iter().enumerate();
        let kept = all.filter(|(place, _)| !dropped.contains(place));
        let kept: Vec<&str> = kept.map(|(_, record)| record.as_str()).collect();
        let whole = folder.write("in.warc", archive.records.concat());
        let compressed = folder.write("in.warc.gz", gzip(&archive.records));
        for input in [&whole, &compressed] {
            for output in [&plain, &gz, &zst] {
                dedup(&[input, "-o", output, "--keep", keep, "--by", by], "");
            }
            assert_eq!(folder.read("out.warc"), kept.concat(), "seed {seed}");
            assert_eq!(members(&gz), kept, "seed {seed}");
            // A frame of zstd for each, which the reader puts together.
            let said = dedup(&[&zst, "-o", &plain], "");
            assert!(said.starts_with("kept "), "{said}");
        }
        let args = ["-f", "warc", "-o", "-", "--keep", keep, "--by", by];
        let piped = run(
            BINARY,
            [&["dedup"], &args[..]].concat(),
            archive.records.concat(),
        );
        assert_eq!(String::from_utf8(piped.stdout).unwrap(), kept.concat());
    }
}

#[test]
fn several_archives_go_to_a_folder_a_member_for_each_record() {
    let folder = Folder::new();
    let a = "one two three four five six seven eight";
    let b = "a wholly other text about nothing that was said before";
    let one = [
        other(0, "http://a"),
        text(2, "http://a", a),
        other(1, "http://a"),
    ];
    let two = [
        text(0, "http://b", b),
        text(1, "http://c", a),
        other(4, "http://d"),
    ];
    let three = [other(0, "http://e")];
    let inputs = [
        folder.write("in/x/a.warc.gz", gzip(&one)),
        folder.write("in/y/b.warc.wet.gz", gzip(&two)),
        folder.write("in/c.warc", three.concat()),
        folder.write("in/d.warc", ""),
    ];
    let out = folder.path("out");
    let inputs = inputs.each_ref().map(String::as_str);
    let said = dedup(&[&inputs[..], &["-o", &out]].concat(), "");
    assert_eq!(said, "kept 2 of 3 documents, one of each cluster");
    assert_eq!(members(&folder.path("out/x/a.warc.gz")), one);
    let expected = [two[0].clone(), two[2].clone()];
    assert_eq!(members(&folder.path("out/y/b.warc.wet.gz")), expected);
    assert_eq!(folder.read("out/c.warc"), three[0]);
    assert_eq!(folder.read("out/d.warc"), "");
}

#[test]
fn bad_records_are_left_out_where_they_are_skipped() {
    let folder = Folder::new();
    let out = folder.path("out.warc");
    let bad = record("conversion", "http://b", "text/plain", "\0");
    let good = [text(0, "http://a", "a b c"), text(0, "http://c", "d e f")];
    let archive = [&*good[0], &bad, &good[1]].concat();
    let said = refuse(&["-f", "warc", "-o", &out], &archive);
    assert!(said.contains("<stdin>: record 2 at byte"), "{said}");
    dedup(&["-f", "warc", "-o", &out, "--skip-bad-lines"], &archive);
    assert_eq!(folder.read("out.warc"), good.concat());
    let cut = &archive[..archive.len() - 10];
    let said = refuse(&["-f", "warc", "-o", &out, "--skip-bad-lines"], cut);
    assert!(said.contains("the file ends within it"), "{said}");
    assert_eq!(folder.read("out.warc"), good.concat());
    let said = refuse(&["-f", "warc", "-o", &out], &other(0, "http://a"));
    assert!(
        said.contains("no record of the input holds a text"),
        "{said}"
    );
    let said = refuse(
        &["-f", "warc", "-o", &out, "--keep", "newest:date"],
        &good.concat(),
    );
    let expected = "no document has a value in the field \"date\"";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_newest_capture_is_kept_where_that_is_asked_for() {
    let folder = Folder::new();
    let out = folder.path("out.warc");
    let capture = |date: &str| {
        let record = text(2, "http://a", "one two three four five six seven");
        record.replacen("\r\n", &format!("\r\nWARC-Date: {date}\r\n"), 1)
    };
    let dates = [
        "2024-05-01",
        "2024-05-01T00:00:01Z",
        "2023-12-31T23:59:59.5Z",
    ];
    let captures = dates.map(capture);
    let args = ["-f", "warc", "-o", &out, "--keep", "newest:WARC-Date"];
    let said = dedup(&args, &captures.concat());
    assert_eq!(said, "kept 1 of 3 documents, one of each cluster");
    assert_eq!(folder.read("out.warc"), captures[1]);
}

/// WA3, I6: the record that is left out, and no other, whichever compression there is.
#[test]
fn a_record_with_a_wrong_length_is_left_out_where_that_is_asked_for() {
    let folder = Folder::new();
    let out = folder.path("out.warc");
    let long = "one two three four five six ".repeat(40_000);
    let good = [
        text(0, "http://a", "a b c"),
        other(0, "http://b"),
        text(0, "http://c", "d e f"),
        text(0, "http://d", &long),
    ];
    let wrong = text(0, "http://w", "seven eight nine ten");
    for length in ["3", "21", "300", "2000", "x"] {
        let wrong = wrong.replace("Content-Length: 20", &format!("Content-Length: {length}"));
        let records = [&*good[0], &wrong, &good[1], &good[2], &good[3]];
        for input in [
            folder.write("in.warc", records.concat()),
            folder.write("in.warc.gz", gzip(&records)),
        ] {
            let said = refuse(&[&input, "-o", &out], "");
            let place = format!("record 2 at byte {}: ", good[0].len());
            assert!(said.contains(&place), "{said}");
            assert!(
                said.contains("add --skip-bad-lines to leave it out and go on"),
                "{said}"
            );
            let args = ["dedup", &input, "-o", &out, "--skip-bad-lines"];
            let said = log(&run(BINARY, args, ""));
            let count = "skipped 1 bad record, 1 other record (request: 1)\n";
            assert!(said.contains(count) && said.contains(&place), "{said}");
            assert!(
                said.ends_with("kept 3 of 3 documents, one of each cluster\n"),
                "{said}"
            );
            assert_eq!(folder.read("out.warc"), good.concat(), "{length}");
            fs::remove_file(&out).unwrap();
        }
    }
}

/// Records of ARC, and of programs that leave out line breaks, stay as they are.
#[test]
fn records_keep_their_own_ends() {
    let folder = Folder::new();
    let out = folder.path("out.arc");
    let a = "one two three four five six seven eight";
    let b = "a wholly other text about nothing that was said before";
    let arc = |name: &str, text: &str| {
        let length = text.len();
        format!("{name} 1.2.3.4 20080430204826 text/plain {length}\n{text}\n")
    };
    let file = arc("filedesc://a.arc", "1 0 x\n");
    let records = [file, arc("dns:a", a), arc("dns:b", a), arc("dns:c", b)];
    dedup(&["-f", "warc", "-o", &out], &records.concat());
    let expected = [&*records[0], &records[1], &records[3]].concat();
    assert_eq!(folder.read("out.arc"), expected);

    let bare = |uri, text| {
        record("conversion", uri, "text/plain", text)
            .trim_end()
            .to_owned()
    };
    let records = [
        "\r\n\r\n".to_owned(),
        bare("http://a", a) + "\r\n",
        bare("http://b", a),
        bare("http://c", b),
    ];
    let out = folder.path("out.warc");
    dedup(&["-f", "warc", "-o", &out], &records.concat());
    let expected = [&*records[0], &records[1], &records[3]].concat();
    assert_eq!(folder.read("out.warc"), expected);
}
