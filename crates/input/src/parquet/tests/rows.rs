//! From rows to documents: types, nulls, limits.

use super::*;
use crate::{MAX_ID_BYTES, MAX_RECORD_BYTES};

#[test]
fn texts_are_read_in_every_encoding_and_compression() {
    for (way, properties) in ways() {
        let groups = [
            vec![texts(&["a", "b"]), texts(&["first", "second"])],
            vec![texts(&["c"]), texts(&["päron"])],
        ];
        let file = file_of(TEXT_SCHEMA, properties, &groups);
        let expected = [text("a", "first"), text("b", "second"), text("c", "päron")];
        assert_eq!(read(&file, &text_columns()), expected, "{way}");
    }
}

#[test]
fn rows_without_ids_can_be_called_by_their_numbers() {
    let groups = [
        vec![texts(&["a", "b"]), texts(&["first", "second"])],
        vec![texts(&["c"]), texts(&["third"])],
    ];
    let file = file_of(TEXT_SCHEMA, plain(), &groups);
    let columns = TableColumns {
        id: None,
        ..text_columns()
    };
    let expected = [text("1", "first"), text("2", "second"), text("3", "third")];
    assert_eq!(read(&file, &columns), expected);
}

#[test]
fn more_rows_than_a_batch_are_read_in_order() {
    let schema =
        "message m { required int64 id; optional int64 fingerprint (INTEGER(64, false)); }";
    let rows = 3 * super::super::BATCH_ROWS as i64 + 17;
    let ids: Vec<_> = (0..rows).map(Some).collect();
    let file = file_of(
        schema,
        plain(),
        &[
            vec![Int64(ids.clone()), Int64(ids.clone())],
            vec![Int64(ids.clone()), Int64(ids)],
        ],
    );
    let documents = open(&file, &fingerprint_columns()).unwrap();
    let mut count = 0;
    for (index, document) in documents.enumerate() {
        let row = index as u64 % rows as u64;
        assert_eq!(document.unwrap(), print(&row.to_string(), row));
        count += 1;
    }
    assert_eq!(count, 2 * rows);
}

#[test]
fn ids_are_strings_or_integers_of_any_width() {
    let last = "required binary text (STRING);";
    for (column, values, expected) in [
        ("binary id (STRING)", texts(&["å"]), "å"),
        ("binary id", texts(&["plain bytes"]), "plain bytes"),
        ("binary id (UTF8)", texts(&["old mark"]), "old mark"),
        ("binary id (ENUM)", texts(&["RED"]), "RED"),
        ("binary id (JSON)", texts(&["7"]), "7"),
        ("int32 id", Int32(vec![Some(-7)]), "-7"),
        ("int32 id (INTEGER(16, true))", Int32(vec![Some(-7)]), "-7"),
        ("int32 id (UINT_32)", Int32(vec![Some(-1)]), "4294967295"),
        (
            "int64 id",
            Int64(vec![Some(i64::MIN)]),
            "-9223372036854775808",
        ),
        (
            "int64 id (UINT_64)",
            Int64(vec![Some(-1)]),
            "18446744073709551615",
        ),
        (
            "int64 id (INTEGER(64, false))",
            Int64(vec![Some(-2)]),
            "18446744073709551614",
        ),
    ] {
        let schema = format!("message m {{ required {column}; {last} }}");
        let file = file_of(&schema, plain(), &[vec![values, texts(&["t"])]]);
        assert_eq!(
            read(&file, &text_columns()),
            [text(expected, "t")],
            "{column}"
        );
    }
}

#[test]
fn fingerprints_are_integers_or_decimal_strings() {
    let top = 1 << 63;
    for (column, values, expected) in [
        (
            "int64 fingerprint (UINT_64)",
            Int64(vec![Some(i64::MIN)]),
            top,
        ),
        (
            "int64 fingerprint (INTEGER(64, false))",
            Int64(vec![Some(-1)]),
            u64::MAX,
        ),
        ("int64 fingerprint", Int64(vec![Some(i64::MAX)]), top - 1),
        ("int64 fingerprint (INT_64)", Int64(vec![Some(5)]), 5),
        ("int32 fingerprint", Int32(vec![Some(5)]), 5),
        (
            "binary fingerprint (STRING)",
            texts(&["18446744073709551615"]),
            u64::MAX,
        ),
        ("binary fingerprint", texts(&["0"]), 0),
    ] {
        let schema = format!("message m {{ required int32 id; required {column}; }}");
        let file = file_of(&schema, plain(), &[vec![Int32(vec![Some(1)]), values]]);
        assert_eq!(
            read(&file, &fingerprint_columns()),
            [print("1", expected)],
            "{column}"
        );
    }
}

#[test]
fn a_column_inside_a_struct_is_named_by_its_path() {
    let schema = "message m { required group meta { required int32 id; } required binary text; }";
    let file = file_of(
        schema,
        plain(),
        &[vec![Int32(vec![Some(9)]), texts(&["t"])]],
    );
    let columns = TableColumns {
        id: Some("meta.id".to_owned()),
        ..text_columns()
    };
    assert_eq!(read(&file, &columns), [text("9", "t")]);
}

