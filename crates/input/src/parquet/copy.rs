//! Some rows of a file as a file of its own: the same columns, and in each row the same values.
//!
//! Columns are copied one after another, some rows at a time, with the levels that say where values stand in lists
//! and structs. So a column may be of any type.
//!
//! ```text
//!     in     | row group 1           | row group 2           | row group 3  |
//!     out    | what is kept of 1 and 2, if it is no more rows | of 3 ...    |
//! ```
//!
//! # Invariants
//! - PQ4: a copy has the rows that are kept in their order, with all their values, and no other. Of a column,
//!   [`column::SLICE_BYTES`] and a row and a page more are held, and what the library has encoded of one row group.

mod column;
mod properties;

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parquet::column::writer::ColumnWriter;
use parquet::data_type::{
    BoolType, ByteArrayType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
    Int96Type,
};
use parquet::errors::ParquetError as LibraryError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};

use super::error::{self, ParquetError};
use super::guard::guarded;
use super::pages::BoundedPages;
use super::read_metadata;
use column::ColumnCopy;

/// A piece of the copy has about this many bytes.
const PIECE_BYTES: usize = 256 << 10;

/// What goes wrong in copying.
enum Fault<E> {
    Library(LibraryError),
    Taker(E),
}

/// Rows of a row group, by their numbers from 1.
struct Rows {
    group: usize,
    numbers: Range<u64>,
}

/// Copies rows of a file.
struct Copier<'a, T> {
    pages: Arc<BoundedPages>,
    metadata: &'a ParquetMetaData,
    is_kept: &'a dyn Fn(u64) -> bool,
    written: Receiver<Vec<u8>>,
    waiting: Vec<u8>,
    take: T,
    /// The row group that is being read, from 1, for errors.
    group: usize,
}

/// Copies those rows of a file of which this is true, by their number from 1. Hands the bytes of the copy to `take`, and
/// returns the number of all rows. `name` stands for the file in errors, which `failed` makes those of the caller.
pub(crate) fn copy_rows<E>(
    name: &str,
    file: File,
    is_kept: &dyn Fn(u64) -> bool,
    take: impl FnMut(Vec<u8>) -> Result<(), E>,
    failed: impl FnOnce(ParquetError) -> E,
) -> Result<u64, E> {
    let pages = Arc::new(BoundedPages::new(file));
    let metadata = match guarded(|| read_metadata(&pages)) {
        Ok(metadata) => metadata,
        Err(error) => return Err(failed(ParquetError::not_parquet(name.to_owned(), &error))),
    };
    let (sender, written) = channel();
    let mut copier = Copier {
        pages,
        metadata: &metadata,
        is_kept,
        written,
        waiting: Vec::new(),
        take,
        group: 0,
    };
    match copier.copy(Sink(sender)) {
        Ok(rows) => Ok(rows),
        Err(Fault::Taker(error)) => Err(error),
        Err(Fault::Library(error)) => Err(failed(ParquetError::NotCopied {
            file: name.to_owned(),
            group: copier.group,
            groups: metadata.num_row_groups(),
            reason: error::reason(&error),
        })),
    }
}

