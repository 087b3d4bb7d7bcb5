//! Parquet among the formats: its documents are the rows of its tables.

use std::io::Write;

use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::parser::parse_message_type;
use flate2::Compression as Level;
use flate2::write::GzEncoder;

use super::checking::make_pipe;
use super::html::{ALL, MAIN, PAGE};
use super::*;
use crate::{Carries, Check};

/// The rows of a table: an id, a text where there is one, and a fingerprint.
type Row<'a> = (&'a str, Option<&'a str>, u64);

pub(crate) fn table(rows: &[Row<'_>]) -> Vec<u8> {
    let schema = "message m { required binary id (STRING); optional binary text (STRING);
                              required int64 print (INTEGER(64, false)); }";
    let schema = parse_message_type(schema).unwrap().into();
    let properties = WriterProperties::builder().build().into();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let ids: Vec<ByteArray> = rows.iter().map(|row| row.0.into()).collect();
    let texts: Vec<ByteArray> = rows.iter().filter_map(|row| Some(row.1?.into())).collect();
    let present: Vec<i16> = rows.iter().map(|row| row.1.is_some().into()).collect();
    let prints: Vec<i64> = rows.iter().map(|row| row.2 as i64).collect();
    write::<ByteArrayType>(group.next_column().unwrap(), &ids, None);
    write::<ByteArrayType>(group.next_column().unwrap(), &texts, Some(&present));
    write::<Int64Type>(group.next_column().unwrap(), &prints, None);
    group.close().unwrap();
    writer.into_inner().unwrap()
}

fn write<T: DataType>(
    column: Option<SerializedColumnWriter<'_>>,
    values: &[T::T],
    present: Option<&[i16]>,
) {
    let mut column = column.unwrap();
    let writer = column.typed::<T>();
    writer.write_batch(values, present, None).unwrap();
    column.close().unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn documents_are_the_rows_of_all_sources_compressed_or_not() {
    let folder = Folder::new();
    let paths = [
        folder.write(
            "a.parquet",
            table(&[("a", Some("one"), 1), ("b", Some(""), 2)]),
        ),
        PathBuf::from("-"),
        folder.write("c.parquet.gz", gzip(&table(&[("c", Some("three"), 3)]))),
    ];
    let expected = [
        text("a", "one"),
        text("b", ""),
        text("s", "in"),
        text("c", "three"),
    ];
    for stdin in [
        table(&[("s", Some("in"), 4)]),
        gzip(&table(&[("s", Some("in"), 4)])),
    ] {
        let input = open_bytes(&args(Format::Parquet, &paths), &stdin).unwrap();
        assert_eq!(input.document_count(), Some(4));
        assert_eq!(input.carries(), Carries::Texts);
        assert_eq!(all(input), expected);
        let unchecked = open_bytes(&skipping(Format::Parquet, &paths), &stdin).unwrap();
        assert_eq!(unchecked.document_count(), None);
        assert_eq!(all(unchecked), expected);
    }
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_copied() {
    for make in [args, skipping] {
        let folder = Folder::new();
        let path = folder.path().join("pipe");
        make_pipe(&path);
        let writer = std::thread::spawn({
            let path = path.clone();
            move || fs::write(path, table(&[("a", Some("one"), 1)])).unwrap()
        });
        let input = open_bytes(&make(Format::Parquet, &[path]), b"").unwrap();
        assert_eq!(all(input), [text("a", "one")]);
        writer.join().unwrap();
    }
}

#[test]
fn the_fields_name_the_columns() {
    let folder = Folder::new();
    let path = folder.write("a.parquet", table(&[("a", Some("one"), u64::MAX)]));
    let prints = InputOptions {
        fingerprint_field: Some("print".to_owned()),
        ..args(Format::Parquet, std::slice::from_ref(&path))
    };
    let input = open_bytes(&prints, b"").unwrap();
    assert_eq!(input.carries(), Carries::Fingerprints);
    assert_eq!(all(input), [print("a", u64::MAX)]);
    let others = InputOptions {
        id_field: Some("print".to_owned()),
        text_fields: vec!["id".to_owned()],
        ..args(Format::Parquet, &[path])
    };
    let input = open_bytes(&others, b"").unwrap();
    assert_eq!(all(input), [text("18446744073709551615", "a")]);
}

/// I1.
#[test]
fn a_bad_row_at_the_end_of_the_last_source_stops_before_the_first_document() {
    let folder = Folder::new();
    let good = folder.write("good.parquet", table(&[("a", Some("one"), 1)]));
    let long = "c".repeat(1025);
    let bad = folder.write(
        "bad.parquet",
        table(&[("b", Some("two"), 2), (&long, Some("three"), 3)]),
    );
    let paths = [good, bad.clone()];
    assert_eq!(
        message(open_bytes(&args(Format::Parquet, &paths), b"")),
        format!(
            "{}: row 2: the id \"{}…\" takes 1025 bytes: at most 1024 are allowed",
            bad.display(),
            &long[..60]
        )
    );
    let input = open_bytes(&skipping(Format::Parquet, &paths), b"").unwrap();
    let (read, documents) = drain(input);
    assert_eq!(read, [text("a", "one"), text("b", "two")]);
    assert_eq!(documents.skipped().to_string(), "skipped 1 bad row");
}

#[test]
fn a_command_that_checks_as_it_reads_gets_the_rows_before_a_bad_one() {
    let needs = Needs {
        check: Check::AsRead,
        ..Needs::CLIENT
    };
    let long = "b".repeat(1025);
    let rows = [("a", Some("one"), 1), (&*long, Some("two"), 2)];
    let stdin = Cursor::new(table(&rows));
    let args = args(Format::Parquet, &[]);
    let input = Input::open_with_stdin(&args, needs, Box::new(stdin)).unwrap();
    let results: Vec<_> = input.documents().collect();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0].as_ref().unwrap(), &text("a", "one"));
    let error = results[1].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("<stdin>: row 2: the id"), "{error}");
}

