//! PQ4: a copy has the rows that are kept, with all their values, and no other.

use bytes::Bytes;
use parquet::basic::Repetition;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{
    AsBytes, BoolType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int96,
    Int96Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type as SchemaType};

use super::super::copy_rows;
use super::*;

/// Columns of every type, in structs and lists and lists of lists.
const SCHEMA: &str = "message m {
    required int64 id (INTEGER(64, false));
    required boolean flag;
    optional int32 day (DATE);
    optional int96 time;
    optional float f;
    required group of { optional group deep { optional double d; } }
    required fixed_len_byte_array (3) three;
    optional fixed_len_byte_array (16) uuid (UUID);
    required binary text (STRING);
    optional binary blob;
    optional group tags (LIST) { repeated group list { optional binary element (STRING); } }
    optional group table { repeated group rows { repeated group cells { optional int32 n; } } }
    repeated double numbers;
    repeated boolean flags;
    optional group map (MAP) { repeated group key_value { required binary key (STRING); } }
}";

/// A value as bytes, with what says where it stands.
type Place = (i16, i16, Option<Vec<u8>>);

/// A column by rows.
type Rows = Vec<Vec<Place>>;

/// Random levels of a row of a column, down its path, and whether a value is at each.
fn levels(
    path: &[Repetition],
    at: (i16, i16, i16),
    random: &mut fastrand::Rng,
    to: &mut Vec<(i16, i16)>,
) {
    let (definition, repetition, depth) = at;
    match path.split_first() {
        None => to.push((definition, repetition)),
        Some((Repetition::REQUIRED, rest)) => levels(rest, at, random, to),
        Some((Repetition::OPTIONAL, rest)) => match random.u8(..4) {
            0 => to.push((definition, repetition)),
            _ => levels(rest, (definition + 1, repetition, depth), random, to),
        },
        Some((Repetition::REPEATED, rest)) => {
            let count = random.usize(..4);
            if count == 0 {
                to.push((definition, repetition));
            }
            for item in 0..count {
                let repetition = if item == 0 { repetition } else { depth + 1 };
                levels(rest, (definition + 1, repetition, depth + 1), random, to);
            }
        }
    }
}

/// The repetitions down the path of a column.
fn repetitions(schema: &SchemaType, column: &ColumnDescriptor) -> Vec<Repetition> {
    let mut found = Vec::new();
    let mut node = schema;
    for name in column.path().parts() {
        let next = node.get_fields().iter().find(|field| field.name() == name);
        node = next.unwrap();
        found.push(node.get_basic_info().repetition());
    }
    found
}

/// Writes random rows to a column.
fn fill(
    column: &mut SerializedColumnWriter<'_>,
    schema: &SchemaDescriptor,
    at: usize,
    rows: usize,
    random: &mut fastrand::Rng,
) {
    let descriptor = schema.column(at);
    let path = repetitions(schema.root_schema(), &descriptor);
    let mut all = Vec::new();
    for _ in 0..rows {
        levels(&path, (0, 0, 0), random, &mut all);
    }
    let (definitions, repetitions): (Vec<i16>, Vec<i16>) = all.into_iter().unzip();
    let full = descriptor.max_def_level();
    let count = definitions.iter().filter(|level| **level == full).count();
    let numbers: Vec<u64> = (0..count)
        .map(|_| random.u64(..) >> random.u8(..64))
        .collect();
    let text = |number: &u64| {
        format!("{number:x}")
            .repeat(*number as usize % 5)
            .into_bytes()
    };
    let width = descriptor.type_length().unsigned_abs() as usize;
    let fixed = |number: &u64| {
        let bytes = number.to_le_bytes().repeat(2)[..width].to_vec();
        FixedLenByteArray::from(bytes)
    };
    macro_rules! put {
        ($to:expr, $value:expr) => {{
            let values: Vec<_> = numbers.iter().map($value).collect();
            $to.write_batch(&values, Some(&definitions), Some(&repetitions))
                .unwrap();
        }};
    }
    match column.untyped() {
        ColumnWriter::BoolColumnWriter(to) => put!(to, |n: &u64| n.is_multiple_of(2)),
        ColumnWriter::Int32ColumnWriter(to) => put!(to, |n: &u64| *n as i32),
        ColumnWriter::Int64ColumnWriter(to) => put!(to, |n: &u64| *n as i64),
        ColumnWriter::Int96ColumnWriter(to) => {
            put!(to, |n: &u64| Int96::from(vec![*n as u32, 1, 2]));
        }
        ColumnWriter::FloatColumnWriter(to) => put!(to, |n: &u64| *n as f32),
        ColumnWriter::DoubleColumnWriter(to) => put!(to, |n: &u64| *n as f64),
        ColumnWriter::ByteArrayColumnWriter(to) => put!(to, |n| ByteArray::from(text(n))),
        ColumnWriter::FixedLenByteArrayColumnWriter(to) => put!(to, fixed),
    }
}

