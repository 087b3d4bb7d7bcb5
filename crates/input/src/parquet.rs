//! The Parquet format: a document is a row, and what it carries stands in two columns. A third may rank it.
//!
//! | column      | may be                                                                        |
//! |-------------|-------------------------------------------------------------------------------|
//! | id          | a string, or an integer of any width                                          |
//! | text        | a string                                                                      |
//! | fingerprint | an integer of any width, or a string of decimal digits                        |
//! | number      | an integer, a float of 32 or 64 bits, or a decimal of at most 38 digits        |
//! | date        | a string, a date, or a timestamp, INT96 too; without a time zone it is in UTC |
//!
//! A string is a BYTE_ARRAY that is marked as STRING, ENUM or JSON, or not marked at all, and holds UTF-8. A column
//! inside structs is named by its path, `meta.url`; lists are refused. An integer that is marked unsigned is read so.
//! Any other is signed, and no fingerprint where it is negative, since nothing says that its bits were meant.
//!
//! Columns are read through the library's column readers, not its Arrow reader. A cold build of the library with Arrow
//! took 248 s of CPU instead of 77 s.
//!
//! # Invariants
//! - PQ1: no page that claims more than [`MAX_PAGE_BYTES`] is unpacked. Of each column one page, its dictionary and
//!   [`BATCH_ROWS`] values are held, however large the file is. (The library unpacks a page that claims less than it
//!   holds all the same. Of a header that claims sizes twice, which no writer makes, it takes the last ones.)
//! - PQ2: a damaged file is an error that names it, never a panic, and never fewer rows in silence. Every row that the
//!   file says it has is a document or an error.

mod column;
mod copy;
mod delta;
mod error;
mod guard;
mod kind;
mod pages;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError as LibraryError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

pub use column::BATCH_ROWS;
use column::{Column, Values};
pub(crate) use copy::copy_rows;
pub use error::ParquetError;
use guard::guarded;
use pages::BoundedPages;
pub use pages::MAX_PAGE_BYTES;

use crate::cell::Cell;
pub use crate::fields::{ContentColumn, RankField, RankedBy, TableColumns};
use crate::ids::Ids;
pub use crate::row_problem::RowProblem;
use crate::table::{Table, TableDocuments};

/// The documents of one file.
pub type ParquetDocuments = TableDocuments<ParquetTable>;

/// The rows of one file.
pub struct ParquetTable {
    pages: Arc<BoundedPages>,
    metadata: ParquetMetaData,
    columns: Vec<Column>,
    next_group: usize,
    group: Option<Group>,
    /// The values of the row that was read last.
    row: Vec<Cell<ByteArray>>,
}

/// The row group being read.
struct Group {
    rows_left: u64,
    /// By the columns.
    values: Vec<Values>,
}

impl ParquetDocuments {
    /// Opens a file and finds its columns. `name` stands for it in errors. Reading moves the
    /// position of `file`, also as other handles to it see it.
    ///
    /// # Errors
    /// If the file is no Parquet file or damaged, lacks a column, or has a column of a type that
    /// cannot be what it is to be.
    pub fn open(
        name: String,
        file: File,
        columns: &TableColumns,
        ids: Ids,
    ) -> Result<Self, ParquetError> {
        let pages = BoundedPages::new(file);
        let metadata = match guarded(|| read_metadata(&pages)) {
            Ok(metadata) => metadata,
            Err(error) => return Err(ParquetError::not_parquet(name, &error)),
        };
        let schema = metadata.file_metadata().schema_descr();
        let table = ParquetTable {
            columns: columns.find(&name, |named| Column::find(schema, named))?,
            pages: Arc::new(pages),
            metadata,
            next_group: 0,
            group: None,
            row: Vec::new(),
        };
        Ok(Self::new(name, table, columns.clone(), ids))
    }
}

impl Table for ParquetTable {
    type Fault = LibraryError;
    type Error = ParquetError;

    /// Opens the next row groups until there is one.
    fn has_row(&mut self) -> Result<bool, LibraryError> {
        loop {
            if let Some(group) = &mut self.group {
                if group.rows_left > 0 {
                    return Ok(true);
                }
                group.expect_end()?;
                self.group = None;
            }
            if self.next_group == self.metadata.num_row_groups() {
                return Ok(false);
            }
            self.next_group += 1;
            self.group = Some(self.open_group(self.next_group - 1)?);
        }
    }

    /// Takes every column's value before any is looked at, so that a bad one leaves the columns in step.
    fn read_row(&mut self) -> Result<Vec<Cell<&[u8]>>, LibraryError> {
        let Some(group) = &mut self.group else {
            return Err(LibraryError::EOF("no row group".to_owned()));
        };
        group.rows_left -= 1;
        self.row.clear();
        for values in &mut group.values {
            self.row.push(values.next()?);
        }
        Ok(self.row.iter().map(Cell::borrowed).collect())
    }

    fn located(&self, fault: LibraryError, file: String, row: u64) -> ParquetError {
        ParquetError::Damaged {
            file,
            row,
            group: self.next_group,
            groups: self.metadata.num_row_groups(),
            reason: error::reason(&fault),
        }
    }
}

impl ParquetTable {
    fn open_group(&self, index: usize) -> Result<Group, LibraryError> {
        let group = self.metadata.row_group(index);
        let rows = u64::try_from(group.num_rows())
            .map_err(|_| LibraryError::General(format!("{} rows", group.num_rows())))?;
        let open = |column: &Column| column.open(&self.pages, group, rows);
        Ok(Group {
            rows_left: rows,
            values: self.columns.iter().map(open).collect::<Result<_, _>>()?,
        })
    }
}

impl Group {
    /// Complains about values beyond the rows that the file says it has.
    fn expect_end(&mut self) -> Result<(), LibraryError> {
        for values in &mut self.values {
            values.expect_end()?;
        }
        Ok(())
    }
}

/// Reads a file's end, which says where everything stands.
fn read_metadata(pages: &BoundedPages) -> Result<ParquetMetaData, LibraryError> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(pages)?;
    let rows = metadata.file_metadata().num_rows();
    let mut in_groups: i64 = 0;
    for group in metadata.row_groups() {
        in_groups = in_groups.saturating_add(group.num_rows());
    }
    if rows != in_groups {
        return Err(LibraryError::General(format!(
            "it says to have {rows} rows, but has {in_groups} in its row groups"
        )));
    }
    Ok(metadata)
}
