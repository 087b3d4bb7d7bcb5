//! Content under wrong names: read right, or refused.

use super::cutting::gzip;
use super::*;

/// A small file of each kind, what it looks like, and the endings of names that say so.
const KINDS: [(&str, &[u8], &str, &[&str]); 13] = [
    (
        "jsonl",
        b"{\"id\": \"a\", \"text\": \"one two\"}\n",
        "JSON",
        &["jsonl", "jl", "jsonlines", "ndjson"],
    ),
    (
        "array",
        b"[\n{\"id\": \"a\", \"text\": \"one two\"}]\n",
        "an array of JSON",
        &["json"],
    ),
    ("csv", b"id,text\na,one two\n", "", &["csv"]),
    ("tsv", b"id\thash\na\t17\n", "TSV", &["tsv"]),
    (
        "warc",
        b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: a\r\nContent-Length: 7\r\n\r\n\
          one two\r\n\r\n",
        "WARC",
        &["warc", "wet", "wat", "arc"],
    ),
    (
        "arc",
        b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 20\n1 1 InternetArchive\n\n\
          http://a/ 1.2.3.4 20080430204826 text/plain 52\n\
          HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\none two\n",
        "ARC",
        &["warc", "wet", "wat", "arc"],
    ),
    (
        "page",
        b"<!doctype html>\n<p>one two",
        "a page of HTML",
        &["html", "htm", "xhtml"],
    ),
    ("parquet", b"PAR1\x15\x04\x15 PAR1", "Parquet", &["parquet"]),
    (
        "arrow",
        b"ARROW1\0\0\xFF\xFF\xFF\xFF",
        "Arrow",
        &["arrow", "arrows", "feather"],
    ),
    (
        "stream",
        b"\xFF\xFF\xFF\xFF\x10\0\0\0",
        "Arrow",
        &["arrow", "arrows", "feather"],
    ),
    ("feather", b"FEA1\0\0\0\0", "Feather 1", &[]),
    ("zip", b"PK\x03\x04\x14\0\0\0", "a zip archive", &[]),
    (
        "utf16",
        b"\xFF\xFEi\0d\0\n\0",
        "UTF-16",
        &["html", "htm", "xhtml"],
    ),
];

fn named(path: PathBuf) -> InputOptions {
    InputOptions {
        format: None,
        ..args(Format::Lines, &[path])
    }
}

/// The documents, or the error at any time.
fn outcome(options: &InputOptions, stdin: &[u8], skip: bool) -> Result<Vec<Document>, String> {
    let options = InputOptions {
        skip_bad_lines: skip,
        ..options.clone()
    };
    let input = open_bytes(&options, stdin).map_err(|error| error.to_string())?;
    let documents: Result<Vec<Document>, InputError> = input.documents().collect();
    documents.map_err(|error| error.to_string())
}

/// I7.
#[test]
fn content_under_any_name_is_read_right_or_refused() {
    let folder = Folder::new();
    let names = KINDS.iter().flat_map(|(.., names)| *names);
    let names = names.chain(&["txt", "unknown", "tar"]);
    for name in names {
        for (kind, content, looks, right) in KINDS {
            for compressed in [false, true] {
                let path = if compressed {
                    folder.write(&format!("{kind}.{name}.gz"), gzip(content))
                } else {
                    folder.write(&format!("{kind}.{name}"), content)
                };
                let found = outcome(&named(path.clone()), b"", false);
                let place = path.display();
                if right.contains(name) && !matches!(kind, "array" | "arrow" | "stream" | "parquet")
                {
                    assert_eq!(found.map(|read| read.len()), Ok(1), "{place}");
                } else if kind == "csv" && ["html", "htm", "xhtml"].contains(name) {
                    // A page of plain words is a page all the same.
                    assert_eq!(found.map(|read| read.len()), Ok(1), "{place}");
                } else if right.contains(name) && kind != "array" {
                    // No more than their beginnings.
                    let error = found.expect_err(&place.to_string());
                    assert!(!error.contains("looks like"), "{error}");
                } else {
                    let error = found.expect_err(&place.to_string());
                    assert!(error.contains(&*place.to_string()), "{error}");
                    let says = error.contains(&format!(" looks like {looks}"));
                    assert!(says || kind == "csv", "{error}");
                }
            }
        }
    }
}

#[test]
fn content_that_looks_like_another_format_is_no_matter_of_bad_lines() {
    let folder = Folder::new();
    for (kind, content, looks, _) in KINDS {
        let path = folder.write("a.jsonl", content);
        let found = outcome(&named(path), b"", true);
        if kind == "csv" {
            let error = found.expect_err("each line is bad");
            assert!(
                error.starts_with("nothing was read: skipped 2 bad lines; the first: "),
                "{error}"
            );
        } else if kind != "jsonl" {
            let error = found.expect_err(kind);
            assert!(error.contains(&format!(" looks like {looks}")), "{error}");
        }
    }
}

/// I7.
#[test]
fn standard_input_is_texts_unless_it_looks_like_something_else() {
    let unsaid = InputOptions {
        format: None,
        ..args(Format::Lines, &[])
    };
    for (kind, content, looks, _) in KINDS {
        for content in [
            content.to_vec(),
            gzip(content),
            [b"\n \n", content].concat(),
        ] {
            let found = outcome(&unsaid, &content, false);
            if kind == "csv" || (content.starts_with(b"\n") && !has_leading_space(kind)) {
                continue;
            }
            let error = found.expect_err(kind);
            let expected = format!("<stdin> looks like {looks}");
            assert!(error.starts_with(&expected), "{error}");
            assert!(
                error.ends_with("or --format lines if it is that"),
                "{error}"
            );
        }
        // A caller who says the format is right.
        let lines = args(Format::Lines, &[]);
        let found = outcome(&lines, content, false);
        assert!(
            found.is_ok()
                || ["parquet", "arrow", "stream", "feather", "zip", "utf16"].contains(&kind),
            "{kind}"
        );
    }
    let plain = outcome(&unsaid, b"{braces}\n[1] a note\n", false);
    assert_eq!(plain.unwrap().len(), 2);
}

/// Whether white space may stand before the first bytes that tell.
fn has_leading_space(kind: &str) -> bool {
    matches!(kind, "jsonl" | "array" | "page")
}

#[test]
fn fingerprints_are_not_looked_for_in_other_formats() {
    let needs = Needs {
        preferred_format: Format::Hashes,
        ..Needs::CLIENT
    };
    let unsaid = InputOptions {
        format: None,
        ..args(Format::Lines, &[])
    };
    let open = |stdin: &[u8]| {
        Input::open_with_stdin(&unsaid, needs, Box::new(Cursor::new(stdin.to_vec())))
    };
    let error = message(open(b"a\t17\n"));
    assert_eq!(
        error,
        "<stdin> looks like TSV of ids and fingerprints, and would be read as hashes: add --format \
         tsv, or --format hashes if it is that"
    );
    assert_eq!(all(open(b"17\n").unwrap()), [print("1", 17)]);
}