/// A file of random rows, in row groups of these numbers of rows.
fn random_file(properties: WriterPropertiesBuilder, groups: &[usize], seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let descriptor = SchemaDescriptor::new(schema.clone());
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, properties.build().into()).unwrap();
    for &rows in groups {
        let mut group = writer.next_row_group().unwrap();
        for at in 0..descriptor.num_columns() {
            let mut column = group.next_column().unwrap().unwrap();
            fill(&mut column, &descriptor, at, rows, &mut random);
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn places<T: DataType>(mut reader: ColumnReaderImpl<T>, full: i16, rows: usize) -> Rows {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let read = reader
        .read_records(
            rows + 1,
            Some(&mut definitions),
            Some(&mut repetitions),
            &mut values,
        )
        .unwrap();
    assert_eq!(read.0, rows);
    let mut values = values.iter();
    let mut found = Rows::new();
    for at in 0..read.2 {
        let definition = definitions.get(at).copied().unwrap_or(full);
        let repetition = repetitions.get(at).copied().unwrap_or(0);
        let value = (definition == full).then(|| values.next().unwrap().as_bytes().to_vec());
        if repetition == 0 {
            found.push(Vec::new());
        }
        found
            .last_mut()
            .unwrap()
            .push((definition, repetition, value));
    }
    found
}

/// All columns of a file, by rows.
fn columns(file: &[u8]) -> Vec<Rows> {
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(file)).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns = vec![Rows::new(); schema.num_columns()];
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        let rows = group.metadata().num_rows() as usize;
        for (at, column) in columns.iter_mut().enumerate() {
            let full = schema.column(at).max_def_level();
            column.extend(match group.get_column_reader(at).unwrap() {
                ColumnReader::BoolColumnReader(from) => places::<BoolType>(from, full, rows),
                ColumnReader::Int32ColumnReader(from) => places::<Int32Type>(from, full, rows),
                ColumnReader::Int64ColumnReader(from) => places::<Int64Type>(from, full, rows),
                ColumnReader::Int96ColumnReader(from) => places::<Int96Type>(from, full, rows),
                ColumnReader::FloatColumnReader(from) => places::<FloatType>(from, full, rows),
                ColumnReader::DoubleColumnReader(from) => places::<DoubleType>(from, full, rows),
                ColumnReader::ByteArrayColumnReader(from) => {
                    places::<ByteArrayType>(from, full, rows)
                }
                ColumnReader::FixedLenByteArrayColumnReader(from) => {
                    places::<FixedLenByteArrayType>(from, full, rows)
                }
            });
        }
    }
    columns
}

/// The copy of the rows of which this is true, and the number of all.
pub(super) fn copy(
    file: &[u8],
    is_kept: &dyn Fn(u64) -> bool,
) -> Result<(Vec<u8>, u64), ParquetError> {
    let mut copy = Vec::new();
    let take = |bytes: Vec<u8>| {
        copy.extend(bytes);
        Ok(())
    };
    let rows = copy_rows("a.parquet", on_disk(file), is_kept, take, |error| error)?;
    Ok((copy, rows))
}

