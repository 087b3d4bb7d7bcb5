//! The CSV format.

use super::*;
use crate::MAX_RECORD_BYTES;
use crate::csv::{CsvDocuments, CsvFault};
use crate::row_number::RowNumber;
use crate::separator::Separator;

fn fields(text: &str, id: &str) -> InputOptions {
    InputOptions {
        id_field: Some(id.to_owned()),
        text_fields: vec![text.to_owned()],
        ..args(Format::Csv, &[])
    }
}

#[test]
fn a_row_is_a_document_and_columns_are_named_by_the_header() {
    let rows = "\u{feff}\"id\",lang,text\r\n\
                7,en,\"one, \"\"two\"\"\nthree\"\r\n\
                \r\n\
                ,en,\"\"\n\
                c,en,plain";
    let expected = [
        text("7", "one, \"two\"\nthree"),
        text("", ""),
        text("c", "plain"),
    ];
    assert_eq!(read(Format::Csv, rows), expected);
    let input = open_bytes(&fields("lang", "text"), rows.as_bytes()).unwrap();
    assert_eq!(all(input)[2], text("plain", "en"));
    let options = InputOptions {
        fingerprint_field: Some("n".to_owned()),
        ..args(Format::Csv, &[])
    };
    let input = open_bytes(&options, b"n,id\n17,a\n\"18\",b").unwrap();
    assert_eq!(all(input), [print("a", 17), print("b", 18)]);
    assert_eq!(read(Format::Csv, ""), []);
    assert_eq!(read(Format::Csv, "id,text\n"), []);
}

#[test]
fn what_is_wrong_names_the_line_that_the_row_begins_in() {
    for (rows, expected) in [
        (
            "a,b\n1,2\n",
            "1: the header has no field \"id\": it has \"a\", \"b\"; say with --id-field or --id row which to read",
        ),
        (
            "id,text,id\n",
            "1: the header has the field \"id\" more than once",
        ),
        (
            "id,text\n1,\"a\nb\"\n\n2\n",
            "5: the row has 1 column, and the header has 2",
        ),
        (
            "id,text\n1,a,b\n",
            "2: the row has 3 columns, and the header has 2",
        ),
        (
            "id,text\n1,a\n2,\"b\n3,c\n",
            "3: a quoted value does not end: ",
        ),
        ("id,text\n1,\"", "2: a quoted value does not end: "),
        (
            "id,text\n1,\"Screen 15\\\"\"\n2,\"foo\"\n",
            "2: text follows the quote that ends a value: within quotes, CSV has \"\" for a quote, and not \\\"; no row",
        ),
        ("id,text\n0,a\n\n1,\"a\" b\n", "4: text follows the quote"),
        (
            "id,text\r\n1,a\0b\r\n",
            "2: \"a\\0b\" is no text: its byte 2 is NUL",
        ),
    ] {
        let found = refusal(Format::Csv, rows);
        assert!(found.starts_with(&format!("<stdin>:{expected}")), "{found}");
    }
    let skipped = open_bytes(
        &skipping(Format::Csv, &[]),
        b"id,text\n0,a\n1,\"a\"b\n2,c\n",
    )
    .unwrap();
    let read: Vec<_> = skipped.documents().collect();
    assert!(matches!(&*read, [Ok(_), Err(_)]), "{read:?}");
    let found = refusal(Format::Csv, b"id,text\r1,\xFF\r");
    assert!(found.contains("is not valid UTF-8"), "{found}");
}

#[test]
fn bad_rows_are_counted_where_they_are_skipped() {
    let rows = b"id,text\n1\n2,two\n3,\xFF\n4,four\n";
    let (read, documents) = drain(open_bytes(&skipping(Format::Csv, &[]), rows).unwrap());
    assert_eq!(read, [text("2", "two"), text("4", "four")]);
    assert_eq!(documents.skipped().to_string(), "skipped 2 bad rows");
}

#[test]
fn values_stand_between_the_separators_that_are_given() {
    for (separator, rows) in [
        (";", "id;text\na;\"x;y\"\nb;1,5 \"z\"\n"),
        ("|", "id|text\na|x;y\nb|1,5 \"z\"\n"),
        ("tab", "id\ttext\na\tx;y\nb\t1,5 \"z\"\n"),
    ] {
        let given = InputOptions {
            separator: Some(separator.parse().unwrap()),
            ..args(Format::Csv, &[])
        };
        let read = all(open_bytes(&given, rows.as_bytes()).unwrap());
        let expected = [text("a", "x;y"), text("b", "1,5 \"z\"")];
        assert_eq!(read, expected, "{separator}");
        let refused = refusal(Format::Csv, rows);
        let remedy = format!("in it: add --separator '{separator}' if that separates its values");
        assert!(refused.ends_with(&remedy), "{refused}");
    }
    let given = InputOptions {
        separator: Some(Separator::TAB),
        ..args(Format::Csv, &[])
    };
    let refused = message(open_bytes(&given, b"id,text\na,x\n"));
    assert!(refused.contains("add --separator ','"), "{refused}");
    // A quoted value ends before its separator.
    let refused = message(open_bytes(&given, b"id\ttext\na\t\"x\",y\n"));
    assert!(refused.contains("text follows the quote"), "{refused}");
}

