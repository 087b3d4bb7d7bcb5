//! Content under wrong names: read right, or refused.

use super::cutting::gzip;
use super::*;
use crate::MAX_RECORD_BYTES;

/// A small file of each kind, what it looks like, and the endings of names that say so.
const KINDS: [(&str, &[u8], &str, &[&str]); 15] = [
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
    (
        "strings",
        b"[\"a\", \"b\"]\n[\"c\", \"d\"]\n",
        "an array of JSON strings",
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
    ("parquet", b"PAR1\x15\x00\x15 PAR1", "Parquet", &["parquet"]),
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
        "pdf",
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        "PDF",
        &[],
    ),
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
                let is_read = !matches!(kind, "array" | "strings" | "arrow" | "stream" | "parquet");
                if right.contains(name) && is_read {
                    assert_eq!(found.map(|read| read.len()), Ok(1), "{place}");
                } else if kind == "csv" && ["html", "htm", "xhtml"].contains(name) {
                    // A page of plain words is a page all the same.
                    assert_eq!(found.map(|read| read.len()), Ok(1), "{place}");
                } else if right.contains(name) && !matches!(kind, "array" | "strings") {
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

/// The outcome of a folder that holds a text beside this file, and what was skipped in it.
fn beside_a_text(
    file: &str,
    content: &[u8],
    skip_formats: bool,
) -> Result<(usize, String), String> {
    let folder = Folder::new();
    folder.write("sub/a text", "one two");
    folder.write(&format!("sub/{file}"), content);
    let options = InputOptions {
        skip_formats,
        ..named(folder.path())
    };
    let mut documents = open_bytes(&options, b"")
        .map_err(|error| error.to_string())?
        .documents();
    let read: Result<Vec<Document>, InputError> = documents.by_ref().collect();
    let read = read.map_err(|error| error.to_string())?;
    Ok((read.len(), documents.skipped().to_string()))
}

/// I7.
#[test]
fn content_in_a_folder_is_one_document_or_refused_or_counted() {
    let names = [
        "part-00000",
        "x.txt",
        "x.md",
        "x.json",
        "x.html",
        "x.htm.gz",
        "x.gz",
    ];
    for (kind, content, looks, right) in KINDS {
        // One object is one document.
        let content = content.repeat(if kind == "jsonl" { 2 } else { 1 });
        for name in names {
            let is_page = name.contains(".htm");
            let file = if name.ends_with(".gz") {
                gzip(&content)
            } else {
                content.clone()
            };
            let found = beside_a_text(name, &file, false);
            let skipped = beside_a_text(name, &file, true);
            let other = Ok((
                1,
                format!("skipped 1 other file ({}: 1)", in_full(kind, looks)),
            ));
            match kind {
                "utf16" if !is_page => {
                    let counted = Ok((1, "skipped 1 invalid UTF-8 file".to_owned()));
                    assert_eq!((found, skipped), (counted.clone(), counted), "{name}");
                }
                "csv" | "page" | "utf16" => {
                    assert_eq!(found, Ok((2, String::new())), "{kind}, {name}");
                    assert_eq!(skipped, found, "{kind}, {name}");
                }
                "array" | "strings" if !is_page => {
                    assert_eq!(found, Ok((2, String::new())), "{kind}, {name}");
                    assert_eq!(skipped, found, "{kind}, {name}");
                }
                "parquet" | "arrow" | "stream" | "feather" | "zip" | "pdf" => {
                    assert_eq!((&found, &skipped), (&other, &other), "{kind}, {name}");
                }
                _ => {
                    let error = found.expect_err(name);
                    let says = format!("{name} looks like {looks}");
                    assert!(error.contains(&says), "{right:?}, {name}: {error}");
                    assert!(error.contains("--format files for all files"), "{error}");
                    assert_eq!(skipped, other, "{kind}, {name}");
                }
            }
        }
    }
}

/// What a kind is counted as.
fn in_full<'a>(kind: &str, looks: &'a str) -> &'a str {
    match kind {
        "tsv" => "TSV of ids and fingerprints",
        _ => looks,
    }
}

/// I7.
#[test]
fn a_file_over_the_limit_is_looked_at_too() {
    let line = "{\"id\": \"a\", \"text\": \"one two\"}\n";
    let many = line.repeat(MAX_RECORD_BYTES / line.len() + 1);
    for content in [many.clone().into_bytes(), gzip(many.as_bytes())] {
        let error = beside_a_text("part-0", &content, false).expect_err("many lines");
        assert!(error.contains("part-0 looks like JSON"), "{error}");
        let counted = Ok((1, "skipped 1 other file (JSON: 1)".to_owned()));
        assert_eq!(beside_a_text("part-0", &content, true), counted);
    }
    let text = "x".repeat(MAX_RECORD_BYTES + 1);
    let counted = Ok((1, "skipped 1 too large file".to_owned()));
    assert_eq!(beside_a_text("part-0", text.as_bytes(), false), counted);
}