/// Ways to write the columns of every type.
fn all_ways() -> Vec<(&'static str, WriterPropertiesBuilder)> {
    let mut all = ways();
    all.retain(|(way, _)| !way.starts_with("delta"));
    let encoded = [
        ("id", Encoding::DELTA_BINARY_PACKED),
        ("day", Encoding::DELTA_BINARY_PACKED),
        ("f", Encoding::BYTE_STREAM_SPLIT),
        ("text", Encoding::DELTA_BYTE_ARRAY),
        ("blob", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ("tags.list.element", Encoding::DELTA_BYTE_ARRAY),
        ("table.rows.cells.n", Encoding::DELTA_BINARY_PACKED),
    ];
    let mut mixed = plain().set_dictionary_enabled(false);
    for (column, encoding) in encoded {
        let path: Vec<String> = column.split('.').map(str::to_owned).collect();
        mixed = mixed
            .set_column_encoding(path.clone().into(), encoding)
            .set_column_compression(path.into(), Compression::SNAPPY);
    }
    all.push(("mixed", mixed));
    all
}

#[test]
fn a_copy_has_the_rows_that_are_kept_with_all_their_values() {
    for (seed, (way, properties)) in (0..).zip(all_ways()) {
        let groups = [300, 1, 0, 1100, 90];
        let file = random_file(properties, &groups, seed);
        let all = columns(&file);
        for share in [0, 1, 50, 99, 100] {
            let what = format!("{way}, seed {seed}, {share} % kept");
            let mut random = fastrand::Rng::with_seed(seed);
            let kept: Vec<bool> = (0..1491).map(|_| random.u8(..100) < share).collect();
            let (copy, rows) = copy(&file, &|row| kept[row as usize - 1]).unwrap();
            assert_eq!(rows, 1491, "{what}");
            for (of, copied) in all.iter().zip(columns(&copy)) {
                let rows = of.iter().zip(&kept).filter(|(_, kept)| **kept);
                let expected: Vec<_> = rows.map(|(row, _)| row.clone()).collect();
                assert!(copied == expected, "{what}");
            }
            let reader = SerializedFileReader::new(Bytes::from(copy)).unwrap();
            for group in reader.metadata().row_groups() {
                assert!((1..=1100).contains(&group.num_rows()), "{what}");
            }
        }
    }
}

#[test]
fn a_copy_has_the_schema_the_metadata_and_the_compression_of_its_file() {
    let pair =
        |key: &str, value: Option<&str>| KeyValue::new(key.to_owned(), value.map(str::to_owned));
    let metadata = vec![
        pair("a", Some("b")),
        pair("none", None),
        pair("a", Some("ä")),
    ];
    for (way, properties) in all_ways() {
        let file = random_file(
            properties.set_key_value_metadata(Some(metadata.clone())),
            &[50, 50],
            1,
        );
        let (copy, _) = copy(&file, &|row| row % 3 == 0).unwrap();
        let [of, copied] =
            [file, copy].map(|bytes| SerializedFileReader::new(Bytes::from(bytes)).unwrap());
        let [of, copied] = [of.metadata(), copied.metadata()];
        let schema = of.file_metadata().schema();
        assert_eq!(copied.file_metadata().schema(), schema, "{way}");
        assert_eq!(
            copied.file_metadata().key_value_metadata(),
            Some(&metadata),
            "{way}"
        );
        assert_eq!(copied.num_row_groups(), 1, "{way}");
        let [of, copied] = [of.row_group(0), copied.row_group(0)];
        for (of, copied) in of.columns().iter().zip(copied.columns()) {
            let what = format!("{way}, {}", of.column_path());
            assert_eq!(copied.compression(), of.compression(), "{what}");
            for encoding in [
                Encoding::RLE_DICTIONARY,
                Encoding::DELTA_BINARY_PACKED,
                Encoding::DELTA_LENGTH_BYTE_ARRAY,
                Encoding::DELTA_BYTE_ARRAY,
                Encoding::BYTE_STREAM_SPLIT,
            ] {
                let [of, copied] = [of, copied].map(|column| column.encodings_mask());
                assert_eq!(
                    copied.is_set(encoding),
                    of.is_set(encoding),
                    "{what}: {encoding}"
                );
            }
        }
    }
}

#[test]
fn a_copy_comes_in_pieces_and_stops_where_they_are_refused() {
    let file = random_file(plain().set_dictionary_enabled(false), &[20_000], 3);
    let mut pieces = 0;
    let take = |bytes: Vec<u8>| {
        assert!(bytes.len() < 1 << 20);
        pieces += 1;
        if pieces == 3 {
            Err("full".to_owned())
        } else {
            Ok(())
        }
    };
    let copied = copy_rows("a.parquet", on_disk(&file), &|_| true, take, |error| {
        error.to_string()
    });
    assert_eq!(copied, Err("full".to_owned()));
    assert_eq!(pieces, 3);
}

/// PQ2: whatever byte is changed, and wherever the file is cut.
#[test]
fn a_damaged_file_is_copied_or_an_error() {
    for (way, properties) in [
        ("plain", plain().set_dictionary_enabled(false)),
        ("dictionary", plain()),
    ] {
        let file = random_file(properties, &[4, 3], 5);
        let (mut whole, mut refused) = (0, 0);
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= [0xFF, 0x01, 0x80][at % 3];
            match copy(&damaged, &|row| row != 2) {
                Ok((copy, rows)) => {
                    assert_eq!(rows, 7, "{way}, byte {at}");
                    let reader = SerializedFileReader::new(Bytes::from(copy)).unwrap();
                    assert_eq!(
                        reader.metadata().file_metadata().num_rows(),
                        6,
                        "{way}, byte {at}"
                    );
                    whole += 1;
                }
                Err(error) => {
                    assert!(
                        error.to_string().contains("a.parquet"),
                        "{way}, byte {at}: {error}"
                    );
                    refused += 1;
                }
            }
        }
        assert!(whole > 0 && refused > 0, "{way}: {whole}, {refused}");
        for length in 0..file.len() {
            assert!(
                copy(&file[..length], &|row| row != 2).is_err(),
                "{way}, {length}"
            );
        }
    }
}
