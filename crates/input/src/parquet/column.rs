//! One column: what it must be, and its values one by one.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Type};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type, Int96Type,
};
use parquet::errors::ParquetError as LibraryError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescriptor};

use super::guard::guarded;
use super::kind::{Kind, of_int96};
use super::pages::{BoundedPages, CheckedPages};
use crate::cell::Cell;
use crate::table::{NamedColumn, TableError};

/// How many numbers are decoded at a time. Strings are decoded one by one, since each may hold on
/// to a page of its own.
pub const BATCH_ROWS: usize = 4096;

pub(super) const SHORT_PAGE: &str = "a page has fewer values than it says";

/// A column that was asked for.
pub(super) struct Column {
    name: String,
    index: usize,
    kind: Kind,
    descriptor: ColumnDescPtr,
}

/// The values of a column in one row group.
pub(super) struct Values {
    cells: AnyCells,
    kind: Kind,
}

/// Values by their physical type.
enum AnyCells {
    Bytes(Cells<ByteArrayType>),
    FixedBytes(Cells<FixedLenByteArrayType>),
    Int32(Cells<Int32Type>),
    Int64(Cells<Int64Type>),
    Int96(Cells<Int96Type>),
    Float(Cells<FloatType>),
    Double(Cells<DoubleType>),
}

/// Values of one physical type, some rows ahead.
pub(super) struct Cells<T: DataType> {
    reader: ColumnReaderImpl<T>,
    batch_rows: usize,
    /// The level of a value that is there; 0 where every value is.
    full_level: i16,
    levels: Vec<i16>,
    /// The values that are there, the last one first.
    values: Vec<T::T>,
    rows: usize,
    next: usize,
}

impl Column {
    pub(super) fn find(
        schema: &SchemaDescriptor,
        named: NamedColumn<'_>,
    ) -> Result<Self, TableError> {
        let columns = schema.columns();
        let names = columns.iter().map(|column| path(column));
        let index = named.only(places(columns, named.name), names)?;
        let descriptor = Arc::clone(&columns[index]);
        let kind = Kind::of(&descriptor).filter(|_| descriptor.max_rep_level() == 0);
        let kind = kind.filter(|kind| named.takes(kind.value_kind()));
        Ok(Self {
            name: named.name.to_owned(),
            index,
            kind: kind.ok_or_else(|| named.wrong_type(type_name(&descriptor)))?,
            descriptor,
        })
    }

    /// Its values in one row group of `rows` rows.
    pub(super) fn open(
        &self,
        pages: &Arc<BoundedPages>,
        group: &RowGroupMetaData,
        rows: u64,
    ) -> Result<Values, LibraryError> {
        let Some(chunk) = group.columns().get(self.index) else {
            return Err(LibraryError::General(format!(
                "the row group lacks the column \"{}\"",
                self.name
            )));
        };
        let pages = Box::new(CheckedPages::open(pages, chunk, rows)?);
        let cells = AnyCells::open(&self.descriptor, pages)?;
        let kind = self.kind;
        Ok(Values { cells, kind })
    }
}

/// The columns of this name, or inside structs by their path, such as `meta.url`. A field that is itself called so
/// comes before those inside the structs beside it.
fn places(columns: &[ColumnDescPtr], name: &str) -> Vec<usize> {
    let has_name = |place: &usize| path(&columns[*place]) == name;
    let named: Vec<usize> = (0..columns.len()).filter(has_name).collect();
    let parts = |place: usize| columns[place].path().parts();
    let comes_before = |one: &[String], other: &[String]| {
        let outer = one.len().saturating_sub(1);
        one.len() < other.len() && one[..outer] == other[..outer]
    };
    let is_hidden = |place: usize| {
        let mut others = named.iter();
        others.any(|other| comes_before(parts(*other), parts(place)))
    };
    let mut found = named.clone();
    found.retain(|place| !is_hidden(*place));
    found
}

fn path(column: &ColumnDescriptor) -> String {
    column.path().string()
}

fn type_name(descriptor: &ColumnDescriptor) -> String {
    let mut name = descriptor.physical_type().to_string();
    if descriptor.converted_type() != ConvertedType::NONE {
        name = format!("{name} ({})", descriptor.converted_type());
    } else if let Some(logical) = descriptor.logical_type_ref() {
        name = format!("{name} ({logical:?})");
    }
    if descriptor.max_rep_level() > 0 {
        name = format!("a list of {name}");
    }
    name
}

impl Cell<ByteArray> {
    pub(super) fn borrowed(&self) -> Cell<&[u8]> {
        match self {
            Self::Null => Cell::Null,
            Self::Bytes(bytes) => Cell::Bytes(bytes.data()),
            Self::Signed(number) => Cell::Signed(*number),
            Self::Unsigned(number) => Cell::Unsigned(*number),
            Self::Number(number) => Cell::Number(*number),
            Self::Time(time) => Cell::Time(*time),
        }
    }
}

