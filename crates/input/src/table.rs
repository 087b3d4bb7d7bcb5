//! Tables with types, such as Arrow and Parquet: from the values of a row to a document.
//!
//! A format finds the columns that are named, and reads their values row by row ([`Table`]). What they may be, and what
//! is wrong with a row, is the same for all.

mod cell;
mod error;
mod named;

use cell::{fingerprint_of, id_of, texts_of};
pub use error::TableError;
pub(crate) use named::{NamedColumn, ValueKind};

use crate::cell::Cell;
use crate::document::{Content, Document};
use crate::fields::{ContentColumn, TableColumns};
use crate::ids::Ids;
use crate::problem::LineProblem;
use crate::rank::LOWEST;
use crate::row_number::RowNumber;
use crate::row_problem::RowProblem;

/// A file of rows, as its format reads it.
pub trait Table {
    /// Why it cannot be read on.
    type Fault;
    /// A fault, or the fault of a row, with its place.
    type Error: From<TableError>;

    /// Whether there is another row.
    fn has_row(&mut self) -> Result<bool, Self::Fault>;

    /// The values of the next row, in the order in which [`TableColumns::find`] found their columns.
    fn read_row(&mut self) -> Result<Vec<Cell<&[u8]>>, Self::Fault>;

    /// The error of a fault after a row, from 1; 0 before the first.
    fn located(&self, fault: Self::Fault, file: String, row: u64) -> Self::Error;
}

/// The documents of one file, read as they are asked for. After [`TableError::BadRow`] it goes on with the next row;
/// after any other error it ends.
pub struct TableDocuments<T> {
    name: String,
    pub(crate) table: T,
    columns: TableColumns,
    ids: Ids,
    number: RowNumber,
    row: u64,
    rank: u64,
    failed: bool,
}

/// Why a row is no document: the row's own fault, or the file's.
enum RowFault<F> {
    Row(RowProblem),
    File(F),
}

impl<F> From<RowProblem> for RowFault<F> {
    fn from(problem: RowProblem) -> Self {
        Self::Row(problem)
    }
}

impl<F> From<LineProblem> for RowFault<F> {
    fn from(problem: LineProblem) -> Self {
        Self::Row(problem.into())
    }
}

impl<T: Table> TableDocuments<T> {
    /// The documents of a table with these columns. `name` stands for the file in errors.
    pub(crate) fn new(name: String, table: T, columns: TableColumns, ids: Ids) -> Self {
        Self {
            name,
            table,
            columns,
            ids,
            number: RowNumber::default(),
            row: 0,
            rank: LOWEST,
            failed: false,
        }
    }

    /// The same, whose ids that are numbers of rows go on from this one.
    #[must_use]
    pub fn numbered(self, number: RowNumber) -> Self {
        Self { number, ..self }
    }

    /// The number of the row that was read last, from 1.
    #[cfg(feature = "parquet")]
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// The rank that its field gives it.
    #[cfg(feature = "parquet")]
    pub(crate) fn rank(&self) -> u64 {
        self.rank
    }

    fn read_row(&mut self) -> Result<Document, RowFault<T::Fault>> {
        let cells = self.table.read_row().map_err(RowFault::File)?;
        let (rank, cells) = match (&self.columns.rank, cells.split_last()) {
            (Some(field), Some((rank, cells))) => (Some((field, *rank)), cells),
            (None, _) | (_, None) => (None, cells.as_slice()),
        };
        let (id, contents) = match (&self.columns.id, cells.split_first()) {
            (Some(column), Some((id, contents))) => (id_of(*id, column)?, contents),
            (None, _) | (_, None) => (self.number.id(), cells),
        };
        self.ids.check(&id)?;
        let content = match &self.columns.content {
            ContentColumn::Texts(columns) => Content::Text(texts_of(contents, columns)?),
            ContentColumn::Fingerprint(column, notation) => {
                let cell = contents.first().copied().unwrap_or(Cell::Null);
                Content::Fingerprint(fingerprint_of(cell, column, *notation)?)
            }
        };
        self.rank = match rank {
            Some((field, cell)) => field.of_cell(cell)?,
            None => LOWEST,
        };
        Ok(Document { id, content })
    }
}

impl<T: Table> Iterator for TableDocuments<T> {
    type Item = Result<Document, T::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = match self.table.has_row() {
            Ok(true) => {
                self.row += 1;
                self.number.row += 1;
                self.read_row()
            }
            Ok(false) => return None,
            Err(fault) => Err(RowFault::File(fault)),
        };
        Some(read.map_err(|fault| {
            let (file, row) = (self.name.clone(), self.row);
            match fault {
                RowFault::Row(problem) => TableError::BadRow { file, row, problem }.into(),
                RowFault::File(fault) => {
                    self.failed = true;
                    self.table.located(fault, file, row)
                }
            }
        }))
    }
}
