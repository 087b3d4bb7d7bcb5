//! Parquet files, damaged: their ends, their page headers and their pages.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int64Type, Int96, Int96Type,
};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use proptest::sample::select;
use simshard_input::parquet::{ContentColumn, ParquetDocuments, RankField, RankedBy, TableColumns};
use simshard_input::{Ids, Notation};

use super::splice::{Bytes, damaged};
use super::{assert_printable, assert_within_limits, cases};

const SCHEMA: &str = "message m {
    optional binary id (STRING);
    optional binary text (STRING);
    optional int64 print (UINT_64);
    optional double score;
    optional int96 time;
    optional fixed_len_byte_array (13) cost (DECIMAL(30, 2));
}";

/// The most rows that are read of a file: a few bytes may say truly that they stand for billions.
const ROWS: usize = 1_000;

/// Makes some bytes the content of a file. A file system takes its time over one that is emptied
/// first, or made anew, a million times.
fn rewrite(mut file: &File, bytes: &[u8]) {
    file.rewind().unwrap();
    file.write_all(bytes).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
}

fn file(properties: WriterPropertiesBuilder) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    let texts = ["one text", "one text", "another", "ένα κείμενο"].map(ByteArray::from);
    let prints = [17, -1, 18, 1 << 40];
    let times = [
        vec![0, 0, 2_440_588],
        vec![7; 3],
        vec![u32::MAX; 3],
        vec![0; 3],
    ]
    .map(Int96::from);
    let costs = [[0xFF; 13], [0; 13], [0x7F; 13], [0x80; 13]];
    let costs = costs.map(|cost| FixedLenByteArray::from(cost.to_vec()));
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        write::<ByteArrayType>(&mut group, &texts);
        write::<ByteArrayType>(&mut group, &texts);
        write::<Int64Type>(&mut group, &prints);
        write::<DoubleType>(&mut group, &[0.5, -0.0, f64::NAN, 1e300]);
        write::<Int96Type>(&mut group, &times);
        write::<FixedLenByteArrayType>(&mut group, &costs);
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// Writes the next column: four values around a null.
fn write<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, values: &[T::T]) {
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<T>();
    typed
        .write_batch(values, Some(&[1, 1, 0, 1, 1]), None)
        .unwrap();
    column.close().unwrap();
}

/// The same rows in every encoding and compression that is read.
fn files() -> Vec<Vec<u8>> {
    let plain = WriterProperties::builder;
    let encoded = |encoding| {
        plain()
            .set_dictionary_enabled(false)
            .set_column_encoding("text".into(), encoding)
    };
    let mut files = vec![
        file(plain()),
        file(plain().set_dictionary_enabled(false)),
        file(plain().set_writer_version(WriterVersion::PARQUET_2_0)),
        file(
            plain()
                .set_data_page_row_count_limit(1)
                .set_write_batch_size(1),
        ),
        file(encoded(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
        file(
            encoded(Encoding::DELTA_BYTE_ARRAY)
                .set_column_encoding("print".into(), Encoding::DELTA_BINARY_PACKED),
        ),
    ];
    for compression in [
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ] {
        files.push(file(plain().set_compression(compression)));
    }
    files
}

/// PQ2: every row that the file says it has is a document or an error.
fn check_parquet(file: &File, columns: &TableColumns) {
    let name = "a.parquet".to_owned();
    let opened = ParquetDocuments::open(name, file.try_clone().unwrap(), columns, Ids::Any);
    let mut documents = match opened {
        Ok(documents) => documents,
        Err(error) => return assert_printable(&error.to_string()),
    };
    let rows = row_count(file);
    let mut seen = 0;
    let mut ended = false;
    let mut read = Vec::new();
    for result in documents.by_ref().take(ROWS) {
        assert!(!ended, "something follows the end");
        seen += 1;
        match result {
            Ok(document) => read.push(document),
            Err(error) => {
                ended = !error.is_bad_row();
                assert_printable(&error.to_string());
            }
        }
    }
    assert_within_limits(&read);
    if !ended && seen < ROWS {
        assert_eq!(seen as i64, rows);
    }
}

/// The rows that a file says it has.
fn row_count(file: &File) -> i64 {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file);
    metadata.unwrap().file_metadata().num_rows()
}

fn run(content: ContentColumn, rank: Option<(&str, RankedBy)>) {
    let columns = TableColumns {
        id: Some("id".to_owned()),
        content,
        rank: rank.map(|(name, by)| RankField {
            name: name.to_owned(),
            by,
        }),
    };
    let mut pieces: Vec<Vec<u8>> = vec![b"PAR1".to_vec(), vec![0; 4], vec![0xFF; 4]];
    pieces.push(b"\xFF\xFF\xFF\xFF\x0F".to_vec());
    pieces.push(b"\x15\x00\x15".to_vec());
    let file = tempfile::tempfile().unwrap();
    let victims = files();
    for victim in &victims {
        rewrite(&file, victim);
        check_parquet(&file, &columns);
    }
    proptest!(cases(), |(Bytes(bytes) in damaged(select(victims), pieces))| {
        rewrite(&file, &bytes);
        check_parquet(&file, &columns);
    });
}

fn texts_column() -> ContentColumn {
    ContentColumn::Texts(vec!["text".to_owned()])
}

#[test]
fn texts() {
    run(texts_column(), None);
}

#[test]
fn ranks() {
    for rank in [
        ("score", RankedBy::Number),
        ("cost", RankedBy::Number),
        ("time", RankedBy::Date),
    ] {
        run(texts_column(), Some(rank));
    }
}

#[test]
fn prints() {
    let content = ContentColumn::Fingerprint("print".to_owned(), Notation::Unsigned);
    run(content, None);
}