#[test]
fn what_is_no_whole_file_is_refused_even_when_bad_rows_are_skipped() {
    let whole = table(&[("a", Some("one"), 1)]);
    let zipped = gzip(&whole);
    let folder = Folder::new();
    for (name, content, expected) in [
        (
            "cut",
            &whole[..whole.len() - 9],
            " is no whole Parquet file: ",
        ),
        ("text", b"{\"id\": 1}\n", " is no whole Parquet file: "),
        (
            "zip",
            &zipped[..zipped.len() - 9],
            ": the gzip data ends too early",
        ),
    ] {
        let path = folder.write(name, content);
        for make in [args, skipping] {
            let input = open_bytes(&make(Format::Parquet, std::slice::from_ref(&path)), b"");
            let read = input.and_then(|input| input.documents().collect::<Result<Vec<_>, _>>());
            let message = read.unwrap_err().to_string();
            let expected = format!("{}{expected}", path.display());
            assert!(message.contains(&expected), "{message}");
        }
    }
}

#[test]
fn a_file_that_changes_after_the_check_is_still_reported() {
    let folder = Folder::new();
    let path = folder.write("a.parquet", table(&[("a", Some("one"), 1)]));
    let input = open_bytes(&args(Format::Parquet, &[path]), b"").unwrap();
    folder.write("a.parquet", "something else");
    let results: Vec<_> = input.documents().collect();
    assert!(results.len() == 1 && results[0].is_err(), "{results:?}");
}

#[test]
fn texts_of_rows_are_pages_only_where_the_caller_says_so() {
    let rows = table(&[("a", Some(PAGE), 1)]);
    for (html, expected) in [
        (None, PAGE),
        (Some(crate::Html::Main), MAIN),
        (Some(crate::Html::All), ALL),
    ] {
        let options = InputOptions {
            html,
            ..args(Format::Parquet, &[])
        };
        assert_eq!(
            all(open_bytes(&options, &rows).unwrap()),
            [text("a", expected)]
        );
    }
}

#[test]
fn a_folder_of_tables_alone_needs_no_format() {
    let folder = Folder::new();
    folder.write("set/b.parquet", table(&[("b", Some("two"), 2)]));
    folder.write("set/a/a.parquet", table(&[("a", Some("one"), 1)]));
    let options = InputOptions {
        format: None,
        ..args(Format::Files, &[folder.path()])
    };
    let input = open_bytes(&options, b"").unwrap();
    assert_eq!(all(input), [text("a", "one"), text("b", "two")]);
    // What only its name calls Parquet is no document either.
    folder.write("set/c.parquet", "one two");
    let error = message(open_bytes(&options, b""));
    assert!(
        error.contains("c.parquet is no whole Parquet file"),
        "{error}"
    );
}
