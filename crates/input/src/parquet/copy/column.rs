//! A column of a row group, copied in slices: the values of some rows, with their levels.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::ParquetError as LibraryError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::ColumnDescPtr;

use super::Fault;
use crate::parquet::column::SHORT_PAGE;
use crate::parquet::guard::guarded;
use crate::parquet::pages::{BoundedPages, CheckedPages};

/// Most rows of a slice, and bytes after which it ends.
const SLICE_ROWS: u64 = 1024;
pub(super) const SLICE_BYTES: usize = 1 << 20;

/// What is copied.
pub(super) struct ColumnCopy<'a> {
    descriptor: ColumnDescPtr,
    pages: Box<dyn PageReader>,
    /// The numbers of the rows.
    rows: Range<u64>,
    is_kept: &'a dyn Fn(u64) -> bool,
}

/// The values of some rows.
struct Slice<T: DataType> {
    /// Those that are there.
    values: Vec<T::T>,
    /// The level of each, or of the lack of it; none where every value is there.
    definitions: Vec<i16>,
    /// Where lists go on; none where there are no lists.
    repetitions: Vec<i16>,
    bytes: usize,
}

impl<'a> ColumnCopy<'a> {
    /// Opens a column.
    pub(super) fn open(
        pages: &Arc<BoundedPages>,
        group: &RowGroupMetaData,
        index: usize,
        rows: Range<u64>,
        is_kept: &'a dyn Fn(u64) -> bool,
    ) -> Result<Self, LibraryError> {
        let chunk = group.columns().get(index);
        let chunk =
            chunk.ok_or_else(|| LibraryError::General("a row group lacks a column".to_owned()))?;
        let pages = CheckedPages::open(pages, chunk, rows.end - rows.start)?;
        Ok(Self {
            descriptor: chunk.column_descr_ptr(),
            pages: Box::new(pages),
            rows,
            is_kept,
        })
    }

    /// Writes what is kept, and says so after each slice.
    pub(super) fn run<T: DataType, E>(
        self,
        to: &mut ColumnWriterImpl<'_, T>,
        mut written: impl FnMut() -> Result<(), Fault<E>>,
    ) -> Result<(), Fault<E>> {
        let has_levels = self.descriptor.max_def_level() > 0;
        let has_lists = self.descriptor.max_rep_level() > 0;
        let mut reader = ColumnReaderImpl::<T>::new(self.descriptor.clone(), self.pages);
        let mut row = self.rows.start;
        while row < self.rows.end {
            let first = row;
            let last = self.rows.end.min(first + SLICE_ROWS);
            let mut slice = Slice::<T>::default();
            while row < last && slice.bytes < SLICE_BYTES {
                // Of values of any length each may hold on to a page of its own.
                let is_long = has_lists || mem::needs_drop::<T::T>();
                let most = if is_long { 1 } else { last - row };
                row += slice.read(&mut reader, most)?;
            }
            if !(first..row).all(self.is_kept) {
                let full = self.descriptor.max_def_level();
                slice.retain(full, first..row, self.is_kept)?;
            }
            let definitions = has_levels.then_some(&*slice.definitions);
            let repetitions = has_lists.then_some(&*slice.repetitions);
            guarded(|| to.write_batch(&slice.values, definitions, repetitions))?;
            written()?;
        }
        // A page that goes beyond the rows is refused.
        let beyond = Slice::<T>::default().read_any(&mut reader, 1)?;
        match beyond {
            0 => Ok(()),
            _ => {
                Err(LibraryError::General("a column has values beyond its rows".to_owned()).into())
            }
        }
    }
}

impl<T: DataType> Default for Slice<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
            bytes: 0,
        }
    }
}

impl<T: DataType> Slice<T> {
    /// Adds the next rows, at least one. Returns how many.
    fn read(&mut self, reader: &mut ColumnReaderImpl<T>, most: u64) -> Result<u64, LibraryError> {
        match self.read_any(reader, most)? {
            0 => Err(LibraryError::EOF(
                "a column has fewer values than the row group has rows".to_owned(),
            )),
            rows => Ok(rows),
        }
    }

    /// Adds the next rows, if there are any.
    fn read_any(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        most: u64,
    ) -> Result<u64, LibraryError> {
        let before = self.values.len();
        guarded(|| {
            let (definitions, repetitions) = (&mut self.definitions, &mut self.repetitions);
            let (rows, _, levels) = reader.read_records(
                most as usize,
                Some(definitions),
                Some(repetitions),
                &mut self.values,
            )?;
            let new = self.values[before..].iter();
            let bytes: usize = new.map(|value| value.as_bytes().len()).sum();
            self.bytes += bytes + levels * mem::size_of::<(i16, i16)>();
            Ok(rows as u64)
        })
    }

    /// Leaves out the values of all rows but those that are kept. `full` is the level of a value that is there.
    fn retain(
        &mut self,
        full: i16,
        rows: Range<u64>,
        is_kept: &dyn Fn(u64) -> bool,
    ) -> Result<(), LibraryError> {
        let all = mem::take(self);
        let levels = match all.definitions.len() {
            0 => all.values.len(),
            levels => levels,
        };
        let mut values = all.values.into_iter();
        let mut next = rows.start;
        let mut keeps = false;
        for at in 0..levels {
            let (definition, repetition) = (all.definitions.get(at), all.repetitions.get(at));
            if repetition.is_none_or(|level| *level == 0) {
                keeps = is_kept(next);
                next += 1;
            }
            if definition.is_none_or(|level| *level == full) {
                let value = values.next();
                let value = value.ok_or_else(|| LibraryError::EOF(SHORT_PAGE.to_owned()))?;
                self.values.extend(keeps.then_some(value));
            }
            if keeps {
                self.definitions.extend(definition);
                self.repetitions.extend(repetition);
            }
        }
        if next != rows.end || values.next().is_some() {
            let reason = "a column has values of other rows than it says";
            return Err(LibraryError::General(reason.to_owned()));
        }
        Ok(())
    }
}
