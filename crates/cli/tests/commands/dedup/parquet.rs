//! `dedup` of Parquet: rows are written again with all their columns.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use simshard_testkit::run;

use super::{Folder, Made, dedup, made, reference, refuse};
use crate::BINARY;

const SCHEMA: &str = "message pages {
    required binary id (STRING);
    optional int64 f (INTEGER(64, false));
    optional int32 at (DATE);
    optional double s;
    optional binary text (STRING);
    optional group tags (LIST) { repeated group list { optional binary element (STRING); } }
}";

/// The day before the first that a record may have, of 2024, in days since 1970.
const JANUARY_31: i32 = 19_753;

/// A table of records with these texts, in row groups of this many rows.
pub(super) fn table(records: &[Made], texts: &[Option<String>], group_rows: usize) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let pair = KeyValue::new("huggingface".to_owned(), "{}".to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![pair]));
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let groups = records.chunks(group_rows).zip(texts.chunks(group_rows));
    for (records, texts) in groups {
        let mut group = writer.next_row_group().unwrap();
        let mut next = |write: &dyn Fn(&mut SerializedColumnWriter<'_>)| {
            let mut column = group.next_column().unwrap().unwrap();
            write(&mut column);
            column.close().unwrap();
        };
        let ids: Vec<ByteArray> = records.iter().map(|one| one.id.as_str().into()).collect();
        next(&|to| write::<ByteArrayType>(to, &ids, None, None));
        let prints: Vec<i64> = records.iter().map(|one| one.fingerprint as i64).collect();
        next(&|to| write::<Int64Type>(to, &prints, Some(&vec![1; prints.len()]), None));
        let days = records
            .iter()
            .map(|one| Some(JANUARY_31 + one.date? as i32));
        next(&|to| write_some::<Int32Type>(to, days.clone()));
        let scores = records.iter().map(|one| Some(f64::from(one.score?) + 0.5));
        next(&|to| write_some::<DoubleType>(to, scores.clone()));
        let levels: Vec<i16> = texts.iter().map(|text| text.is_some().into()).collect();
        let present = texts.iter().flatten();
        let present: Vec<ByteArray> = present.map(|text| text.as_str().into()).collect();
        next(&|to| write::<ByteArrayType>(to, &present, Some(&levels), None));
        let (mut tags, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for (number, record) in records.iter().enumerate() {
            match number % 4 {
                // No list, and an empty one.
                none @ (0 | 1) => {
                    definitions.push(none as i16);
                    repetitions.push(0);
                }
                count => {
                    for tag in 0..count as i16 {
                        tags.push(ByteArray::from(&*format!("{} {tag}", record.id)));
                        definitions.push(3);
                        repetitions.push(tag.min(1));
                    }
                }
            }
        }
        next(&|to| write::<ByteArrayType>(to, &tags, Some(&definitions), Some(&repetitions)));
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn write<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) {
    let to = to.typed::<T>();
    to.write_batch(values, definitions, repetitions).unwrap();
}

fn write_some<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>> + Clone,
) {
    let levels: Vec<i16> = values.clone().map(|value| value.is_some().into()).collect();
    let present: Vec<T::T> = values.flatten().collect();
    write::<T>(to, &present, Some(&levels), None);
}

/// The rows of a table, each with all its columns.
fn rows(path: &str) -> Vec<String> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().to_string()).collect()
}

fn kept<T: Clone>(all: &[T], causes: &BTreeMap<usize, usize>) -> Vec<T> {
    let all = all.iter().enumerate();
    let kept = all.filter(|(at, _)| !causes.contains_key(at));
    kept.map(|(_, one)| one.clone()).collect()
}

