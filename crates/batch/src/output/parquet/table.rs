//! A table of strings and integers that is written in row groups of bounded size.

use std::borrow::Cow;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Type};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

/// The most rows of a row group.
pub(super) const ROWS_PER_GROUP: usize = 1 << 17;
/// A row group whose ids take this many bytes is written before it is full of rows.
pub(super) const ID_BYTES_PER_GROUP: usize = 32 << 20;

/// Columns whose values come again and again.
const REPETITIVE: [&str; 2] = ["cluster", "distance"];

/// Writes rows of any of the schemas.
pub(super) struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
    text_bytes: usize,
}

/// A value of a row.
pub(super) enum Cell<'a> {
    Text(Cow<'a, str>),
    Unsigned(u64),
    Small(i32),
}

/// The values of one column that wait to be written.
enum Column {
    Text(Texts),
    Unsigned(Vec<i64>),
    Small(Vec<i32>),
}

/// Strings one after another in one buffer.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<W: Write + Send> Table<W> {
    pub(super) fn new(writer: W, schema: &str) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(schema).map_err(into_io)?);
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("simshard ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false);
        for name in REPETITIVE {
            let path = ColumnPath::from(name);
            properties = properties.set_column_dictionary_enabled(path, true);
        }
        let properties = Arc::new(properties.build());
        let writer = SerializedFileWriter::new(writer, schema, properties).map_err(into_io)?;
        let columns = writer.schema_descr().columns().iter();
        let columns = columns.map(|column| Column::of_type(column.physical_type()));
        let columns = columns.collect::<io::Result<_>>()?;
        Ok(Self {
            writer,
            columns,
            rows: 0,
            text_bytes: 0,
        })
    }

    /// Adds a row, whose cells are those of the schema.
    pub(super) fn push(&mut self, row: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(row) {
            match (column, cell) {
                (Column::Text(texts), Cell::Text(text)) => {
                    texts.push(text);
                    self.text_bytes += text.len();
                }
                // Unsigned integers are stored as the signed ones of the same bits.
                (Column::Unsigned(values), Cell::Unsigned(value)) => {
                    values.push(value.cast_signed());
                }
                (Column::Small(values), Cell::Small(value)) => values.push(*value),
                (Column::Text(_) | Column::Unsigned(_) | Column::Small(_), _) => {
                    return Err(io::Error::other("a row does not fit the table's schema"));
                }
            }
        }
        self.rows += 1;
        if self.rows == ROWS_PER_GROUP || self.text_bytes >= ID_BYTES_PER_GROUP {
            self.write_group().map_err(into_io)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group().map_err(into_io)?;
        }
        self.writer.into_inner().map_err(into_io)
    }

    /// The rows and the bytes of strings that wait to be written.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        let text_bytes = self.columns.iter().map(|column| match column {
            Column::Text(texts) => texts.bytes.len(),
            Column::Unsigned(_) | Column::Small(_) => 0,
        });
        (self.rows, text_bytes.sum())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else {
                break;
            };
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        self.rows = 0;
        self.text_bytes = 0;
        Ok(())
    }
}

impl Column {
    fn of_type(physical: Type) -> io::Result<Self> {
        if physical == Type::BYTE_ARRAY {
            return Ok(Self::Text(Texts::default()));
        }
        if physical == Type::INT64 {
            return Ok(Self::Unsigned(Vec::new()));
        }
        if physical == Type::INT32 {
            return Ok(Self::Small(Vec::new()));
        }
        Err(io::Error::other(format!("no table has {physical} columns")))
    }

    /// Writes the values and forgets them.
    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Text(texts) => {
                let values = texts.take();
                let writer = writer.typed::<ByteArrayType>();
                writer.write_batch(&values, None, None)?;
            }
            Self::Unsigned(values) => {
                let writer = writer.typed::<Int64Type>();
                writer.write_batch(values, None, None)?;
                values.clear();
            }
            Self::Small(values) => {
                let writer = writer.typed::<Int32Type>();
                writer.write_batch(values, None, None)?;
                values.clear();
            }
        }
        Ok(())
    }
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// All strings, as parts of one buffer.
    fn take(&mut self) -> Vec<ByteArray> {
        let bytes = Bytes::from(mem::take(&mut self.bytes));
        let mut start = 0;
        let mut values = Vec::with_capacity(self.ends.len());
        for end in self.ends.drain(..) {
            values.push(ByteArray::from(bytes.slice(start..end)));
            start = end;
        }
        values
    }
}

/// Gives back what the writer said, where it was the writer that failed.
fn into_io(error: ParquetError) -> io::Error {
    let ParquetError::External(inner) = error else {
        return io::Error::other(error);
    };
    match inner.downcast::<io::Error>() {
        Ok(error) => *error,
        Err(inner) => io::Error::other(inner),
    }
}
