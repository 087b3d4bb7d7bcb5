//! The `hashes` format.

use super::*;
use crate::parts::{self, Parts};
use crate::{Check, Chunk, LineParser, Needs};
use simshard_simhash::TextRecipe;

pub(super) fn parts_of(
    args: &InputOptions,
    sample: Option<u64>,
    stdin: &[u8],
) -> Result<Parts, InputError> {
    let needs = Needs {
        check: Check::AsRead,
        preferred_format: Format::Hashes,
        ..Needs::CLIENT
    };
    let stdin = Box::new(Cursor::new(stdin.to_vec()));
    let input = Input::open_with_stdin(args, needs, stdin)?;
    parts::read(input, TextRecipe::default(), sample, &mut |_| {})
}

fn ids(parts: &Parts) -> Vec<String> {
    let documents = 0..parts.fingerprints.len();
    documents
        .map(|document| parts.id(document).into_owned())
        .collect()
}

fn hashes(parts: &Parts) -> Vec<u64> {
    parts.fingerprints.iter().map(|print| print.0).collect()
}

#[test]
fn a_line_is_a_fingerprint_and_its_number_the_id() {
    let stdin = "\u{FEFF}0\r\n18446744073709551615\n00007\n12345678901234567890";
    assert_eq!(
        read(Format::Hashes, stdin),
        [
            print("1", 0),
            print("2", u64::MAX),
            print("3", 7),
            print("4", 12_345_678_901_234_567_890)
        ]
    );
    let parts = parts_of(&args(Format::Hashes, &[]), None, stdin.as_bytes()).unwrap();
    assert!(!parts.has_ids);
    assert_eq!(hashes(&parts), [0, u64::MAX, 7, 12_345_678_901_234_567_890]);
    assert_eq!(ids(&parts), ["1", "2", "3", "4"]);
}

#[test]
fn a_first_line_of_another_format_is_refused_with_its_name() {
    for (line, format) in [
        ("the quick brown fox", Some("lines")),
        ("3 brown foxes", Some("lines")),
        ("\u{FEFF}été", Some("lines")),
        ("{\"id\": 1, \"text\": \"a\"}", Some("jsonl")),
        (" {", Some("jsonl")),
        ("id\thash", Some("tsv")),
        ("a\t17", Some("tsv")),
        ("", None),
        (" 1", None),
        ("-1", None),
        ("12abc", None),
        ("0x10", None),
        ("c0ffee1234567890", None),
        ("18446744073709551616", None),
        ("1.5e3", None),
    ] {
        let first = refusal(Format::Hashes, format!("{line}\n1\n"));
        let second = refusal(Format::Hashes, format!("1\n{line}\n"));
        let problem = second.strip_prefix("<stdin>:2: ").unwrap();
        let hint = format.map_or(String::new(), |format| {
            format!(": for lines such as this, add --format {format}")
        });
        assert!(!problem.contains("--format"), "{problem}");
        let first = first.replace('\u{FEFF}', "");
        assert_eq!(
            first,
            format!("<stdin>:1: {}{hint}", problem.replace("\\u{feff}", ""))
        );
    }
}

#[test]
fn anything_else_on_a_line_is_refused() {
    let digits_only = "a fingerprint is a decimal number of digits only";
    let nothing = "a fingerprint is a decimal number, found nothing";
    let negative = "one is a number of 0 or more, unless --signed \
                    says that they are in two's complement";
    for (line, shown, reason) in [
        ("", "", nothing),
        (" ", " ", nothing),
        ("-1", "-1", negative),
        ("+1", "+1", digits_only),
        (
            " 12345678901234567890",
            " 12345678901234567890",
            digits_only,
        ),
        (
            "12345678901234567890 ",
            "12345678901234567890 ",
            digits_only,
        ),
        (
            "1234567890123456789\r\r",
            "1234567890123456789\\r",
            digits_only,
        ),
        (
            "12345678901234567890\0",
            "12345678901234567890\\0",
            digits_only,
        ),
        ("1\t2", "1\\t2", digits_only),
        ("0x10", "0x10", digits_only),
        (
            "18446744073709551616",
            "18446744073709551616",
            "a fingerprint is at most 18446744073709551615 (2^64-1)",
        ),
    ] {
        let stdin = format!("1\n{line}\n3\n");
        assert_eq!(
            refusal(Format::Hashes, &stdin),
            format!("<stdin>:2: \"{shown}\" is no fingerprint: {reason}")
        );
        let error = parts_of(&args(Format::Hashes, &[]), None, stdin.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), refusal(Format::Hashes, &stdin));
    }
    assert_eq!(
        refusal(Format::Hashes, b"1\n2\xFF\n"),
        "<stdin>:2: \"2\u{FFFD}\" is no text: its byte 2 is not valid UTF-8"
    );
}