/// DD1, DD2.
#[test]
fn what_is_kept_of_a_table_is_what_a_linear_scan_says() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    for (seed, shape, by, keep) in [
        (31, "random", "pairs", "first"),
        (32, "chained", "cluster", "newest:at"),
        (33, "dense", "pairs", "highest:s"),
        (34, "dense", "cluster", "first"),
        (35, "dense", "pairs", "newest:at"),
    ] {
        let records = made(seed, 300, shape);
        let input = folder.write("in.parquet", table(&records, &vec![None; 300], 70));
        let causes = reference(&records, keep, by);
        let args = [
            "-o",
            &out,
            "--by",
            by,
            "--keep",
            keep,
            "--fingerprint-field",
            "f",
        ];
        let said = dedup(&[&[&*input], &args[..]].concat(), "");
        let count = 300 - causes.len();
        assert!(
            said.starts_with(&format!("kept {count} of 300 documents")),
            "{said}"
        );
        assert_eq!(rows(&out), kept(&rows(&input), &causes), "{shape}, {by}");
        let reader = SerializedFileReader::new(File::open(&out).unwrap()).unwrap();
        let metadata = reader.metadata();
        let key_values = metadata.file_metadata().key_value_metadata().unwrap();
        assert_eq!(key_values[0].key, "huggingface");
        for group in metadata.row_groups() {
            assert!(group.num_rows() <= 70, "{shape}, {by}");
            let codecs = group.columns().iter().map(|column| column.compression());
            assert!(
                codecs
                    .into_iter()
                    .all(|codec| matches!(codec, Compression::ZSTD(_)))
            );
        }
        // What was written has no near-duplicates, and is copied whole.
        let again = folder.path("again.parquet");
        dedup(
            &[&*out, "-o", &again, "--by", by, "--fingerprint-field", "f"],
            "",
        );
        assert_eq!(rows(&again), rows(&out), "{shape}, {by}");
    }
}

#[test]
fn the_longest_text_of_rows_is_kept_and_texts_without_words_stay() {
    let folder = Folder::new();
    let (out, input) = (folder.path("out.parquet"), folder.path("in.parquet"));
    let mut records = made(41, 90, "random");
    let base = "one two three four five six seven eight nine ten eleven twelve thirteen";
    let text = |number: usize| match number % 9 {
        0 => "?!".to_owned(),
        _ => format!("{base} {}{}", number % 5, "¡".repeat((number * 7919) % 13)),
    };
    let texts: Vec<String> = (0..90).map(text).collect();
    let some: Vec<Option<String>> = texts.iter().cloned().map(Some).collect();
    fs::write(&input, table(&records, &some, 40)).unwrap();
    let hashes = String::from_utf8(run(BINARY, ["hash", &input], "").stdout).unwrap();
    let mut found = hashes
        .lines()
        .skip(1)
        .map(|row| row.split('\t').nth(1).unwrap());
    for (number, record) in records.iter_mut().enumerate() {
        record.score = Some(texts[number].chars().count() as i32);
        // One that is near no other stands for no fingerprint.
        let alone =
            0xFFFF_0000 << (number % 32) ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        record.fingerprint = match number % 9 {
            0 => alone,
            _ => found.next().unwrap().parse().unwrap(),
        };
    }
    for by in ["cluster", "pairs"] {
        let causes = reference(&records, "highest:s", by);
        assert!(
            causes.len() > 60 && causes.keys().all(|number| number % 9 > 0),
            "{by}"
        );
        let said = dedup(&[&input, "-o", &out, "--keep", "longest", "--by", by], "");
        assert!(said.starts_with("kept "), "{said}");
        assert_eq!(rows(&out), kept(&rows(&input), &causes), "{by}");
    }
}

#[test]
fn a_column_that_cannot_say_what_is_preferred_is_named() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let records = made(51, 3, "random");
    let input = folder.write("in.parquet", table(&records, &vec![None; 3], 2));
    for (keep, expected) in [
        (
            "newest:date",
            "in.parquet has no column \"date\": its columns are \"id\", \"f\", \"at\", ",
        ),
        (
            "highest:at",
            "in.parquet: the column \"at\" is INT32 (DATE): expected integers, floats of",
        ),
        (
            "newest:id",
            "in.parquet: row 1: the field \"id\" is \"d0\": expected a date as 2026-",
        ),
    ] {
        let said = refuse(&[&input, "-o", &out, "--keep", keep], "");
        assert!(said.contains(expected), "{keep}: {said}");
        assert_eq!(folder.names(), ["in.parquet"]);
    }
}

