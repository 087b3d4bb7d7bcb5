//! Arrow, damaged: its messages, their lengths, and what they say of their bodies.

use std::io::Cursor;

use proptest::prelude::*;
use proptest::sample::select;
use simshard_input::Ids;
use simshard_input::arrow::{ArrowDocuments, ArrowError};
use simshard_input::{ContentColumn, TableColumns};

use super::splice::{Bytes, damaged};
use super::{assert_printable, assert_within_limits, cases};

const FILES: [&[u8]; 4] = [
    include_bytes!("../../src/arrow/tests/data/stream.arrow"),
    include_bytes!("../../src/arrow/tests/data/views.arrow"),
    include_bytes!("../../src/arrow/tests/data/zstd.arrow"),
    include_bytes!("../../src/arrow/tests/data/delta.arrow"),
];

/// Numbers at limits, as lengths and places have them, and the marks of messages.
fn pieces() -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = [0_i64, 1, -1, 8, 64, i64::MAX, i64::MIN, 1 << 31, 1 << 40]
        .iter()
        .map(|number| number.to_le_bytes().to_vec())
        .collect();
    pieces.extend([vec![0xFF; 4], vec![0; 4], b"ARROW1\0\0".to_vec()]);
    pieces.extend(FILES.map(|file| file[..file.len() / 2].to_vec()));
    pieces
}

/// A stream whose schema has one struct at each of its levels, and names it twice.
fn shared_tables(levels: usize) -> Vec<u8> {
    const COPIES: u32 = 2;
    let mut bytes = Vec::new();
    let mut put = |numbers: &[u32]| {
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    };
    let halves = |low: u32, high: u32| low | high << 16;
    // A message: its slots, its table of a version, a kind and a header.
    put(&[16, halves(12, 12), halves(4, 6), 8, 12, halves(4, 1), 12]);
    // A schema, and its vector of fields.
    put(&[halves(8, 8), halves(0, 4), 8, 4, COPIES]);
    put(&[4 * COPIES + 16, 4 * COPIES + 12]);
    for level in 1..=levels {
        // A field: its slots, its table of a kind and children, and their vector.
        put(&[halves(16, 12), 0, halves(4, 0), halves(0, 8)]);
        let count = if level < levels { COPIES } else { 0 };
        put(&[16, 13, 4, count, 4 * COPIES + 16, 4 * COPIES + 12]);
    }
    let length = u32::try_from(bytes.len()).unwrap();
    [&[0xFF; 4][..], &length.to_le_bytes(), &bytes].concat()
}

fn open(bytes: &[u8]) -> Result<ArrowDocuments, ArrowError> {
    let columns = TableColumns {
        id: Some("id".to_owned()),
        content: ContentColumn::Texts(vec!["text".to_owned()]),
        rank: None,
    };
    let from = Box::new(Cursor::new(bytes.to_vec()));
    ArrowDocuments::open("a.arrow".to_owned(), from, &columns, Ids::Any)
}

fn check(bytes: &[u8]) {
    let documents = match open(bytes) {
        Ok(documents) => documents,
        Err(error) => return assert_printable(&error.to_string()),
    };
    let mut read = Vec::new();
    let mut ended = false;
    // A batch may say that it has many rows, each of which is a bad one.
    for result in documents.take(1 << 12) {
        assert!(!ended, "something follows the end");
        match result {
            Ok(document) => read.push(document),
            Err(error) => {
                ended = !error.is_bad_row();
                assert_printable(&error.to_string());
            }
        }
    }
    assert_within_limits(&read);
}

#[test]
fn fields_that_share_their_tables_are_no_more_than_their_bytes_could_hold() {
    for (levels, expected) in [
        (1, "has no column \"id\": its columns are \"\", \"\";"),
        (40, "a message leads out of its bytes"),
    ] {
        let error = open(&shared_tables(levels)).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn damaged_files() {
    let mut files = FILES.map(<[u8]>::to_vec).to_vec();
    files.push(shared_tables(40));
    let whole = select(files);
    proptest!(cases(), |(Bytes(bytes) in damaged(whole, pieces()))| check(&bytes));
}
