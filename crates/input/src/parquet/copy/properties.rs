//! How a copy is written: as its file is.

use parquet::basic::Encoding;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

/// Encodings that are chosen for a column; the library chooses the others by itself.
const CHOSEN: [Encoding; 4] = [
    Encoding::DELTA_BINARY_PACKED,
    Encoding::DELTA_LENGTH_BYTE_ARRAY,
    Encoding::DELTA_BYTE_ARRAY,
    Encoding::BYTE_STREAM_SPLIT,
];

/// The same metadata, and for each column the compression and encoding that it has in the first row group.
pub(super) fn of(metadata: &ParquetMetaData) -> WriterProperties {
    let file = metadata.file_metadata();
    let first = metadata.row_groups().first();
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("simshard ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(file.key_value_metadata().cloned())
        .set_sorting_columns(first.and_then(|group| group.sorting_columns().cloned()));
    for column in first.into_iter().flat_map(|group| group.columns()) {
        properties = with_column(properties, column);
    }
    properties.build()
}

fn with_column(
    properties: WriterPropertiesBuilder,
    column: &ColumnChunkMetaData,
) -> WriterPropertiesBuilder {
    let path = column.column_path();
    let encodings: Vec<Encoding> = column.encodings().collect();
    let is_dictionary = |encoding: &Encoding| {
        [Encoding::PLAIN_DICTIONARY, Encoding::RLE_DICTIONARY].contains(encoding)
    };
    let has_dictionary = encodings.iter().any(is_dictionary);
    let properties = properties
        .set_column_compression(path.clone(), column.compression())
        .set_column_dictionary_enabled(path.clone(), has_dictionary);
    match CHOSEN.into_iter().find(|chosen| encodings.contains(chosen)) {
        Some(chosen) => properties.set_column_encoding(path.clone(), chosen),
        None => properties,
    }
}