impl<E, T: FnMut(Vec<u8>) -> Result<(), E>> Copier<'_, T> {
    fn copy(&mut self, sink: Sink) -> Result<u64, Fault<E>> {
        let schema = self.metadata.file_metadata().schema_descr();
        let properties = Arc::new(properties::of(self.metadata));
        let mut writer =
            guarded(|| SerializedFileWriter::new(sink, schema.root_schema_ptr(), properties))?;
        let all = rows_of(self.metadata);
        for rows in together(&all, self.is_kept) {
            let group = guarded(|| writer.next_row_group())?;
            self.copy_group(group, &rows)?;
        }
        guarded(|| writer.finish())?;
        drop(writer);
        self.hand_on(1)?;
        Ok(all.last().map_or(0, |rows| rows.numbers.end - 1))
    }

    /// Writes a row group of what is kept of some.
    fn copy_group(
        &mut self,
        mut to: SerializedRowGroupWriter<'_, Sink>,
        from: &[&Rows],
    ) -> Result<(), Fault<E>> {
        let columns = self.metadata.file_metadata().schema_descr().num_columns();
        for index in 0..columns {
            let Some(mut column) = guarded(|| to.next_column())? else {
                return Err(LibraryError::EOF("a row group lacks columns".to_owned()).into());
            };
            for rows in from {
                self.group = rows.group + 1;
                self.copy_column(&mut column, index, rows)?;
            }
            guarded(|| column.close())?;
            self.hand_on(PIECE_BYTES)?;
        }
        guarded(|| to.close())?;
        Ok(())
    }

    /// Writes what is kept of a column in one row group.
    fn copy_column(
        &mut self,
        to: &mut SerializedColumnWriter<'_>,
        index: usize,
        rows: &Rows,
    ) -> Result<(), Fault<E>> {
        let group = self.metadata.row_group(rows.group);
        let numbers = rows.numbers.clone();
        let copy = ColumnCopy::open(&self.pages, group, index, numbers, self.is_kept)?;
        let written = || self.hand_on(PIECE_BYTES);
        match to.untyped() {
            ColumnWriter::BoolColumnWriter(to) => copy.run::<BoolType, E>(to, written),
            ColumnWriter::Int32ColumnWriter(to) => copy.run::<Int32Type, E>(to, written),
            ColumnWriter::Int64ColumnWriter(to) => copy.run::<Int64Type, E>(to, written),
            ColumnWriter::Int96ColumnWriter(to) => copy.run::<Int96Type, E>(to, written),
            ColumnWriter::FloatColumnWriter(to) => copy.run::<FloatType, E>(to, written),
            ColumnWriter::DoubleColumnWriter(to) => copy.run::<DoubleType, E>(to, written),
            ColumnWriter::ByteArrayColumnWriter(to) => copy.run::<ByteArrayType, E>(to, written),
            ColumnWriter::FixedLenByteArrayColumnWriter(to) => {
                copy.run::<FixedLenByteArrayType, E>(to, written)
            }
        }
    }

    /// Hands on what was written, if it is this many bytes.
    fn hand_on(&mut self, least: usize) -> Result<(), Fault<E>> {
        for bytes in self.written.try_iter() {
            self.waiting.extend_from_slice(&bytes);
            if self.waiting.len() >= PIECE_BYTES {
                (self.take)(mem::take(&mut self.waiting)).map_err(Fault::Taker)?;
            }
        }
        if self.waiting.len() >= least {
            (self.take)(mem::take(&mut self.waiting)).map_err(Fault::Taker)?;
        }
        Ok(())
    }
}

/// The rows of each row group.
fn rows_of(metadata: &ParquetMetaData) -> Vec<Rows> {
    let mut first = 1;
    let groups = metadata.row_groups().iter().enumerate();
    let rows = groups.map(|(group, of)| {
        let numbers = first..first + of.num_rows().unsigned_abs();
        first = numbers.end;
        Rows { group, numbers }
    });
    rows.collect()
}

/// The row groups that become one: those that follow one another and have no more kept rows than the largest has rows.
/// So row groups stay about as large as they were.
fn together<'a>(all: &'a [Rows], is_kept: &dyn Fn(u64) -> bool) -> Vec<Vec<&'a Rows>> {
    let most = all.iter().map(|rows| rows.numbers.clone().count()).max();
    let most = most.unwrap_or_default();
    let mut together: Vec<Vec<&Rows>> = Vec::new();
    let mut held = 0;
    for rows in all {
        let kept = rows.numbers.clone().filter(|row| is_kept(*row)).count();
        if kept == 0 {
            continue;
        }
        match together.last_mut().filter(|_| held + kept <= most) {
            Some(last) => {
                last.push(rows);
                held += kept;
            }
            None => {
                together.push(vec![rows]);
                held = kept;
            }
        }
    }
    together
}

impl<E> From<LibraryError> for Fault<E> {
    fn from(error: LibraryError) -> Self {
        Self::Library(error)
    }
}

/// Where the library writes to.
struct Sink(Sender<Vec<u8>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.send(bytes.to_vec());
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