#[test]
fn what_is_usual_in_a_folder_of_code_is_a_document() {
    for (name, content) in [
        (
            "package.json",
            "{\n  \"name\": \"a\",\n  \"files\": [\"b\"]\n}\n",
        ),
        ("one.json", "{\"a\": 1}\n\n"),
        ("nested.json", "{\"a\":\n{\"b\": {}}}\n"),
        ("empty.json", "{}"),
        ("list.json", "[\n  {\"a\": 1}\n]\n"),
        ("block.c", "{\n{ }\n}\n"),
        ("counted.txt", "the\t17\n"),
        ("table.txt", "word\t17\nof two\n"),
        ("README.md", "PAR1 is where Parquet begins\n"),
        ("notes", "[\"a\" is a letter]\n"),
        ("page.html", "<p>one</p>\n"),
        ("part.htm", "{% raw %}\n{\n"),
    ] {
        for skip_formats in [false, true] {
            let found = beside_a_text(name, content.as_bytes(), skip_formats);
            assert_eq!(found, Ok((2, String::new())), "{name}");
        }
    }
}

/// A caller who says that files are documents is right, and may leave out others.
#[test]
fn with_the_format_files_others_are_left_out_only_where_that_is_asked_for() {
    let folder = Folder::new();
    folder.write("a", "a text");
    folder.write("b", "{\"id\": 1}\n{\"id\": 2}\n");
    for (skip_formats, expected) in [(false, 2), (true, 1)] {
        let options = InputOptions {
            skip_formats,
            ..args(Format::Files, &[folder.path()])
        };
        assert_eq!(outcome(&options, b"", false).unwrap().len(), expected);
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

/// Hands out a line each time it is read, as a program writes to a pipe.
struct Lines(Vec<Vec<u8>>);

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let line = self.0.remove(0);
        buffer[..line.len()].copy_from_slice(&line);
        Ok(line.len())
    }
}

/// I5, I7: however a page begins, and however it arrives.
#[test]
fn a_page_on_standard_input_is_refused_in_the_same_words() {
    let unsaid = InputOptions {
        format: None,
        ..args(Format::Lines, &[])
    };
    let whole = "<p>".to_owned() + &"one two ".repeat(1000);
    for begins in [
        "<!doctype html>\n",
        "<html>\n",
        "<?xml version=\"1.0\"?>\n<html>\n",
        "<?xml version=\"1.0\"?>\n\n<!DOCTYPE html PUBLIC \"x\">\n<html>\n",
        "<!-- a -->\n<!doctype html>\n",
        "<!-- a\nb\n-->\n<!-- c -->\n<html>",
        "\n<!-- a -->\n<html>",
    ] {
        let page = format!("{begins}{whole}\n<p>the end\n");
        let lines = page
            .split_inclusive('\n')
            .map(|line| line.as_bytes().to_vec());
        for stdin in [
            Box::new(Cursor::new(page.clone().into_bytes())) as Box<dyn Read + Send>,
            Box::new(Lines(lines.collect())),
        ] {
            let input = Input::open_with_stdin(&unsaid, Needs::CLIENT, stdin);
            let expected = "<stdin> looks like a page of HTML, and would be read as lines: add --format files, and \
                            name the files of pages or their folder, or --format lines if it is that";
            assert_eq!(message(input), expected, "{begins}");
        }
    }
    // What is no page is all there, however long its beginning may be one.
    for lines in [
        vec!["<!-- a -->\n", "b\n", "c"],
        vec!["<!-- a -->\n", "<!-- b -->\n", "<!-- c"],
        vec!["<?xml version=\"1.0\"?>\n", "<rss>\n", "<p>\n"],
        vec!["\n", "<!--\n", &whole],
    ] {
        let expected: Vec<String> = lines
            .iter()
            .map(|line| line.trim_end_matches('\n').to_owned())
            .collect();
        let lines = Lines(lines.iter().map(|line| line.as_bytes().to_vec()).collect());
        let read = all(Input::open_with_stdin(&unsaid, Needs::CLIENT, Box::new(lines)).unwrap());
        let texts = read.into_iter().map(|document| document.content);
        let expected = expected.into_iter().filter(|line| !line.is_empty());
        assert!(texts.eq(expected.map(Content::Text)));
    }
}

/// Without a NUL, or where these are left out, they would be pages.
#[test]
fn binary_content_under_the_name_of_a_page_is_counted() {
    let png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x01\0";
    let counted = Ok((1, "skipped 1 binary file".to_owned()));
    for name in ["a.html", "a.htm", "a.xhtml", "a.html.gz", "a.txt"] {
        for content in [&png[..], &gzip(b"<p>one two")] {
            let content = gzip(content);
            assert_eq!(beside_a_text(name, &content, false), counted, "{name}");
            assert_eq!(beside_a_text(name, &content, true), counted, "{name}");
        }
        assert_eq!(beside_a_text(name, png, false), counted, "{name}");
    }
    let folder = Folder::new();
    for (name, content) in [("a.html", &png[..]), ("b.html", b"%PDF-1.4\n1 0 obj")] {
        let path = folder.write(name, content);
        let error = outcome(&args(Format::Files, &[path]), b"", false).unwrap_err();
        assert!(error.ends_with(": skipped 1 binary file"), "{error}");
    }
    let path = folder.write("c.html", b"%PDF-1.4\n1 0 obj");
    let error = outcome(&named(path), b"", false).unwrap_err();
    assert!(
        error.ends_with("c.html looks like PDF, and would be read as files: write its text first, as `pdftotext` does, or --format files if it is that"),
        "{error}"
    );
}

/// Whether white space may stand before the first bytes that tell.
fn has_leading_space(kind: &str) -> bool {
    matches!(kind, "jsonl" | "array" | "strings" | "page")
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
