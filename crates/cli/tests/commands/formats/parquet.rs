//! Parquet in and out, with tables written and read by the library itself.

use std::fs::{self, File};

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::RowAccessor;
use parquet::schema::parser::parse_message_type;
use simshard_testkit::run;

use super::{FOX, Folder, Member, fingerprint, members, succeed};
use crate::{BINARY, log, said};

/// A row: a number, an address and a text, where there is one.
type Row = (i64, &'static str, Option<&'static str>);

/// A table with a row group for each of these.
fn table(groups: &[&[Row]]) -> Vec<u8> {
    let schema = "message pages { required int64 number; required binary url (STRING);
                                  optional binary body (STRING); }";
    let schema = parse_message_type(schema).unwrap().into();
    let properties = WriterProperties::builder().build().into();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let numbers: Vec<i64> = rows.iter().map(|row| row.0).collect();
        let urls: Vec<ByteArray> = rows.iter().map(|row| row.1.into()).collect();
        let texts: Vec<ByteArray> = rows.iter().filter_map(|row| Some(row.2?.into())).collect();
        let present: Vec<i16> = rows.iter().map(|row| row.2.is_some().into()).collect();
        write::<Int64Type>(group.next_column().unwrap(), &numbers, None);
        write::<ByteArrayType>(group.next_column().unwrap(), &urls, None);
        write::<ByteArrayType>(group.next_column().unwrap(), &texts, Some(&present));
        group.close().unwrap();
    }
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

/// The names of a table's columns.
pub(super) fn columns(path: &str) -> Vec<String> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let names = schema.columns().iter();
    names.map(|column| column.name().to_owned()).collect()
}

/// The members in a table of clusters, in their order.
pub(super) fn cluster_table(path: &str) -> Vec<Member> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let member = |row: parquet::record::Row| {
        (
            row.get_string(0).unwrap().clone(),
            row.get_ulong(1).unwrap(),
            row.get_ulong(2).unwrap(),
        )
    };
    rows.map(member).collect()
}

const FIELDS: [&str; 4] = ["--id-field", "url", "--text-field", "body"];

#[test]
fn tables_are_clustered_into_a_table() {
    let folder = Folder::new();
    let first: &[Row] = &[
        (1, "b", Some(FOX)),
        (2, "c", Some("other words altogether")),
    ];
    folder.write("1.parquet", &table(&[first, &[(3, "d", Some(FOX))]]));
    folder.write("2.parquet", &table(&[&[(4, "a", Some(FOX))]]));
    let (pattern, out) = (folder.path("[0-9].parquet"), folder.path("out.parquet"));
    let args = [&["find-clusters", &pattern, "-o", &out], &FIELDS[..]].concat();
    assert_eq!(succeed(&args, b""), "");
    let fox = fingerprint(FOX);
    let expected = ["b", "d", "a"].map(|id| (id.to_owned(), fox, fox));
    assert_eq!(cluster_table(&out), expected);

    // What was found can be read again: as documents that carry fingerprints.
    let again = folder.path("again.tsv");
    let fields = ["--fingerprint-field", "fingerprint", "-o", &again];
    succeed(&[&["find-clusters", &out], &fields[..]].concat(), b"");
    assert_eq!(members(&fs::read_to_string(again).unwrap()), expected);
}

#[test]
fn a_table_on_standard_input_is_read() {
    let bytes = table(&[&[(7, "a", Some(FOX)), (8, "b", Some("a dog"))]]);
    let args = ["hash", "--format", "parquet", "--id_column", "number"];
    let found = succeed(&[&args[..], &["--text_column", "body"]].concat(), &bytes);
    let expected = format!("7\t{}\n8\t{}\n", fingerprint(FOX), fingerprint("a dog"));
    assert_eq!(found, format!("id\thash\n{expected}"));
}

#[test]
fn a_table_that_cannot_be_used_is_told_by_file_row_and_column() {
    let folder = Folder::new();
    let whole = table(&[&[(1, "a", Some(FOX))], &[(2, "b\tc", Some(FOX))]]);
    let path = folder.write("pages.parquet", &whole);
    let with = |fields: [&'static str; 4]| [&[path.as_str()], &fields[..]].concat();
    for (fields, expected) in [
        (FIELDS, "pages.parquet: row 2: the id \"b\\tc\" has a tab"),
        (
            ["--id-field", "url", "--text-field", "text"],
            "pages.parquet has no column \"text\": its columns are \"number\", \"url\", \"body\"",
        ),
        (
            ["--id-field", "url", "--text-field", "number"],
            "pages.parquet: the column \"number\" is INT64: expected strings",
        ),
        (
            ["--id-field", "number", "--fingerprint-field", "url"],
            "pages.parquet: row 1: \"a\" is no fingerprint",
        ),
        (
            ["--id-field", "url", "--features-field", "body"],
            "--features-field belongs to --format jsonl, but the format is parquet",
        ),
        (
            ["--text-field", "body", "--recipe", "features"],
            "recipe features takes no texts",
        ),
        (
            ["--text-field", "body", "--distance", "3"],
            "pages.parquet has no column \"id\"",
        ),
    ] {
        folder.refuse(&with(fields), b"", expected);
    }
    let cut = folder.write("cut.parquet", &whole[..whole.len() - 10]);
    let args = [&[cut.as_str()], &FIELDS[..]].concat();
    folder.refuse(&args, b"", "cut.parquet is no whole Parquet file: ");
    let stdin = [&["--format", "parquet"], &FIELDS[..]].concat();
    folder.refuse(&stdin, b"", "<stdin> is no whole Parquet file: ");
    folder.refuse(&stdin, &whole, "<stdin>: row 2: the id \"b\\tc\" has a tab");
}

#[test]
fn bad_rows_are_counted_where_they_may_be_skipped() {
    let bytes = table(&[
        &[(1, "a", None), (2, "b", Some(FOX))],
        &[(3, "c\td", Some(FOX))],
    ]);
    let args = ["hash", "--format", "parquet", "--skip-bad-lines"];
    let output = run(BINARY, [&args[..], &FIELDS].concat(), bytes);
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    let expected = format!("id\thash\nb\t{}\n", fingerprint(FOX));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let expected = "skipped 1 bad row, 1 unhashable text\n  <stdin>: row 3: the id \"c\\td\" has a tab, a line break \
                    or a NUL byte, which TSV cannot hold\n";
    assert_eq!(said(&output), expected);
}
