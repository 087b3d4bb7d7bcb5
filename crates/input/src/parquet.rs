//! The Parquet format: a document is a row, and what it carries stands in two columns.
//!
//! | column      | may be                                                                        |
//! |-------------|-------------------------------------------------------------------------------|
//! | id          | a string, or an integer of any width                                          |
//! | text        | a string                                                                      |
//! | fingerprint | an integer of any width, or a string of decimal digits                        |
//!
//! A string is a BYTE_ARRAY that is marked as STRING, ENUM or JSON, or not marked at all, and holds
//! UTF-8. A column inside structs is named by its path, `meta.url`; lists are refused. An integer
//! that is marked unsigned is read so; any other is signed, and no fingerprint where it is negative,
//! since nothing says that its bits were meant.
//!
//! Columns are read through the library's column readers, not its Arrow reader: a cold build of the
//! library with Arrow took 248 s of CPU instead of 77 s.
//!
//! # Invariants
//! - PQ1: no page that claims more than [`MAX_PAGE_BYTES`] is unpacked, and of each column one page,
//!   its dictionary and [`BATCH_ROWS`] values are held, however large the file is. (The library
//!   unpacks a page that claims less than it holds all the same.)
//! - PQ2: a damaged file is an error that names it, never a panic, and never fewer rows in silence:
//!   every row that the file says it has is a document or an error.

mod column;
mod copy;
mod delta;
mod error;
mod guard;
mod pages;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;

use parquet::errors::ParquetError as LibraryError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

pub use column::BATCH_ROWS;
use column::{Cell, Column, Values};
pub(crate) use copy::copy_rows;
pub use error::ParquetError;
use guard::guarded;
use pages::BoundedPages;
pub use pages::MAX_PAGE_BYTES;

use crate::document::{Content, Document, MAX_RECORD_BYTES};
use crate::fields::join;
pub use crate::fields::{ContentColumn, TableColumns};
use crate::ids::Ids;
use crate::notation::Notation;
use crate::parse;
use crate::problem::{LineProblem, excerpt};
use crate::row_number::RowNumber;
pub use crate::row_problem::RowProblem;
use simshard_simhash::Fingerprint;

/// The documents of one file, read as they are asked for. After [`ParquetError::BadRow`] it goes on
/// with the next row; after any other error it ends.
pub struct ParquetDocuments {
    name: String,
    pages: Arc<BoundedPages>,
    metadata: ParquetMetaData,
    id: Option<Column>,
    number: RowNumber,
    contents: Vec<Column>,
    /// How fingerprints are written; `None` for texts.
    fingerprints: Option<Notation>,
    ids: Ids,
    next_group: usize,
    group: Option<Group>,
    row: u64,
    failed: bool,
}

/// The row group being read.
struct Group {
    rows_left: u64,
    id: Option<Values>,
    contents: Vec<Values>,
}

/// Why a row is no document: the row's own fault, or the file's.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Fault {
    Row(#[from] RowProblem),
    File(LibraryError),
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
        let flags = "--id-field or --id row";
        let id = columns.id.as_ref();
        let id = id.map(|column| Column::find(&name, schema, column, flags));
        let id = id.transpose()?;
        let (contents, fingerprints) = match &columns.content {
            ContentColumn::Texts(columns) => {
                let find = |column: &String| Column::find_text(&name, schema, column);
                let found: Result<Vec<_>, _> = columns.iter().map(find).collect();
                (found?, None)
            }
            ContentColumn::Fingerprint(column, notation) => {
                let flag = "--fingerprint-field";
                let found = Column::find(&name, schema, column, flag)?;
                (vec![found], Some(*notation))
            }
        };
        Ok(Self {
            name,
            pages: Arc::new(pages),
            metadata,
            id,
            number: RowNumber::default(),
            contents,
            fingerprints,
            ids,
            next_group: 0,
            group: None,
            row: 0,
            failed: false,
        })
    }

    /// Whether there is a row to read; opens the next row groups until there is.
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

    fn open_group(&self, index: usize) -> Result<Group, LibraryError> {
        let group = self.metadata.row_group(index);
        let rows = u64::try_from(group.num_rows())
            .map_err(|_| LibraryError::General(format!("{} rows", group.num_rows())))?;
        let open = |column: &Column| column.open(&self.pages, group, rows);
        Ok(Group {
            rows_left: rows,
            id: self.id.as_ref().map(open).transpose()?,
            contents: self.contents.iter().map(open).collect::<Result<_, _>>()?,
        })
    }

    /// Reads the row that [`Self::has_row`] found. Takes every column's value before it looks at
    /// any, so that a bad one leaves the columns in step.
    fn read_row(&mut self) -> Result<Document, Fault> {
        let Some(group) = &mut self.group else {
            return Err(Fault::File(LibraryError::EOF("no row group".to_owned())));
        };
        group.rows_left -= 1;
        let id = group.id.as_mut().map(Values::next).transpose();
        let id = id.map_err(Fault::File)?;
        let cells = group.contents.iter_mut().map(Values::next);
        let cells: Result<Vec<_>, _> = cells.collect();
        let cells = cells.map_err(Fault::File)?;
        let id = match (&id, &self.id) {
            (Some(cell), Some(column)) => id_of(cell, column)?,
            (None, _) | (_, None) => self.number.id(),
        };
        self.ids.check(&id)?;
        let content = match (self.fingerprints, cells.first(), self.contents.first()) {
            (Some(notation), Some(cell), Some(column)) => fingerprint_of(cell, column, notation)?,
            (None, _, _) | (_, None, _) | (_, _, None) => {
                Content::Text(texts_of(&cells, &self.contents)?)
            }
        };
        Ok(Document { id, content })
    }

    fn located(&self, fault: Fault) -> ParquetError {
        match fault {
            Fault::Row(problem) => ParquetError::BadRow {
                file: self.name.clone(),
                row: self.row,
                problem,
            },
            Fault::File(error) => ParquetError::Damaged {
                file: self.name.clone(),
                row: self.row,
                group: self.next_group,
                groups: self.metadata.num_row_groups(),
                reason: error::reason(&error),
            },
        }
    }
}

