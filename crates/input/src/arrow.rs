//! The Arrow format, as a stream and as a file (Feather 2): a document is a row, and what it carries stands in two
//! columns or more.
//!
//! | column      | may be                                                                        |
//! |-------------|-------------------------------------------------------------------------------|
//! | id          | strings, or integers of any width                                             |
//! | text        | strings                                                                       |
//! | fingerprint | integers of any width, or strings of decimal digits                           |
//!
//! Strings and integers may be numbers into a dictionary, and stand in structs: `meta.url` names such a
//! column. Of a batch, only the buffers of these columns are held; all others are passed over.
//!
//! The library of the Arrow project took 207 s of CPU of a cold build, with calendars and decimals that are not
//! read here. The format is a few pages, and these files are all that is needed of it.
//!
//! # Invariants
//! - AR1: of a batch no more is held than [`MAX_BATCH_BYTES`] of the columns that are read, before and after they are
//!   decompressed. The same holds for a dictionary with all that was added to it. Memory is taken for what is there,
//!   not for what a length says, and columns that share a buffer hold it once.
//! - AR2: a damaged file is an error that names it, never a panic. A file that ends early is an error; a stream may
//!   end between two messages, as its format has it. Data after the end is an error.

mod batch;
mod column;
mod dictionary;
mod error;
mod fault;
mod flat;
mod messages;
mod schema;
#[cfg(test)]
mod tests;
mod values;

use std::collections::HashMap;
use std::io::Read;

pub use batch::MAX_BATCH_BYTES;
use column::Column;
use dictionary::Dictionary;
pub use error::ArrowError;
use fault::Fault;
use messages::{Holds, Messages};
use schema::{Field, Layout};
use values::Values;

use crate::cell::Cell;
use crate::fields::TableColumns;
use crate::ids::Ids;
use crate::table::{Table, TableDocuments};

/// The version of the format that is read: the fifth, of Arrow 1.0. The fourth has other unions.
const VERSION: i16 = 4;
const VERSION_BEFORE: i16 = 3;

/// The documents of one file.
pub type ArrowDocuments = TableDocuments<ArrowTable>;

/// The rows of one file.
pub struct ArrowTable {
    messages: Messages,
    fields: Vec<Field>,
    columns: Vec<Column>,
    /// By their ids.
    dictionaries: HashMap<i64, Dictionary>,
    /// The batch that is read, by its columns.
    batch: Vec<Values>,
    rows: usize,
    next_row: usize,
    most_bytes: u64,
}

impl ArrowDocuments {
    /// Opens uncompressed Arrow and finds its columns. `name` stands for the file in errors.
    ///
    /// # Errors
    /// If it is no Arrow or damaged, lacks a column, or has a column of a type that cannot be what it is to be.
    pub fn open(
        name: String,
        from: Box<dyn Read + Send>,
        columns: &TableColumns,
        ids: Ids,
    ) -> Result<Self, ArrowError> {
        let opened = Messages::new(from).map_err(Fault::from);
        let opened = opened.and_then(|mut messages| Ok((schema_of(&mut messages)?, messages)));
        let (fields, messages) = opened.map_err(|fault| ArrowError::of(fault, name.clone(), 0))?;
        let table = ArrowTable {
            messages,
            columns: columns.find(&name, |named| Column::find(&fields, named))?,
            fields,
            dictionaries: HashMap::new(),
            batch: Vec::new(),
            rows: 0,
            next_row: 0,
            most_bytes: MAX_BATCH_BYTES,
        };
        Ok(Self::new(name, table, columns.clone(), ids))
    }
}

impl Table for ArrowTable {
    type Fault = Fault;
    type Error = ArrowError;

    /// Reads on to the next batch that has one.
    fn has_row(&mut self) -> Result<bool, Fault> {
        while self.next_row == self.rows {
            let Some(message) = self.messages.next()? else {
                return Ok(false);
            };
            match message.holds()? {
                Holds::Batch => {
                    let columns = self.columns.iter();
                    let paths: Vec<_> = columns.map(|column| column.path.clone()).collect();
                    let header = message.header()?;
                    self.batch.clear();
                    let (messages, most) = (&mut self.messages, self.most_bytes);
                    self.batch = batch::read(header, messages, &self.fields, &paths, most)?;
                    self.rows = batch::rows(header)?;
                    self.next_row = 0;
                }
                Holds::Dictionary => self.read_dictionary(message.header()?)?,
                Holds::Schema => return Err(Fault::Malformed("it has two schemas")),
                Holds::Other => return Err(Fault::Malformed("it holds tensors, not a table")),
            }
        }
        Ok(true)
    }

    fn read_row(&mut self) -> Result<Vec<Cell<&[u8]>>, Fault> {
        let row = self.next_row;
        self.next_row += 1;
        let columns = self.batch.iter().zip(&self.columns);
        let cells = columns.map(|(values, column)| self.cell(values, row, column));
        cells.collect::<Result<_, _>>().map_err(Fault::Malformed)
    }

    fn located(&self, fault: Fault, file: String, row: u64) -> ArrowError {
        ArrowError::of(fault, file, row)
    }
}

impl ArrowTable {
    /// Reads a dictionary, if a column needs it.
    fn read_dictionary(&mut self, header: flat::Table<'_>) -> Result<(), Fault> {
        let id = header.i64(0)?;
        let needs_it = |column: &Column| matches!(column.layout, Layout::Dictionary { id: needed, .. } if needed == id);
        if !self.columns.iter().any(needs_it) {
            return Ok(());
        }
        let field = self.fields.iter().find_map(|field| field.of_dictionary(id));
        let field = field.ok_or(flat::Malformed)?;
        let layout = field.layout().ok_or(flat::Malformed)?;
        let data = header.table(1)?.ok_or(flat::Malformed)?;
        let is_delta = header.bool(2)?;
        if !is_delta {
            self.dictionaries.remove(&id);
        }
        let (messages, most) = (&mut self.messages, self.most_bytes);
        let values = batch::read(data, messages, &[field], &[vec![0]], most)?;
        let new = || Dictionary::new(layout, most);
        let dictionary = self.dictionaries.entry(id).or_insert_with(new);
        values.into_iter().try_for_each(|part| dictionary.add(part))
    }

    fn cell<'a>(
        &'a self,
        values: &'a Values,
        row: usize,
        column: &Column,
    ) -> Result<Cell<&'a [u8]>, &'static str> {
        let Layout::Dictionary { id, numbers } = column.layout else {
            return values.cell(row, column.layout);
        };
        let Some(number) = values.number(row, numbers)? else {
            return Ok(Cell::Null);
        };
        let dictionary = self.dictionaries.get(&id);
        dictionary.ok_or("a dictionary is missing")?.cell(number)
    }
}

/// The schema, which is the first message.
fn schema_of(messages: &mut Messages) -> Result<Vec<Field>, Fault> {
    let first = messages.next()?.ok_or(Fault::Malformed("it is empty"))?;
    if first.holds()? != Holds::Schema {
        return Err(Fault::Malformed("it does not begin with a schema"));
    }
    let header = first.header()?;
    if header.i16(0)? != 0 {
        return Err(Fault::Malformed("its numbers are big-endian"));
    }
    let fields = schema::fields(header)?;
    match first.version()? {
        VERSION => {}
        VERSION_BEFORE if !fields.iter().any(Field::has_union) => {}
        VERSION_BEFORE => return Err(Fault::Malformed("it has unions as before Arrow 1.0")),
        _ => return Err(Fault::Malformed("its version is not known here")),
    }
    Ok(fields)
}
