//! CSV, held against rows that are read slowly: a byte at a time, by the rules alone.

use proptest::prelude::*;
use simshard_input::{Content, Document, Format, InputOptions, parse_bytes};

use super::splice::{Bytes, spliced};
use super::{AS_READ, MAX_ID_BYTES, assert_printable, assert_within_limits, cases};

const PIECES: [&str; 30] = [
    "id,text\n",
    "id,text\r\n",
    "\"id\",\"text\"\n",
    "text,x,id\r",
    "id,id\n",
    "\u{FEFF}",
    "a,one\n",
    "b,\"one, \"\"two\"\"\nthree\"\r\n",
    "c,\"\"\n",
    ",\n",
    "d,one,more\n",
    "e\n",
    "\n",
    "\r\n",
    "\r",
    ",",
    "\"",
    "\"\"",
    "\"x\"",
    "\"x\"y",
    "x\"y\"",
    "\",\"",
    "\"\n\"",
    " ",
    " \"x\"",
    "\t",
    "\0",
    "é",
    "text",
    "id",
];

fn pieces() -> Vec<Vec<u8>> {
    let mut pieces = PIECES.map(|piece| piece.as_bytes().to_vec()).to_vec();
    // Without a header there is nothing to find.
    for header in &PIECES[..3] {
        pieces.extend(vec![[header.as_bytes(), b"1,a\n"].concat(); 5]);
    }
    pieces.extend([b"\xFF".to_vec(), b"\xC3".to_vec(), vec![b'i'; 1025]]);
    pieces
}

type Row = Vec<Vec<u8>>;

/// The rows, and whether the last value ends, and nothing but a separator or line break follows a quoted one.
fn rows(bytes: &[u8], separator: u8) -> (Vec<Row>, bool) {
    let mut bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut rows = Vec::new();
    loop {
        while let [b'\r' | b'\n', rest @ ..] = bytes {
            bytes = rest;
        }
        if bytes.is_empty() {
            return (rows, true);
        }
        let mut row = vec![Vec::new()];
        let (mut begins, mut quoted, mut closed) = (true, false, false);
        loop {
            let value: &mut Vec<u8> = row.last_mut().unwrap();
            match (quoted, bytes) {
                (true, []) => return (rows, false),
                (true, [b'"', b'"', rest @ ..]) => {
                    value.push(b'"');
                    bytes = rest;
                }
                (true, [b'"', rest @ ..]) => (quoted, closed, bytes) = (false, true, rest),
                (false, [b'"', rest @ ..]) if begins => (quoted, bytes) = (true, rest),
                (false, [] | [b'\r' | b'\n', ..]) => break,
                (false, [byte, rest @ ..]) if *byte == separator => {
                    row.push(Vec::new());
                    (begins, closed, bytes) = (true, false, rest);
                    continue;
                }
                (false, _) if closed => return (rows, false),
                (_, [byte, rest @ ..]) => {
                    value.push(*byte);
                    bytes = rest;
                }
            }
            begins = false;
        }
        rows.push(row);
    }
}

fn text(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok();
    text.filter(|text| !text.contains('\0')).map(str::to_owned)
}

/// The documents of rows, `None` for bad ones; no documents if the header lacks a column or has it twice.
fn documents(rows: &[Row]) -> Option<Vec<Option<Document>>> {
    let Some((header, rows)) = rows.split_first() else {
        return Some(Vec::new());
    };
    let place = |name: &str| {
        let mut places = (0..header.len()).filter(|place| header[*place] == name.as_bytes());
        places.next().filter(|_| places.next().is_none())
    };
    let (id_place, text_place) = (place("id")?, place("text")?);
    let document = |row: &Row| {
        let values = Some(row).filter(|row| row.len() == header.len())?;
        let id = text(&values[id_place]).filter(|id| id.len() <= MAX_ID_BYTES)?;
        let content = Content::Text(text(&values[text_place])?);
        Some(Document { id, content })
    };
    Some(rows.iter().map(document).collect())
}

fn read(bytes: &[u8], separator: u8, skip_bad_lines: bool) -> Option<Vec<Document>> {
    let mut options = InputOptions::walking(Vec::new());
    options.format = Some(Format::Csv);
    options.separator = Some(char::from(separator).to_string().parse().unwrap());
    options.skip_bad_lines = skip_bad_lines;
    let read = parse_bytes(&options, AS_READ, bytes.to_vec());
    read.map_err(|error| assert_printable(&error.to_string()))
        .ok()
}

fn check(bytes: &[u8], separator: u8) {
    let (rows, ends) = rows(bytes, separator);
    let expected = documents(&rows).filter(|_| ends);
    let strict: Option<Vec<_>> = expected.clone().and_then(|all| all.into_iter().collect());
    assert_eq!(read(bytes, separator, false), strict);
    let is_all_bad = |all: &Vec<Option<_>>| !all.is_empty() && all.iter().all(Option::is_none);
    let expected = expected.filter(|all| !is_all_bad(all));
    let good = expected.map(|all| all.into_iter().flatten().collect::<Vec<_>>());
    let found = read(bytes, separator, true);
    assert_eq!(found, good);
    assert_within_limits(&found.unwrap_or_default());
}

#[test]
fn rows_and_bad_rows() {
    let separators = prop_oneof![Just(b','), Just(b'\t'), Just(b';')];
    proptest!(cases(), |(Bytes(mut bytes) in spliced(pieces(), 16), separator in separators)| {
        for byte in &mut bytes {
            if *byte == b',' {
                *byte = separator;
            } else if *byte == separator {
                *byte = b',';
            }
        }
        check(&bytes, separator);
    });
}
