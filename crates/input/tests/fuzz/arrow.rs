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

fn open(bytes: &[u8]) -> Result<ArrowDocuments, ArrowError> {
    let columns = TableColumns {
        id: Some("id".to_owned()),
        content: ContentColumn::Texts(vec!["text".to_owned()]),
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
fn damaged_files() {
    let whole = select(&FILES[..]).prop_map(<[u8]>::to_vec);
    proptest!(cases(), |(Bytes(bytes) in damaged(whole, pieces()))| check(&bytes));
}