#[test]
fn nothing_is_taken_after_a_bad_line() {
    let args = args(Format::Hashes, &[]);
    let parser = LineParser::new(&args, Needs::CLIENT, Format::Hashes, false).unwrap();
    let lines = "12345678901234567890\n\n12345678901234567890\n12345678901234567890\n";
    let chunk = Chunk::of("x", lines.into());
    let mut taken = 0;
    let outcome = parser.parse_chunk(&chunk, |_| taken += 1);
    assert_eq!((taken, outcome.error.is_some()), (1, true));
}

#[test]
fn a_path_that_tsv_cannot_hold_is_refused_however_a_line_is_read() {
    let folder = Folder::new();
    for line in ["12345678901234567890\n", "1\n", "1\r\n"] {
        let path = folder.write("a\tb", line);
        let several = args(Format::Hashes, &[path.clone(), path]);
        let message = message(open_for_tsv(&several, b""));
        assert!(message.contains("which TSV cannot hold"), "{message}");
    }
}

#[test]
fn ids_are_lines_of_their_files_whatever_is_skipped() {
    let folder = Folder::new();
    let a = folder.write("a", "1\nx\n3\n4\n");
    let b = folder.write("b", "5\n\n\n8\n");
    let parts = parts_of(
        &skipping(Format::Hashes, &[a.clone(), b.clone()]),
        None,
        b"",
    )
    .unwrap();
    let (a, b) = (a.display(), b.display());
    assert_eq!(hashes(&parts), [1, 3, 4, 5, 8]);
    let expected = [(&a, 1), (&a, 3), (&a, 4), (&b, 1), (&b, 4)];
    assert_eq!(
        ids(&parts),
        expected.map(|(path, line)| format!("{path}:{line}"))
    );
    assert_eq!(parts.skipped.bad_lines, 3);
}

#[test]
fn batch_commands_read_hashes_unless_told_otherwise() {
    let unsaid = InputOptions {
        format: None,
        ..args(Format::Hashes, &[])
    };
    let parts = parts_of(&unsaid, None, b"1\n2\n").unwrap();
    assert_eq!(hashes(&parts), [1, 2]);
    let folder = Folder::new();
    let path = folder.write("a.tsv.gz", "a\t1\n");
    let named = InputOptions {
        paths: vec![path],
        ..unsaid
    };
    let parts = parts_of(&named, None, b"").unwrap();
    assert_eq!(parts.id(0), "a");
    assert!(parts.has_ids);
}

#[test]
fn a_sample_is_the_first_documents_and_what_follows_is_not_looked_at() {
    let stdin = b"1\n2\n3\nbad\n";
    let args = args(Format::Hashes, &[]);
    for most in 1..=3 {
        let parts = parts_of(&args, Some(most), stdin).unwrap();
        assert_eq!(hashes(&parts), (1..=most).collect::<Vec<_>>());
    }
    for all in [None, Some(0), Some(4)] {
        assert!(parts_of(&args, all, stdin).is_err(), "{all:?}");
    }
    assert_eq!(hashes(&parts_of(&args, Some(9), b"1\n2").unwrap()), [1, 2]);
}

#[test]
fn parts_hold_the_documents_in_their_order() {
    let lines: String = (0..200_000).map(|line| format!("text {line}\n")).collect();
    let parts = parts_of(&args(Format::Lines, &[]), None, lines.as_bytes()).unwrap();
    let all = read(Format::Lines, &lines);
    let fingerprints = &parts.fingerprints;
    assert_eq!(fingerprints.len(), all.len());
    assert!(parts.has_ids);
    for (document, read) in all.iter().enumerate() {
        assert_eq!(parts.id(document), read.id);
        let Content::Text(text) = &read.content else {
            panic!("a line is a text");
        };
        assert_eq!(
            Some(fingerprints[document]),
            TextRecipe::default().fingerprint(text)
        );
    }
}

/// Lines enough for several waves of batches.
fn many_lines() -> Vec<String> {
    let hash = |line: u64| line.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string();
    (0..600_000).map(hash).collect()
}

#[test]
fn many_lines_keep_their_order() {
    let lines = many_lines();
    let stdin = lines.join("\n");
    let parts = parts_of(&args(Format::Hashes, &[]), None, stdin.as_bytes()).unwrap();
    let read: Vec<String> = hashes(&parts).iter().map(u64::to_string).collect();
    assert!(read == lines);
    assert_eq!(parts.id(599_999), "600000");
}

#[test]
fn the_first_bad_line_of_many_is_reported() {
    let mut lines = many_lines();
    for bad in [599_999, 323_456, 350_000] {
        lines[bad] = format!("bad {bad}");
    }
    let stdin = lines.join("\n");
    let args = args(Format::Hashes, &[]);
    let error = parts_of(&args, None, stdin.as_bytes()).unwrap_err();
    let expected = "<stdin>:323457: \"bad 323456\" is no fingerprint: ";
    assert!(error.to_string().starts_with(expected), "{error}");
    let sampled = parts_of(&args, Some(323_456), stdin.as_bytes()).unwrap();
    assert_eq!(sampled.fingerprints.len(), 323_456);
}
