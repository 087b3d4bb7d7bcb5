//! The formats made of lines, strictly and around bad lines, and the numbers in them.

use proptest::prelude::*;
use simshard_input::{
    Chunk, ChunkOutcome, Content, Document, InputError, LineParser, RecordContent, Skipped,
    parse_decimal,
};

use super::splice::{Bytes, spliced, spliced_text};
use super::{AS_READ, Kind, assert_printable, assert_within_limits, cases, slowly};

/// What every format may meet.
const ANYWHERE: [&str; 16] = [
    "\n", "\n", "\n", "\r\n", "\n\n", "\r", "\t", " ", "\u{FEFF}", "\0", "\u{a0}", "\u{2028}", "é",
    "😀", "\\", "\"",
];

const NUMBERS: [&str; 14] = [
    "0",
    "7",
    "00",
    "-1",
    "+1",
    "1.5",
    "17293822569102704640",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999",
    "1234567890123456",
    "17293822569102704640\n",
    "9223372036854775807\n",
    "12345678901234567\n",
];

const TSV: [&str; 8] = [
    "id\thash\n",
    "a\t17\n",
    "\t17293822569102704640\n",
    "b\t18446744073709551615\r\n",
    "a\t1\t2\n",
    "id\t",
    "\t",
    "hash",
];

const JSON: [&str; 46] = [
    "{\"id\":\"a\",\"text\":\"one\",\"hash\":17,\"features\":[17,[18,2]]}\n",
    "{\"features\":{\"17\":2},\"hash\":\"18446744073709551615\",\"text\":\"é\\n\",\"id\":7}\n",
    "{\"id\":\"b\",\"x\":[{\"id\":1}],\"text\":\"\",\"hash\":0,\"features\":[]}\r\n",
    "{\"id\":1.50,\"text\":\"\\ud83d\\ude00\",\"hash\":1e3}\n",
    "{\"id\":\"c\",",
    "\"id\":",
    "\"id\":\"x\",",
    "\"i\\u0064\":",
    "\"text\":",
    "\"text\":\"y\"",
    "\"te\\u0078t\":",
    "\"hash\":",
    "\"hash\":18446744073709551616",
    "\"features\":",
    "\"features\":[[1,2],\"3\",4]",
    "\"features\":{\"1\":18446744073709551615,\"2\":1}",
    "{",
    "}",
    "}\n",
    "{}",
    "[",
    "]",
    "[[[[",
    "{\"a\":{\"a\":",
    ":",
    ",",
    "\"",
    "\"\"",
    "\"x\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\\u00",
    "\\uFFFF",
    "\"\\q\"",
    "\"\u{1}\"",
    "null",
    "true",
    "nul",
    "-0",
    "-",
    "1e999",
    "1E-5",
    "0.5",
    "007",
    " ",
    "/**/",
];

fn pieces(kind: Kind) -> Vec<Vec<u8>> {
    let own = match kind {
        Kind::Hashes => &NUMBERS[..],
        Kind::Lines => &["word", "two words\n", "  \n"][..],
        Kind::Tsv => &[&TSV[..], &NUMBERS].concat(),
        Kind::JsonTexts | Kind::JsonFingerprints | Kind::JsonFeatures => &JSON[..],
    };
    let texts = [own, own, &ANYWHERE].concat();
    let mut pieces: Vec<_> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    for broken in [&b"\xFF"[..], b"\xC3", b"\xED\xA0\x80", b"\xF0\x9F"] {
        pieces.push(broken.to_vec());
    }
    // An id that is too long.
    pieces.push(vec![b'i'; 1025]);
    pieces
}

/// What a chunk of whole lines holds.
pub(super) fn parse(
    kind: Kind,
    skip_bad_lines: bool,
    bytes: &[u8],
) -> (Vec<Document>, ChunkOutcome) {
    let args = kind.options(skip_bad_lines);
    let parser = LineParser::new(&args, AS_READ, args.format.unwrap(), false).unwrap();
    let chunk = Chunk::of("<stdin>", bytes.to_vec());
    let mut documents = Vec::new();
    let outcome = parser.parse_chunk(&chunk, |record| {
        let content = match &record.content {
            RecordContent::Text(text) => Content::Text(text.to_string()),
            RecordContent::Fingerprint(fingerprint) => Content::Fingerprint(*fingerprint),
        };
        let id = record.id.to_string();
        documents.push(Document { id, content });
    });
    (documents, outcome)
}

fn check_lines(kind: Kind, bytes: &[u8]) {
    let lines = slowly::line_count(bytes);
    let (strict, stopped) = parse(kind, false, bytes);
    let (all, passed) = parse(kind, true, bytes);
    assert_within_limits(&all);

    let bad_lines = passed.skipped.bad_lines;
    assert!(passed.error.is_none());
    assert!(all.len() as u64 + bad_lines <= lines);
    assert_eq!(stopped.skipped, Skipped::default());
    match stopped.error {
        None => {
            assert_eq!(strict, all);
            assert_eq!(bad_lines, 0);
        }
        Some(InputError::BadLine {
            line, ref problem, ..
        }) => {
            assert!((1..=lines).contains(&line));
            assert!(bad_lines > 0);
            assert!((strict.len() as u64) < line);
            assert_eq!(strict, all[..strict.len()]);
            assert_printable(&problem.to_string());
        }
        Some(error) => panic!("{error}"),
    }
    check_against_the_rules(kind, &all, bytes);
}

/// Holds what was read against the same lines read slowly.
fn check_against_the_rules(kind: Kind, all: &[Document], bytes: &[u8]) {
    let expected = slowly::documents(kind, bytes);
    if matches!(kind, Kind::Hashes | Kind::Lines | Kind::Tsv) {
        assert_eq!(all, expected);
        return;
    }
    let mut rest = all.iter();
    for document in &expected {
        assert!(
            rest.any(|found| found == document),
            "{document:?} is missing"
        );
    }
}

fn run(kind: Kind) {
    proptest!(cases(), |(Bytes(bytes) in spliced(pieces(kind), 16))| check_lines(kind, &bytes));
}

#[test]
fn hashes() {
    run(Kind::Hashes);
}

#[test]
fn lines() {
    run(Kind::Lines);
}

#[test]
fn tsv() {
    run(Kind::Tsv);
}

#[test]
fn json_texts() {
    run(Kind::JsonTexts);
}

#[test]
fn json_fingerprints() {
    run(Kind::JsonFingerprints);
}

#[test]
fn json_features() {
    run(Kind::JsonFeatures);
}

#[test]
fn decimals() {
    let digits = &[
        "0",
        "00000000",
        "7",
        "99999999",
        "1844674407370955161",
        "+",
        "-",
        "٣",
    ];
    proptest!(cases(), |(text in spliced_text(digits, 6))| {
        let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let expected = text.parse::<u64>().ok().filter(|_| are_digits);
        assert_eq!(parse_decimal(text.as_bytes()), expected);
    });
}
