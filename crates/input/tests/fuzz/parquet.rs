//! Parquet files, damaged: their ends, their page headers and their pages.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use proptest::sample::select;
use simshard_input::parquet::{ContentColumn, ParquetDocuments, TableColumns};
use simshard_input::{Ids, Notation};

use super::splice::{Bytes, damaged};
use super::{assert_printable, assert_within_limits, cases};

const SCHEMA: &str = "message m {
    optional binary id (STRING);
    optional binary text (STRING);
    optional int64 print (UINT_64);
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
    let levels = [1, 1, 0, 1, 1];
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        for _ in 0..2 {
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<ByteArrayType>();
            typed.write_batch(&texts, Some(&levels), None).unwrap();
            column.close().unwrap();
        }
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<Int64Type>();
        typed.write_batch(&prints, Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
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

fn columns(content: ContentColumn) -> TableColumns {
    TableColumns {
        id: Some("id".to_owned()),
        content,
        rank: None,
    }
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

fn run(content: ContentColumn) {
    let columns = columns(content);
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

#[test]
fn texts() {
    run(ContentColumn::Texts(vec!["text".to_owned()]));
}

#[test]
fn prints() {
    run(ContentColumn::Fingerprint(
        "print".to_owned(),
        Notation::Unsigned,
    ));
}
