//! What reading Parquet promises, rule by rule.

mod copy;
mod damage;
mod files;
mod rows;

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use simshard_simhash::Fingerprint;

use super::{ContentColumn, ParquetDocuments, ParquetError, TableColumns};
use crate::{Content, Document, Ids, Notation};

/// The values of one column of one row group; `None` is null.
enum Chunk {
    Text(Vec<Option<&'static [u8]>>),
    Int64(Vec<Option<i64>>),
    Int32(Vec<Option<i32>>),
}

use Chunk::{Int32, Int64, Text};

fn some<T: Clone>(values: &[T]) -> Vec<Option<T>> {
    values.iter().cloned().map(Some).collect()
}

fn texts(values: &[&'static str]) -> Chunk {
    Text(values.iter().map(|text| Some(text.as_bytes())).collect())
}

/// A file with these columns in each of its row groups.
fn file_of(schema: &str, properties: WriterPropertiesBuilder, groups: &[Vec<Chunk>]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for group in groups {
        let mut group_writer = writer.next_row_group().unwrap();
        for chunk in group {
            let mut column = group_writer.next_column().unwrap().unwrap();
            match chunk {
                Text(values) => {
                    let values: Vec<_> = values
                        .iter()
                        .map(|value| value.map(ByteArray::from))
                        .collect();
                    write::<ByteArrayType>(&mut column, &values);
                }
                Int64(values) => write::<Int64Type>(&mut column, values),
                Int32(values) => write::<Int32Type>(&mut column, values),
            }
            column.close().unwrap();
        }
        group_writer.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn write<T: DataType>(
    column: &mut parquet::file::writer::SerializedColumnWriter<'_>,
    values: &[Option<T::T>],
) {
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    let writer = column.typed::<T>();
    writer.write_batch(&present, Some(&levels), None).unwrap();
}

fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder()
}

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn text_columns() -> TableColumns {
    TableColumns {
        id: Some("id".to_owned()),
        content: ContentColumn::Texts(vec!["text".to_owned()]),
        rank: None,
    }
}

fn fingerprint_columns() -> TableColumns {
    TableColumns {
        id: Some("id".to_owned()),
        content: ContentColumn::Fingerprint("fingerprint".to_owned(), Notation::Unsigned),
        rank: None,
    }
}

fn open(bytes: &[u8], columns: &TableColumns) -> Result<ParquetDocuments, ParquetError> {
    ParquetDocuments::open("a.parquet".to_owned(), on_disk(bytes), columns, Ids::Any)
}

fn read(bytes: &[u8], columns: &TableColumns) -> Vec<Document> {
    let documents = open(bytes, columns).unwrap();
    documents.map(Result::unwrap).collect()
}

/// What is left of each row: the document, or the message.
fn results(bytes: &[u8], columns: &TableColumns) -> Vec<Result<Document, String>> {
    let documents = open(bytes, columns).unwrap();
    let results = documents.map(|result| result.map_err(|error| error.to_string()));
    results.collect()
}

/// The message for a file that is refused before its first row.
fn refusal(bytes: &[u8], columns: &TableColumns) -> String {
    match open(bytes, columns) {
        Ok(_) => panic!("the file should be refused"),
        Err(error) => error.to_string(),
    }
}

fn text(id: &str, text: &str) -> Document {
    Document {
        id: id.to_owned(),
        content: Content::Text(text.to_owned()),
    }
}

fn print(id: &str, fingerprint: u64) -> Document {
    Document {
        id: id.to_owned(),
        content: Content::Fingerprint(Fingerprint(fingerprint)),
    }
}

const TEXT_SCHEMA: &str = "message m {
    optional binary id (STRING);
    optional binary text (STRING);
}";

/// The ways in which the same texts can be written.
fn ways() -> Vec<(&'static str, WriterPropertiesBuilder)> {
    let gzip = Compression::GZIP(GzipLevel::default());
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let encoded = |encoding| plain().set_dictionary_enabled(false).set_encoding(encoding);
    let v2 = plain().set_writer_version(WriterVersion::PARQUET_2_0);
    vec![
        ("dictionary", plain()),
        ("plain", plain().set_dictionary_enabled(false)),
        ("snappy", plain().set_compression(Compression::SNAPPY)),
        ("gzip", plain().set_compression(gzip)),
        ("zstd", plain().set_compression(zstd)),
        ("lz4", plain().set_compression(Compression::LZ4)),
        ("lz4_raw", plain().set_compression(Compression::LZ4_RAW)),
        ("v2 snappy", v2.clone().set_compression(Compression::SNAPPY)),
        ("v2", v2.clone()),
        ("v2 plain", v2.set_dictionary_enabled(false)),
        ("delta length", encoded(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
        ("delta", encoded(Encoding::DELTA_BYTE_ARRAY)),
        (
            "small pages",
            plain()
                .set_data_page_row_count_limit(1)
                .set_write_batch_size(1),
        ),
    ]
}
