//! The ranks that fields give documents: the same values have the same ranks in every format.

use super::*;
use simshard_simhash::Recipe;

use crate::{Preference, Rewrite};

/// The ranks of the documents on standard input.
fn ranks_of(
    options: &InputOptions,
    keep: &str,
    bytes: impl Into<Vec<u8>>,
) -> Result<Vec<u64>, InputError> {
    let stdin = Box::new(Cursor::new(bytes.into()));
    let keep: Preference = keep.parse().unwrap();
    let mut rewrite = Rewrite::open(options, Needs::CLIENT, Recipe::default(), keep, stdin)?;
    Ok(rewrite.read(&mut |_| {})?.ranks)
}

fn ranks(format: Format, keep: &str, bytes: impl Into<Vec<u8>>) -> Vec<u64> {
    ranks_of(&args(format, &[]), keep, bytes).unwrap()
}

/// Values of JSON as the field `v` of lines, the first of which lacks it.
fn json(values: &[&str]) -> String {
    let lines = values.iter().enumerate();
    let lines =
        lines.map(|(at, value)| format!("{{\"id\":{at},\"text\":\"a b\",\"v\":{value}}}\n"));
    "{\"id\":\"-\",\"text\":\"a b\"}\n".to_owned() + &lines.collect::<String>()
}

/// The same values as the column `v` of CSV, empty where they are null.
fn csv(values: &[&str]) -> String {
    let rows = ["null"].iter().chain(values).enumerate();
    let rows = rows.map(|(at, value)| {
        let value = if *value == "null" { "" } else { value };
        format!("{},{at},a b\n", value.trim_matches('"'))
    });
    "v,id,text\n".to_owned() + &rows.collect::<String>()
}

/// The place of each rank among all of them.
fn places(ranks: &[u64]) -> Vec<usize> {
    let mut all = ranks.to_vec();
    all.sort_unstable();
    all.dedup();
    let place = |rank| all.iter().position(|other| other == rank).unwrap();
    ranks.iter().map(place).collect()
}

#[test]
fn numbers_are_ranked_alike_in_lines_and_in_csv() {
    let values = [
        "null",
        "-1e300",
        "-9223372036854775808",
        "-2.50",
        "-1",
        "-0.0",
        "0",
        "0.1",
        "0.30000000000000004",
        "7",
        "9223372036854775806",
        "9223372036854775807",
        "18446744073709551615",
        "1e300",
    ];
    let ranks_of_lines = ranks(Format::Jsonl, "highest:v", json(&values));
    // The zeros are one number, and doubles do not tell the two large integers apart.
    let expected = [0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 9, 10, 11];
    assert_eq!(places(&ranks_of_lines), expected);
    assert_eq!(
        ranks(Format::Csv, "highest:v", csv(&values)),
        ranks_of_lines
    );
    // What JSON does not write so.
    let more = "id,text,v\n1,a,+7\n2,a,07\n3,a,7.\n4,a,.7e1\n";
    let seven = [ranks_of_lines[10]; 4];
    assert_eq!(ranks(Format::Csv, "highest:v", more), seven);
}

/// A number is the double next to what is written, whatever its digits are.
#[test]
fn numbers_of_many_digits_are_rounded_once() {
    let values = [
        "0.9522444552911937",
        "-0.9221885624698875",
        "8.41e21",
        "2.2250738585072014e-308",
    ];
    let numbers = [
        0.952_244_455_291_193_7,
        -0.922_188_562_469_887_5,
        8.41e21,
        2.225_073_858_507_201_4e-308,
    ];
    let expected = numbers.map(|number: f64| {
        if number < 0.0 {
            !number.to_bits()
        } else {
            number.to_bits() | 1 << 63
        }
    });
    for (format, bytes) in [(Format::Jsonl, json(&values)), (Format::Csv, csv(&values))] {
        assert_eq!(ranks(format, "highest:v", bytes)[1..], expected, "{format}");
    }
}