impl ParquetDocuments {
    /// The number of the row that was read last, from 1.
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// The same, whose ids that are numbers of rows go on from this one.
    #[must_use]
    pub fn numbered(self, number: RowNumber) -> Self {
        Self { number, ..self }
    }
}

impl Iterator for ParquetDocuments {
    type Item = Result<Document, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = match self.has_row() {
            Ok(true) => {
                self.row += 1;
                self.number.row += 1;
                self.read_row()
            }
            Ok(false) => return None,
            Err(error) => Err(Fault::File(error)),
        };
        self.failed = matches!(read, Err(Fault::File(_)));
        Some(read.map_err(|fault| self.located(fault)))
    }
}

impl Group {
    /// Complains about values beyond the rows that the file says it has.
    fn expect_end(&mut self) -> Result<(), LibraryError> {
        for values in self.id.iter_mut().chain(&mut self.contents) {
            values.expect_end()?;
        }
        Ok(())
    }
}

impl From<LineProblem> for Fault {
    fn from(problem: LineProblem) -> Self {
        Self::Row(problem.into())
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

fn id_of(cell: &Cell, column: &Column) -> Result<String, RowProblem> {
    match cell {
        Cell::Null => Err(column.null()),
        Cell::Signed(number) => Ok(number.to_string()),
        Cell::Unsigned(number) => Ok(number.to_string()),
        Cell::Bytes(_) => Ok(text_of(cell, column, MAX_RECORD_BYTES)?.to_owned()),
    }
}

fn text_of<'a>(cell: &'a Cell, column: &Column, most: usize) -> Result<&'a str, RowProblem> {
    let bytes = match cell {
        Cell::Bytes(bytes) => bytes.data(),
        Cell::Null | Cell::Signed(_) | Cell::Unsigned(_) => return Err(column.null()),
    };
    if bytes.len() > most {
        return Err(RowProblem::TooLong {
            column: column.name.clone(),
            bytes: bytes.len(),
        });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        RowProblem::Value(LineProblem::NotUtf8 {
            value: excerpt(&String::from_utf8_lossy(bytes)),
            byte: error.valid_up_to() + 1,
        })
    })
}

/// The joined texts of some columns. Of several, some may be null.
fn texts_of(cells: &[Cell], columns: &[Column]) -> Result<String, RowProblem> {
    let mut texts = Vec::with_capacity(cells.len());
    for (cell, column) in cells.iter().zip(columns) {
        match cell {
            Cell::Null if cells.len() > 1 => {}
            Cell::Null | Cell::Bytes(_) | Cell::Signed(_) | Cell::Unsigned(_) => {
                texts.push(Cow::Borrowed(text_of(cell, column, MAX_RECORD_BYTES)?));
            }
        }
    }
    match columns.first() {
        Some(column) if texts.is_empty() => return Err(column.null()),
        Some(_) | None => {}
    }
    let text = join(texts).into_owned();
    match columns.first() {
        Some(column) if text.len() > MAX_RECORD_BYTES => Err(RowProblem::TooLong {
            column: column.name.clone(),
            bytes: text.len(),
        }),
        Some(_) | None => Ok(text),
    }
}

fn fingerprint_of(cell: &Cell, column: &Column, notation: Notation) -> Result<Content, RowProblem> {
    let fingerprint = match cell {
        Cell::Null => return Err(column.null()),
        Cell::Unsigned(number) => Fingerprint(*number),
        Cell::Signed(number) => {
            let fingerprint = notation.of_signed(*number);
            fingerprint.ok_or_else(|| RowProblem::Negative {
                column: column.name.clone(),
                value: *number,
            })?
        }
        Cell::Bytes(_) => {
            let digits = text_of(cell, column, MAX_RECORD_BYTES)?;
            parse::fingerprint(digits.as_bytes(), notation)?
        }
    };
    Ok(Content::Fingerprint(fingerprint))
}