#[test]
fn a_field_that_is_itself_called_as_a_path_comes_first() {
    let id = "required binary id;";
    let path = TableColumns {
        id: Some("id".to_owned()),
        rank: None,
        content: ContentColumn::Texts(vec!["a.b.c".to_owned()]),
    };
    let flat = "required binary a.b.c;";
    let deep = "required group a { required group b { required binary c; } }";
    let twice = "required group a { required group b { required binary c; } required binary b.c; }";
    let values = |texts: &[&'static str]| -> Vec<Chunk> {
        texts
            .iter()
            .map(|text| Text(vec![Some(text.as_bytes())]))
            .collect()
    };
    for (fields, texts, expected) in [
        ([id, deep, flat], &["1", "deep", "flat"][..], "flat"),
        ([flat, deep, id], &["flat", "deep", "1"], "flat"),
        ([id, twice, ""], &["1", "deep", "flat"], "flat"),
        ([id, deep, ""], &["1", "deep"], "deep"),
    ] {
        let schema = format!("message m {{ {} }}", fields.concat());
        let file = file_of(&schema, plain(), &[values(texts)]);
        assert_eq!(read(&file, &path), [text("1", expected)], "{schema}");
    }
    let apart =
        "required group a { required binary b.c; } required group a.b { required binary c; }";
    let file = file_of(
        &format!("message m {{ {id} {apart} }}"),
        plain(),
        &[values(&["1", "x", "y"])],
    );
    let expected = "a.parquet has the column \"a.b.c\" more than once: write it with other names";
    assert_eq!(refusal(&file, &path), expected);
}

#[test]
fn a_null_is_no_id_and_an_empty_text_and_the_rows_after_it_are_read() {
    for (way, properties) in ways() {
        let ids = Text(vec![Some(b"a"), None, Some(b"c"), Some(b"d")]);
        let values = Text(vec![Some(b"x"), Some(b"y"), None, Some(b"z")]);
        let file = file_of(TEXT_SCHEMA, properties, &[vec![ids, values]]);
        let expected = [
            Ok(text("a", "x")),
            Err("a.parquet: row 2: the column \"id\" is null".to_owned()),
            Ok(text("c", "")),
            Ok(text("d", "z")),
        ];
        assert_eq!(results(&file, &text_columns()), expected, "{way}");
    }
}

#[test]
fn nulls_among_fingerprints_keep_the_columns_in_step() {
    let schema = "message m { optional int32 id; optional int64 fingerprint; }";
    let ids = Int32(vec![Some(1), None, Some(3), Some(4)]);
    let prints = Int64(vec![None, Some(20), Some(30), Some(-40)]);
    let file = file_of(schema, plain(), &[vec![ids, prints]]);
    let expected = [
        Err("a.parquet: row 1: the column \"fingerprint\" is null".to_owned()),
        Err("a.parquet: row 2: the column \"id\" is null".to_owned()),
        Ok(print("3", 30)),
        Err(
            "a.parquet: row 4: the column \"fingerprint\" is -40, and fingerprints are not \
             negative, unless --signed says that they are in two's complement"
                .to_owned(),
        ),
    ];
    assert_eq!(results(&file, &fingerprint_columns()), expected);
}

#[test]
fn rows_count_on_through_row_groups() {
    let bad = || vec![Text(vec![Some(b"a"), None]), texts(&["x", "y"])];
    let file = file_of(TEXT_SCHEMA, plain(), &[bad(), bad()]);
    let messages: Vec<_> = results(&file, &text_columns())
        .into_iter()
        .filter_map(Result::err)
        .collect();
    let expected = [2, 4].map(|row| format!("a.parquet: row {row}: the column \"id\" is null"));
    assert_eq!(messages, expected);
}

#[test]
fn bytes_that_are_no_utf_8_are_an_error() {
    let file = file_of(
        TEXT_SCHEMA,
        plain(),
        &[vec![texts(&["a"]), Text(vec![Some(b"ab\xFF")])]],
    );
    let expected = "a.parquet: row 1: \"ab\u{FFFD}\" is no text: its byte 3 is not valid UTF-8";
    assert_eq!(results(&file, &text_columns()), [Err(expected.to_owned())]);
}

#[test]
fn a_string_that_is_no_fingerprint_is_an_error() {
    let schema = "message m { required int32 id; required binary fingerprint; }";
    let file = file_of(
        schema,
        plain(),
        &[vec![Int32(vec![Some(1)]), texts(&["12x"])]],
    );
    let results = results(&file, &fingerprint_columns());
    let message = results[0].as_ref().unwrap_err();
    assert!(
        message.starts_with("a.parquet: row 1: \"12x\" is no fingerprint: "),
        "{message}"
    );
}

#[test]
fn texts_and_ids_over_the_limit_are_refused_and_those_at_it_are_not() {
    let long: &'static [u8] = Box::leak(vec![b'x'; MAX_RECORD_BYTES + 1].into_boxed_slice());
    let ids = vec![
        Some(&long[..MAX_ID_BYTES]),
        Some(&long[..=MAX_ID_BYTES]),
        Some(b"c"),
    ];
    let values = vec![Some(&long[1..]), Some(b"y" as &[u8]), Some(long)];
    let file = file_of(TEXT_SCHEMA, plain(), &[vec![Text(ids), Text(values)]]);
    let results = results(&file, &text_columns());
    assert!(results[0].is_ok());
    let message = results[1].as_ref().unwrap_err();
    assert!(
        message.ends_with("takes 1025 bytes: at most 1024 are allowed"),
        "{message}"
    );
    let expected = "a.parquet: row 3: the column \"text\" takes 8388609 bytes: at most 8388608 \
                    are allowed";
    assert_eq!(results[2].as_ref().unwrap_err(), expected);
}

#[test]
fn ids_that_tsv_cannot_hold_are_refused_where_tsv_is_to_be_written() {
    let file = file_of(
        TEXT_SCHEMA,
        plain(),
        &[vec![texts(&["a\tb"]), texts(&["t"])]],
    );
    let open = |ids| {
        let name = "a.parquet".to_owned();
        ParquetDocuments::open(name, on_disk(&file), &text_columns(), ids).unwrap()
    };
    assert!(open(Ids::Any).all(|result| result.is_ok()));
    assert!(open(Ids::Tsv).all(|result| result.is_err_and(|error| error.is_bad_row())));
}