#[test]
fn tables_of_a_folder_go_to_a_folder_by_their_names() {
    let folder = Folder::new();
    let records = made(51, 200, "random");
    let none = vec![None; 200];
    let inputs = [
        folder.write("in/a/1.parquet", table(&records[..120], &none[..120], 50)),
        folder.write("in/b/1.parquet", table(&records[120..], &none[120..], 50)),
    ];
    folder.write("in/b/_SUCCESS", "");
    let (all, out) = (folder.path("in"), folder.path("out"));
    let causes = reference(&records, "first", "pairs");
    let fields = ["--by", "pairs", "--fingerprint-field", "f"];
    let args = [&[&*all, "-o", &out], &fields[..]].concat();
    dedup(&args, "");
    let all = [rows(&inputs[0]), rows(&inputs[1])].concat();
    let [one, two] = ["out/a/1.parquet", "out/b/1.parquet"].map(|name| rows(&folder.path(name)));
    assert!(!one.is_empty() && !two.is_empty());
    assert_eq!([one, two].concat(), kept(&all, &causes));

    // All of one table is near the other: it has no rows, and its columns.
    let again = folder.write("in/c.parquet", table(&records, &none, 50));
    let empty = folder.path("empty");
    dedup(
        &[&again, &inputs[0], "-o", &empty, "--fingerprint-field", "f"],
        "",
    );
    let reader = File::open(folder.path("empty/a/1.parquet")).unwrap();
    let reader = SerializedFileReader::new(reader).unwrap();
    let metadata = reader.metadata().file_metadata();
    assert_eq!(
        (metadata.num_rows(), metadata.schema_descr().num_columns()),
        (0, 6)
    );
}

/// I6.
#[test]
fn standard_input_and_compressed_tables_give_the_same() {
    let folder = Folder::new();
    let records = made(61, 200, "dense");
    let bytes = table(&records, &vec![None; 200], 64);
    let input = folder.write("in.parquet", &bytes);
    let [out, gz] = ["out.parquet", "out.parquet.gz"].map(|name| folder.path(name));
    dedup(&[&input, "-o", &out, "--fingerprint-field", "f"], "");
    let piped = [
        "dedup",
        "-f",
        "parquet",
        "-o",
        "-",
        "--fingerprint-field",
        "f",
    ];
    let piped = run(BINARY, piped, &bytes);
    assert!(piped.stdout == fs::read(&out).unwrap());
    dedup(&[&input, "-o", &gz, "--fingerprint-field", "f"], "");
    let again = folder.path("again.parquet");
    dedup(&[&gz, "-o", &again, "--fingerprint-field", "f"], "");
    assert_eq!(rows(&again), rows(&out));
}

#[test]
fn bad_rows_are_left_out_where_they_are_skipped() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let mut records = made(71, 4, "random");
    records[1].id = "b".repeat(1025);
    let texts = ["a b c", "x y z", "d e f", "g h i"].map(|text| Some(text.to_owned()));
    let input = folder.write("in.parquet", table(&records, &texts, 3));
    let said = refuse(&[&input, "-o", &out], "");
    assert!(said.contains("in.parquet: row 2: the id \"bbb"), "{said}");
    assert!(!fs::exists(&out).unwrap());
    let skipping = ["dedup", &input, "-o", &out, "--skip-bad-lines"];
    let said = crate::said(&run(BINARY, skipping, ""));
    assert!(
        said.starts_with(&format!(
            "skipped 1 bad row\n  {input}: row 2: the id \"bbb"
        )),
        "{said}"
    );
    let all = rows(&input);
    assert_eq!(rows(&out), [&all[..1], &all[2..]].concat());
}

#[test]
fn a_text_that_is_null_is_kept_as_an_empty_one_is() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let texts = ["a b c", "", "a b c"].map(|text| Some(text.to_owned()));
    let texts = [&texts[..], &[None]].concat();
    let input = folder.write("in.parquet", table(&made(72, 4, "random"), &texts, 3));
    let said = dedup(&[&input, "-o", &out], "");
    assert_eq!(said, "kept 3 of 4 documents, one of each cluster");
    let all = rows(&input);
    assert_eq!(rows(&out), [&all[..2], &all[3..]].concat());
}