#[test]
fn dates_are_ranked_alike_in_lines_and_in_csv() {
    let values = [
        "null",
        "\"0000-01-01T00:00:00Z\"",
        "\"1969-12-31T23:59:59.9999999Z\"",
        "\"1970-01-01T02:00:00+02:00\"",
        "\"2024-02-29\"",
        "\"2024-02-29 12:00:00.00000015Z\"",
        "\"2024-02-29T12:00:00.0000002Z\"",
    ];
    let ranks_of_lines = ranks(Format::Jsonl, "newest:v", json(&values));
    assert_eq!(places(&ranks_of_lines), [0, 0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(ranks(Format::Csv, "newest:v", csv(&values)), ranks_of_lines);
}

/// A record of WARC with another field in its header.
fn record(field: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: a\r\n{field}Content-Length: 3\r\n\r\na b\r\n\r\n"
    )
}

#[test]
fn records_are_ranked_by_the_fields_of_their_headers() {
    let dates = [
        "",
        "WARC-Date: 2024-02-29\r\n",
        "warc-date: 2024-02-29T12:00:00Z\r\n",
        "WARC-Date: 2024-02-29T12:00:00.000001Z\r\n",
    ];
    let other =
        "WARC/1.0\r\nWARC-Type: request\r\nWARC-Date: no date\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let warc = dates.map(record).join(other);
    let values = [
        "null",
        "\"2024-02-29\"",
        "\"2024-02-29T12:00:00Z\"",
        "\"2024-02-29T12:00:00.000001Z\"",
    ];
    let expected = ranks(Format::Jsonl, "newest:v", json(&values)).split_off(1);
    assert_eq!(ranks(Format::Warc, "newest:WARC-Date", warc), expected);
    let scores = ["X-Score: 7\r\n", "X-Score: 8\r\n"].map(record).concat();
    let scores = ranks(Format::Warc, "highest:x-score", scores);
    assert!(scores[0] < scores[1], "{scores:?}");
    let arc = "filedesc://a.arc 0.0.0.0 20080430204825 text/plain 76\n\
               1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n\n\
               a:a 1.2.3.4 20240229120000 text/plain 3\na b\n";
    assert_eq!(ranks(Format::Warc, "newest:WARC-Date", arc), expected[2..3]);

    let bad = [
        record(dates[1]),
        record("WARC-Date: 20240229\r\n"),
        record(""),
    ]
    .concat();
    let message = ranks_of(&args(Format::Warc, &[]), "newest:WARC-Date", &*bad).unwrap_err();
    let expected_message =
        "record 2 at byte 104: the field \"WARC-Date\" is \"20240229\": expected a date as";
    assert!(message.to_string().contains(expected_message), "{message}");
    let skipping = skipping(Format::Warc, &[]);
    let left = ranks_of(&skipping, "newest:WARC-Date", &*bad).unwrap();
    assert_eq!(left, [expected[1], expected[0]]);
}

#[test]
fn a_time_without_an_offset_is_that_of_utc_and_an_empty_text_is_no_date() {
    let values = [
        "\"2024-02-29T12:00:00\"",
        "\"2024-02-29T12:00:00Z\"",
        "\"2024-02-29 12:00:00.5\"",
        "\"2024-02-29T13:00:00.5+01:00\"",
        "\"\"",
        "null",
    ];
    let all = ranks(Format::Jsonl, "newest:v", json(&values)).split_off(1);
    for pair in all.as_chunks::<2>().0 {
        assert_eq!(pair[0], pair[1], "{all:?}");
    }
    assert!(all[4] < all[0] && all[0] < all[2], "{all:?}");
}

#[test]
fn a_value_of_another_kind_is_a_bad_line_or_row() {
    for (keep, value, in_json, in_csv) in [
        (
            "newest:v",
            "\"2024-02\"",
            "expected a date as 2026-01-31T23:59:59Z (RFC 3339) or 2026-01-31, or null",
            "expected a date as 2026-01-31T23:59:59Z (RFC 3339) or 2026-01-31, or an empty value",
        ),
        (
            "highest:v",
            "\"nan\"",
            "expected a number, or null",
            "expected a number, or an empty value",
        ),
        (
            "highest:v",
            "\"null\"",
            "expected a number, or null",
            "expected a number, or an empty value",
        ),
    ] {
        for (format, bytes, line, expected) in [
            (Format::Jsonl, json(&["null", value]), 3, in_json),
            (Format::Csv, csv(&["null", value]), 4, in_csv),
        ] {
            let refused = ranks_of(&args(format, &[]), keep, bytes).unwrap_err();
            let expected = format!("<stdin>:{line}: the field \"v\" is {value}: {expected}");
            assert_eq!(refused.to_string(), expected);
        }
    }
    for value in ["true", "[1]", "{\"n\": 1}", "1e400"] {
        let refused = ranks_of(&args(Format::Jsonl, &[]), "highest:v", json(&[value]));
        let expected = format!("<stdin>:2: the field \"v\" is {value}: expected a number, or null");
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }
    for (format, bytes) in [
        (Format::Jsonl, json(&["\"x\"", "7", "\"inf\"", "8"])),
        (Format::Csv, csv(&["x", "7", "inf", "8"])),
    ] {
        let kept = ranks_of(&skipping(format, &[]), "highest:v", bytes).unwrap();
        assert_eq!(places(&kept), [0, 1, 2], "{format}");
    }
}

#[test]
fn a_header_without_the_column_is_refused() {
    let rows = "id,text,score\n1,a b,7\n";
    let refused = ranks_of(&args(Format::Csv, &[]), "highest:v", rows).unwrap_err();
    let expected = "<stdin>:1: the header has no field \"v\": it has \"id\", \"text\", \"score\"; \
                    say with --keep which to read";
    assert_eq!(refused.to_string(), expected);
    // As of a field that no line has.
    let rows = "id,text,v\n1,a b,\n";
    let refused = ranks_of(&args(Format::Csv, &[]), "highest:v", rows).unwrap_err();
    assert!(matches!(refused, InputError::NoRanks { .. }), "{refused}");
}

#[cfg(feature = "parquet")]
mod parquet {
    //! Columns of Parquet.

    use ::parquet::data_type::{
        ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type, Int96, Int96Type,
    };
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
    use ::parquet::schema::parser::parse_message_type;

    use super::*;

    /// A table with a column `v` of this type. The first row has none.
    fn table<T: DataType>(column: &str, values: &[Option<T::T>]) -> Vec<u8> {
        let schema = format!(
            "message m {{ required int64 id; optional {column}; required binary text (STRING); }}"
        );
        let schema = parse_message_type(&schema).unwrap().into();
        let properties = WriterProperties::builder().build().into();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let ids: Vec<i64> = (0..=values.len() as i64).collect();
        let texts = vec![ByteArray::from("a b"); ids.len()];
        let here = values.iter().map(|value| i16::from(value.is_some()));
        let levels: Vec<i16> = [0].into_iter().chain(here).collect();
        let present: Vec<T::T> = values.iter().flatten().cloned().collect();
        write::<Int64Type>(group.next_column().unwrap(), &ids, None);
        write::<T>(group.next_column().unwrap(), &present, Some(&levels));
        write::<ByteArrayType>(group.next_column().unwrap(), &texts, None);
        group.close().unwrap();
        writer.into_inner().unwrap()
    }

    fn write<T: DataType>(
        column: Option<SerializedColumnWriter<'_>>,
        values: &[T::T],
        levels: Option<&[i16]>,
    ) {
        let mut column = column.unwrap();
        column
            .typed::<T>()
            .write_batch(values, levels, None)
            .unwrap();
        column.close().unwrap();
    }

    /// Values of a column are ranked as these of JSON are.
    fn assert_alike<T: DataType>(keep: &str, column: &str, values: &[(Option<T::T>, &str)]) {
        let in_json: Vec<&str> = values.iter().map(|value| value.1).collect();
        let in_table: Vec<Option<T::T>> = values.iter().map(|value| value.0.clone()).collect();
        let found = ranks(Format::Parquet, keep, table::<T>(column, &in_table));
        assert_eq!(
            found,
            ranks(Format::Jsonl, keep, json(&in_json)),
            "{column}"
        );
    }

    #[test]
    fn integers_are_ranked_as_in_lines() {
        let longs = [
            (None, "null"),
            (Some(i64::MIN), "-9223372036854775808"),
            (Some(-1), "-1"),
            (Some(0), "-0.0"),
            (Some(i64::MAX - 1), "9223372036854775806"),
            (Some(i64::MAX), "9223372036854775807"),
        ];
        assert_alike::<Int64Type>("highest:v", "int64 v", &longs);
        let unsigned = [(Some(-1), "18446744073709551615"), (Some(7), "7")];
        assert_alike::<Int64Type>("highest:v", "int64 v (UINT_64)", &unsigned);
        let integers = [
            (Some(i32::MIN), "-2147483648"),
            (None, "null"),
            (Some(5), "5.0"),
        ];
        assert_alike::<Int32Type>("highest:v", "int32 v", &integers);
        assert_alike::<Int32Type>(
            "highest:v",
            "int32 v (UINT_32)",
            &[(Some(-1), "4294967295")],
        );
    }

    #[test]
    fn floats_and_decimals_are_ranked_as_in_lines() {
        let doubles = [
            (Some(-2.5), "-2.5"),
            (Some(-0.0), "0"),
            (Some(0.1), "0.1"),
            (Some(0.300_000_000_000_000_04), "0.30000000000000004"),
            (None, "null"),
            (Some(f64::MAX), "1.7976931348623157e308"),
        ];
        assert_alike::<DoubleType>("highest:v", "double v", &doubles);
        let floats = [
            (Some(-1.25), "-1.25"),
            (None, "null"),
            (Some(-0.0), "-0.0"),
            (Some(3e10), "30000001024"),
        ];
        assert_alike::<FloatType>("highest:v", "float v", &floats);
        let decimals = [
            (Some(-5), "-0.05"),
            (Some(0), "0.00"),
            (Some(1234), "12.34"),
            (None, "null"),
        ];
        assert_alike::<Int32Type>("highest:v", "int32 v (DECIMAL(9, 2))", &decimals);
        let decimals = [
            (Some(999_999_999_999_999_999), "999999999999.999999"),
            (Some(-1), "-0.000001"),
        ];
        assert_alike::<Int64Type>("highest:v", "int64 v (DECIMAL(18, 6))", &decimals);
        let bytes =
            |digits: i128| Some(FixedLenByteArray::from(digits.to_be_bytes()[3..].to_vec()));
        let decimals = [
            (bytes(-12), "-0.012"),
            (
                bytes(i128::from(u64::MAX) * 1000),
                "18446744073709551615.000",
            ),
            (None, "null"),
            (bytes(0), "-0.0"),
        ];
        assert_alike::<FixedLenByteArrayType>(
            "highest:v",
            "fixed_len_byte_array (13) v (DECIMAL(30, 3))",
            &decimals,
        );
        let bytes = |bytes: &[u8]| Some(ByteArray::from(bytes.to_vec()));
        let decimals = [
            (bytes(&[0xFF; 40]), "-0.01"),
            (bytes(&[0xFE]), "-0.02"),
            (bytes(&[0, 0xFF]), "2.55"),
        ];
        assert_alike::<ByteArrayType>("highest:v", "binary v (DECIMAL(9, 2))", &decimals);
    }

    /// PQ2.
    #[test]
    fn a_decimal_that_is_too_large_is_damage() {
        for value in [
            &[0x80; 17][..],
            &[1; 17],
            &[[0xFF; 16].as_slice(), &[0; 16]].concat(),
        ] {
            let values = [Some(ByteArray::from(value.to_vec()))];
            let bytes = table::<ByteArrayType>("binary v (DECIMAL(38, 0))", &values);
            let refused = ranks_of(&skipping(Format::Parquet, &[]), "highest:v", bytes);
            let expected = "<stdin>: cannot read on after row 2, in row group 1 of 1: \
                            a decimal has more digits than its type";
            assert_eq!(refused.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn dates_and_timestamps_are_ranked_as_in_lines() {
        let texts = [
            (
                Some("1969-12-31T23:59:59.5-01:00".into()),
                "\"1970-01-01T00:59:59.5Z\"",
            ),
            (None, "null"),
        ];
        assert_alike::<ByteArrayType>("newest:v", "binary v (STRING)", &texts);
        let days = [
            (Some(-719_528), "\"0000-01-01T00:00:00Z\""),
            (Some(-1), "\"1969-12-31T00:00:00Z\""),
            (None, "null"),
            (Some(19_782), "\"2024-02-29T00:00:00Z\""),
        ];
        assert_alike::<Int32Type>("newest:v", "int32 v (DATE)", &days);
        for zone in ["true", "false"] {
            let of = |unit: &str| format!("int64 v (TIMESTAMP({unit}, {zone}))");
            let milliseconds = [(Some(-1), "\"1969-12-31T23:59:59.999Z\""), (None, "null")];
            assert_alike::<Int64Type>("newest:v", &of("MILLIS"), &milliseconds);
            let microseconds = [
                (Some(-1), "\"1969-12-31T23:59:59.999999Z\""),
                (
                    Some(253_402_300_799_999_999),
                    "\"9999-12-31T23:59:59.999999Z\"",
                ),
            ];
            assert_alike::<Int64Type>("newest:v", &of("MICROS"), &microseconds);
            let nanoseconds = [
                (Some(-1), "\"1969-12-31T23:59:59.999999999Z\""),
                (Some(199), "\"1970-01-01T00:00:00.000000199Z\""),
                (Some(200), "\"1970-01-01T00:00:00.0000002Z\""),
                (Some(i64::MAX), "\"2262-04-11T23:47:16.854775807Z\""),
            ];
            assert_alike::<Int64Type>("newest:v", &of("NANOS"), &nanoseconds);
        }
        let old = [(Some(1), "\"1970-01-01T00:00:00.001Z\"")];
        assert_alike::<Int64Type>("newest:v", "int64 v (TIMESTAMP_MILLIS)", &old);
        let old = [(Some(1), "\"1970-01-01T00:00:00.000001Z\"")];
        assert_alike::<Int64Type>("newest:v", "int64 v (TIMESTAMP_MICROS)", &old);
        let int96 = |day: u32, nanoseconds: u64| {
            let mut time = Int96::new();
            time.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, day);
            Some(time)
        };
        let spark = [
            (int96(2_440_588, 0), "\"1970-01-01T00:00:00Z\""),
            (
                int96(2_440_587, 86_399_999_999_999),
                "\"1969-12-31T23:59:59.999999999Z\"",
            ),
            (None, "null"),
        ];
        assert_alike::<Int96Type>("newest:v", "int96 v", &spark);
    }

    #[test]
    fn a_value_of_another_kind_is_a_bad_row() {
        let text = |text: &str| Some(ByteArray::from(text));
        let texts = table::<ByteArrayType>("binary v (STRING)", &[text("2024-02")]);
        let date = "expected a date as 2026-01-31T23:59:59Z (RFC 3339) or 2026-01-31, or null";
        let last = 253_402_300_800_000;
        for (keep, bytes, value, expected) in [
            ("newest:v", texts, "\"2024-02\"", date),
            (
                "newest:v",
                table::<Int64Type>("int64 v (TIMESTAMP_MILLIS)", &[Some(last)]),
                "a time before the year 0 or after 9999",
                date,
            ),
            (
                "highest:v",
                table::<DoubleType>("double v", &[Some(f64::NAN)]),
                "NaN",
                "expected a number, or null",
            ),
        ] {
            let refused = ranks_of(&args(Format::Parquet, &[]), keep, bytes).unwrap_err();
            let expected = format!("<stdin>: row 2: the field \"v\" is {value}: {expected}");
            assert_eq!(refused.to_string(), expected);
        }
        let values = [
            Some(f64::NAN),
            Some(2.0),
            None,
            Some(f64::NAN),
            Some(f64::INFINITY),
        ];
        let bytes = table::<DoubleType>("double v", &values);
        let kept = ranks_of(&skipping(Format::Parquet, &[]), "highest:v", bytes).unwrap();
        assert_eq!(places(&kept), [0, 1, 0, 2]);
    }

    #[test]
    fn a_column_that_is_not_there_or_of_another_type_is_refused() {
        let refused = |keep: &str, bytes: Vec<u8>| {
            let refused = ranks_of(&args(Format::Parquet, &[]), keep, bytes);
            refused.unwrap_err().to_string()
        };
        let numbers = "integers, floats of 32 or 64 bits, or decimals of at most 38 digits";
        let dates = "dates, timestamps, or strings as in RFC 3339";
        for (keep, column, found, expected) in [
            (
                "highest:v",
                "binary v (STRING)",
                "BYTE_ARRAY (UTF8)",
                numbers,
            ),
            ("highest:v", "int32 v (DATE)", "INT32 (DATE)", numbers),
            ("highest:v", "int96 v", "INT96", numbers),
            ("highest:v", "boolean v", "BOOLEAN", numbers),
            (
                "highest:v",
                "fixed_len_byte_array (17) v (DECIMAL(39, 0))",
                "FIXED_LEN_BYTE_ARRAY (DECIMAL)",
                numbers,
            ),
            (
                "highest:v",
                "binary v (DECIMAL(39, 0))",
                "BYTE_ARRAY (DECIMAL)",
                numbers,
            ),
            (
                "highest:v",
                "fixed_len_byte_array (2) v (FLOAT16)",
                "FIXED_LEN_BYTE_ARRAY (Float16)",
                numbers,
            ),
            ("newest:v", "int64 v", "INT64", dates),
            ("newest:v", "double v", "DOUBLE", dates),
            (
                "newest:v",
                "int64 v (TIME_MICROS)",
                "INT64 (TIME_MICROS)",
                dates,
            ),
        ] {
            let schema = format!(
                "message m {{ required binary id; required binary text; required {column}; }}"
            );
            let schema = parse_message_type(&schema).unwrap().into();
            let properties = WriterProperties::builder().build().into();
            let writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
            let said = refused(keep, writer.into_inner().unwrap());
            let expected = format!("<stdin>: the column \"v\" is {found}: expected {expected}");
            assert_eq!(said, expected);
        }
        let said = refused("newest:date", table::<Int32Type>("int32 v (DATE)", &[]));
        let expected = "<stdin> has no column \"date\": its columns are \"id\", \"v\", \"text\"; \
                        say with --keep which to read";
        assert_eq!(said, expected);
    }
}
