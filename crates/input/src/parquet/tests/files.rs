//! Files as a whole: columns that are not there, empty files, files from a stream.

use super::*;

#[test]
fn a_missing_column_is_an_error_that_names_those_that_there_are() {
    let schema = "message m { required int32 key; required group meta { required binary text; } }";
    let file = file_of(schema, plain(), &[vec![Int32(some(&[1])), texts(&["t"])]]);
    let expected = "a.parquet has no column \"id\": its columns are \"key\", \"meta.text\"; say with \
                    --id-field or --id row which to read";
    assert_eq!(refusal(&file, &text_columns()), expected);
    for (columns, name, flags) in [
        (fingerprint_columns(), "fingerprint", "--fingerprint-field"),
        (
            text_columns(),
            "text",
            "--text-field or --fingerprint-field",
        ),
    ] {
        let id = Some("key".to_owned());
        let expected = format!(
            "a.parquet has no column \"{name}\": its columns are \"key\", \"meta.text\"; say with \
             {flags} which to read"
        );
        assert_eq!(refusal(&file, &TableColumns { id, ..columns }), expected);
    }
}

#[test]
fn a_column_that_is_there_twice_is_an_error_where_it_is_asked_for() {
    let twice = "required binary body; required binary body;";
    let schema = format!("message m {{ required int32 id; required binary text; {twice} }}");
    let row = [
        Int32(some(&[1])),
        texts(&["t"]),
        texts(&["a"]),
        texts(&["b"]),
    ];
    let file = file_of(&schema, plain(), &[row.into()]);
    assert_eq!(read(&file, &text_columns()).len(), 1);
    let text_is = |name: &str| TableColumns {
        content: ContentColumn::Texts(vec![name.to_owned()]),
        ..text_columns()
    };
    let expected = "a.parquet has the column \"body\" more than once: write it with other names";
    assert_eq!(refusal(&file, &text_is("body")), expected);
}

#[test]
fn of_many_columns_only_some_are_named() {
    let columns: String = (0..30).map(|n| format!("required int32 c{n};")).collect();
    let file = file_of(&format!("message m {{ {columns} }}"), plain(), &[]);
    let message = refusal(&file, &text_columns());
    assert!(
        message.ends_with(
            "\"c18\", \"c19\" and 10 more; say with --id-field or --id row which to read"
        ),
        "{message}"
    );
}

#[test]
fn a_column_of_the_wrong_type_is_an_error_that_names_its_type() {
    let rest = "required binary text;";
    for (column, found) in [
        ("required double id;", "DOUBLE"),
        ("required int96 id;", "INT96"),
        ("required int32 id (DATE);", "INT32 (DATE)"),
        (
            "required int64 id (TIMESTAMP_MILLIS);",
            "INT64 (TIMESTAMP_MILLIS)",
        ),
        (
            "required fixed_len_byte_array (16) id (UUID);",
            "FIXED_LEN_BYTE_ARRAY",
        ),
        ("required binary id (BSON);", "BYTE_ARRAY (BSON)"),
        ("repeated int32 id;", "a list of INT32"),
    ] {
        let file = file_of(&format!("message m {{ {column} {rest} }}"), plain(), &[]);
        let message = refusal(&file, &text_columns());
        let start = format!("a.parquet: the column \"id\" is {found}");
        assert!(message.starts_with(&start), "{message}");
        assert!(
            message.ends_with(": expected strings or integers"),
            "{message}"
        );
    }
}

#[test]
fn a_text_is_no_integer() {
    let file = file_of(
        "message m { required int32 id; required int64 text; }",
        plain(),
        &[],
    );
    let expected = "a.parquet: the column \"text\" is INT64: expected strings";
    assert_eq!(refusal(&file, &text_columns()), expected);
}

#[test]
fn a_file_without_rows_has_no_documents() {
    for groups in [vec![], vec![vec![texts(&[]), texts(&[])]]] {
        let file = file_of(TEXT_SCHEMA, plain(), &groups);
        assert_eq!(read(&file, &text_columns()), []);
    }
}

#[test]
fn an_empty_row_group_is_passed_over() {
    let groups = [
        vec![texts(&[]), texts(&[])],
        vec![texts(&["a"]), texts(&["t"])],
    ];
    let file = file_of(TEXT_SCHEMA, plain(), &groups);
    assert_eq!(read(&file, &text_columns()), [text("a", "t")]);
}

#[test]
fn what_is_no_parquet_is_an_error_that_names_the_file() {
    for bytes in [b"".as_slice(), b"PAR1", b"{\"id\": 1}\n", &[0; 4096]] {
        let message = refusal(bytes, &text_columns());
        assert!(
            message.starts_with("a.parquet is no whole Parquet file: "),
            "{message}"
        );
    }
}

#[test]
fn a_compression_that_is_left_out_is_named_with_those_that_are_not() {
    let properties = plain().set_compression(Compression::SNAPPY);
    let file = file_of(
        TEXT_SCHEMA,
        properties,
        &[vec![texts(&["a"]), texts(&["t"])]],
    );
    // The numbers of Snappy and Brotli, as the file's end holds them; the first column's is one of
    // the bytes tried.
    let (snappy, brotli) = (2, 8);
    let expected = "brotli compression is not supported: write the file with snappy, zstd, gzip \
                    or lz4";
    let told = (0..file.len()).filter(|at| file[*at] == snappy).any(|at| {
        let mut other = file.clone();
        other[at] = brotli;
        let error = match open(&other, &text_columns()) {
            Ok(documents) => documents.filter_map(Result::err).next(),
            Err(error) => Some(error),
        };
        error.is_some_and(|error| error.to_string().ends_with(expected))
    });
    assert!(told);
}