#[test]
fn without_a_separator_the_name_of_each_file_says_it() {
    let folder = Folder::new();
    let tabs = folder.write("a.tsv", "id\ttext\na\tx, y\n");
    let commas = folder.write("b.csv", "id,text\nb,z\n");
    let options = args(Format::Csv, &[tabs.clone(), commas.clone()]);
    let read = all(open_bytes(&options, b"").unwrap());
    assert_eq!(read, [text("a", "x, y"), text("b", "z")]);
    let given = InputOptions {
        separator: Some(Separator::COMMA),
        ..args(Format::Csv, &[commas, tabs])
    };
    let refused = message(open_bytes(&given, b""));
    assert!(refused.contains("a.tsv:1: the header"), "{refused}");
}

/// TB1, I2.
#[test]
fn a_quote_without_end_holds_no_more_than_a_row() {
    let endless = (&b"id,text\n1,\""[..]).chain(std::io::repeat(b'x'));
    let columns = args(Format::Csv, &[]).table_columns();
    let mut documents = CsvDocuments::new(
        "f".into(),
        Box::new(endless),
        Separator::COMMA,
        columns,
        Ids::Any,
        RowNumber::default(),
    );
    let Some(Err(CsvFault::File(error))) = documents.next() else {
        panic!("a document without an end");
    };
    let expected = "f:2: the row takes more than 8388608 bytes: a quote may be missing; no row after it can be read";
    assert_eq!(error.to_string(), expected);
    assert!(documents.next().is_none());
    let held = documents.rows.values.capacity();
    assert!(held <= MAX_RECORD_BYTES + 1, "{held}");
    let commas = ",".repeat(MAX_RECORD_BYTES);
    assert!(refusal(Format::Csv, commas).contains("the row has more than 1048576 values"));
}

/// TB1, I2. A row counts without its line break.
#[test]
fn a_row_at_the_limit_is_read_and_one_over_it_ends_the_file() {
    let longest = "x".repeat(MAX_RECORD_BYTES - 2);
    for end in ["", "\n", "\r", "\r\n"] {
        let rows = format!("id,text\n1,{longest}{end}");
        assert_eq!(read(Format::Csv, &rows), [text("1", &longest)], "{end:?}");
        let quoted = &longest[2..];
        let rows = format!("id,text\n1,\"{quoted}\"{end}");
        assert_eq!(read(Format::Csv, &rows), [text("1", quoted)], "{end:?}");
        for long in [format!("1,{longest}x"), format!("1,\"{quoted}x\"")] {
            let rows = format!("id,text\n0,a\n{long}{end}2,b\n");
            let input = open_bytes(&skipping(Format::Csv, &[]), rows.as_bytes()).unwrap();
            let read: Vec<_> = input.documents().collect();
            let [Ok(_), Err(error)] = read.as_slice() else {
                panic!("{} documents", read.len());
            };
            let start = "<stdin>:3: the row takes more than 8388608 bytes";
            assert!(error.to_string().starts_with(start), "{error}");
        }
    }
}

/// A reader that gives one byte at a time.
struct Slow(Cursor<Vec<u8>>);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(1);
        self.0.read(&mut buffer[..most])
    }
}

/// I5.
#[test]
fn reads_of_any_size_give_the_same_rows() {
    let pieces = [
        "\u{feff}", "id,text", "\n", "\r\n", "\r", "1,a", ",", "\"", "\"\"", "x",
    ];
    let mut random = 1_u64;
    for _ in 0..2000 {
        let mut rows =
            ["id,text\n", "\u{feff}", "\n\u{feff}id,text\n"][random as usize % 3].to_owned();
        for _ in 0..8 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            rows += pieces[(random >> 33) as usize % pieces.len()];
        }
        let seen = |reader: Box<dyn Read + Send>| -> Vec<Result<Document, String>> {
            let columns = args(Format::Csv, &[]).table_columns();
            let (separator, number) = (Separator::COMMA, RowNumber::default());
            let documents =
                CsvDocuments::new("f".into(), reader, separator, columns, Ids::Any, number);
            let told = |fault| match fault {
                CsvFault::Row(error) | CsvFault::File(error) => error.to_string(),
            };
            documents.map(|document| document.map_err(told)).collect()
        };
        let bytes = rows.clone().into_bytes();
        let whole = seen(Box::new(Cursor::new(bytes.clone())));
        assert_eq!(whole, seen(Box::new(Slow(Cursor::new(bytes)))), "{rows:?}");
    }
}

#[test]
fn the_texts_of_several_columns_are_joined_and_fingerprints_may_be_signed() {
    let joined = InputOptions {
        text_fields: vec!["b".to_owned(), "a".to_owned()],
        row_ids: true,
        ..args(Format::Csv, &[])
    };
    let read = crate::parse_bytes(&joined, Needs::CLIENT, b"a,b\nx,y\nz,\n".to_vec());
    assert_eq!(read.unwrap(), [text("1", "y\nx"), text("2", "z")]);
    let signed = InputOptions {
        fingerprint_field: Some("n".to_owned()),
        notation: crate::Notation::Signed,
        ..args(Format::Csv, &[])
    };
    let read = crate::parse_bytes(&signed, Needs::CLIENT, b"id,n\na,-1\nb,5\n".to_vec());
    assert_eq!(read.unwrap(), [print("a", u64::MAX), print("b", 5)]);
}
