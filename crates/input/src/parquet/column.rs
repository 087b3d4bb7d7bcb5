//! One column: what it must be, and its values one by one.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError as LibraryError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescriptor};

use super::guard::guarded;
use super::pages::{BoundedPages, CheckedPages};
use crate::table::{Cell, NamedColumn, TableError};

/// How many integers are decoded at a time. Strings are decoded one by one, since each may hold on
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

/// The type of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Int32 { signed: bool },
    Int64 { signed: bool },
}

/// The values of a column in one row group.
pub(super) enum Values {
    Bytes(Cells<ByteArrayType>),
    Int32(Cells<Int32Type>, bool),
    Int64(Cells<Int64Type>, bool),
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
        let kind = kind.filter(|kind| !named.is_text || *kind == Kind::Bytes);
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
        let descriptor = &self.descriptor;
        Ok(match self.kind {
            Kind::Bytes => Values::Bytes(Cells::new(descriptor, pages, 1)),
            Kind::Int32 { signed } => {
                Values::Int32(Cells::new(descriptor, pages, BATCH_ROWS), signed)
            }
            Kind::Int64 { signed } => {
                Values::Int64(Cells::new(descriptor, pages, BATCH_ROWS), signed)
            }
        })
    }
}

impl Kind {
    /// The type of a column's values, if it is supported.
    fn of(descriptor: &ColumnDescriptor) -> Option<Self> {
        let physical = descriptor.physical_type();
        if physical == Type::BYTE_ARRAY {
            return is_string(descriptor).then_some(Self::Bytes);
        }
        let signed = is_signed(descriptor)?;
        if physical == Type::INT32 {
            return Some(Self::Int32 { signed });
        }
        (physical == Type::INT64).then_some(Self::Int64 { signed })
    }
}

fn is_string(descriptor: &ColumnDescriptor) -> bool {
    if let Some(logical) = descriptor.logical_type_ref() {
        return matches!(
            logical,
            LogicalType::String | LogicalType::Enum | LogicalType::Json
        );
    }
    matches!(
        descriptor.converted_type(),
        ConvertedType::NONE | ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON
    )
}

/// Whether integers are signed; `None` where they stand for something else, such as a date.
fn is_signed(descriptor: &ColumnDescriptor) -> Option<bool> {
    use ConvertedType as Converted;
    if let Some(logical) = descriptor.logical_type_ref() {
        let LogicalType::Integer(integer) = logical else {
            return None;
        };
        return Some(integer.is_signed);
    }
    let converted = descriptor.converted_type();
    if matches!(
        converted,
        Converted::UINT_8 | Converted::UINT_16 | Converted::UINT_32 | Converted::UINT_64
    ) {
        return Some(false);
    }
    matches!(
        converted,
        Converted::NONE
            | Converted::INT_8
            | Converted::INT_16
            | Converted::INT_32
            | Converted::INT_64
    )
    .then_some(true)
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
        }
    }
}

impl Values {
    /// The value of the next row.
    pub(super) fn next(&mut self) -> Result<Cell<ByteArray>, LibraryError> {
        let cell = match self {
            Self::Bytes(cells) => {
                let value = cells.next()?;
                // The library's stand-in for a value that the page lacks. It cannot be looked into.
                if value.as_ref() == Some(&ByteArray::new()) {
                    return Err(LibraryError::EOF(SHORT_PAGE.to_owned()));
                }
                value.map(Cell::Bytes)
            }
            Self::Int32(cells, true) => cells.next()?.map(|value| Cell::Signed(value.into())),
            Self::Int32(cells, false) => {
                let value = cells.next()?.map(i32::cast_unsigned);
                value.map(|value| Cell::Unsigned(value.into()))
            }
            Self::Int64(cells, true) => cells.next()?.map(Cell::Signed),
            Self::Int64(cells, false) => {
                let value = cells.next()?.map(i64::cast_unsigned);
                value.map(Cell::Unsigned)
            }
        };
        Ok(cell.unwrap_or(Cell::Null))
    }

    /// Reads on after the last row, since a page that goes beyond the rows is refused.
    pub(super) fn expect_end(&mut self) -> Result<(), LibraryError> {
        match self {
            Self::Bytes(cells) => cells.has_next()?,
            Self::Int32(cells, _) => cells.has_next()?,
            Self::Int64(cells, _) => cells.has_next()?,
        };
        Ok(())
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