impl Values {
    /// The value of the next row.
    pub(super) fn next(&mut self) -> Result<Cell<ByteArray>, LibraryError> {
        let kind = self.kind;
        let cell = match &mut self.cells {
            AnyCells::Bytes(cells) => match cells.next()? {
                Some(value) => Some(kind.of_bytes(there(value)?)?),
                None => None,
            },
            AnyCells::FixedBytes(cells) => match cells.next()? {
                Some(value) => Some(kind.of_bytes(there(value.into())?)?),
                None => None,
            },
            AnyCells::Int32(cells) => cells.next()?.map(|value| kind.of_int32(value)),
            AnyCells::Int64(cells) => cells.next()?.map(|value| kind.of_int64(value)),
            AnyCells::Int96(cells) => cells.next()?.map(|value| of_int96(&value)),
            AnyCells::Float(cells) => cells.next()?.map(|value| Cell::Number(value.into())),
            AnyCells::Double(cells) => cells.next()?.map(Cell::Number),
        };
        Ok(cell.unwrap_or(Cell::Null))
    }

    /// Reads on after the last row, since a page that goes beyond the rows is refused.
    pub(super) fn expect_end(&mut self) -> Result<(), LibraryError> {
        match &mut self.cells {
            AnyCells::Bytes(cells) => cells.has_next()?,
            AnyCells::FixedBytes(cells) => cells.has_next()?,
            AnyCells::Int32(cells) => cells.has_next()?,
            AnyCells::Int64(cells) => cells.has_next()?,
            AnyCells::Int96(cells) => cells.has_next()?,
            AnyCells::Float(cells) => cells.has_next()?,
            AnyCells::Double(cells) => cells.has_next()?,
        };
        Ok(())
    }
}

/// A value, unless it is the library's stand-in for one that the page lacks. That cannot be looked into.
fn there(value: ByteArray) -> Result<ByteArray, LibraryError> {
    if value == ByteArray::new() {
        return Err(LibraryError::EOF(SHORT_PAGE.to_owned()));
    }
    Ok(value)
}

impl AnyCells {
    fn open(descriptor: &ColumnDescPtr, pages: Box<CheckedPages>) -> Result<Self, LibraryError> {
        Ok(match descriptor.physical_type() {
            Type::BYTE_ARRAY => Self::Bytes(Cells::new(descriptor, pages, 1)),
            Type::FIXED_LEN_BYTE_ARRAY => Self::FixedBytes(Cells::new(descriptor, pages, 1)),
            Type::INT32 => Self::Int32(Cells::new(descriptor, pages, BATCH_ROWS)),
            Type::INT64 => Self::Int64(Cells::new(descriptor, pages, BATCH_ROWS)),
            Type::INT96 => Self::Int96(Cells::new(descriptor, pages, BATCH_ROWS)),
            Type::FLOAT => Self::Float(Cells::new(descriptor, pages, BATCH_ROWS)),
            Type::DOUBLE => Self::Double(Cells::new(descriptor, pages, BATCH_ROWS)),
            Type::BOOLEAN => {
                let reason = "booleans are not read".to_owned();
                return Err(LibraryError::General(reason));
            }
        })
    }
}

impl<T: DataType> Cells<T> {
    fn new(descriptor: &ColumnDescPtr, pages: Box<dyn PageReader>, batch_rows: usize) -> Self {
        Self {
            reader: ColumnReaderImpl::new(Arc::clone(descriptor), pages),
            batch_rows,
            full_level: descriptor.max_def_level(),
            levels: Vec::new(),
            values: Vec::new(),
            rows: 0,
            next: 0,
        }
    }

    fn next(&mut self) -> Result<Option<T::T>, LibraryError> {
        if !self.has_next()? {
            return Err(LibraryError::EOF(
                "a column has fewer values than the row group has rows".to_owned(),
            ));
        }
        let row = self.next;
        self.next += 1;
        if self.full_level > 0 && self.levels.get(row) != Some(&self.full_level) {
            return Ok(None);
        }
        match self.values.pop() {
            Some(value) => Ok(Some(value)),
            None => Err(LibraryError::EOF(SHORT_PAGE.to_owned())),
        }
    }

    /// Whether there is a row; decodes the next ones where none is left.
    fn has_next(&mut self) -> Result<bool, LibraryError> {
        if self.next < self.rows {
            return Ok(true);
        }
        self.next = 0;
        self.levels.clear();
        self.values.clear();
        let (levels, values) = (&mut self.levels, &mut self.values);
        let reader = &mut self.reader;
        let (rows, _, _) =
            guarded(|| reader.read_records(self.batch_rows, Some(levels), None, values))?;
        self.values.reverse();
        self.rows = rows;
        Ok(rows > 0)
    }
}
