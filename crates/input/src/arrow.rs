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
//! - AR1: of a batch no more is held than [`MAX_BATCH_BYTES`] of the columns that are read, before and after
//!   they are decompressed, and no more of a dictionary with all that was added to it. Memory is taken for what
//!   is there, not for what a length says, and columns that share a buffer hold it once.
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
use column::{Column, RowFault, fingerprint_of, id_of, texts_of};
use dictionary::Dictionary;
pub use error::ArrowError;
use fault::Fault;
use messages::{Holds, Messages};
use schema::{Field, Layout};
use values::{Cell, Values};

use crate::document::{Content, Document};
use crate::fields::{ContentColumn, TableColumns};
use crate::ids::Ids;
use crate::notation::Notation;
use crate::row_number::RowNumber;

/// The version of the format that is read: the fifth, of Arrow 1.0. The fourth has other unions.
const VERSION: i16 = 4;
const VERSION_BEFORE: i16 = 3;

/// The documents of one file, read as they are asked for. After [`ArrowError::BadRow`] it goes on with the next row;
/// after any other error it ends.
pub struct ArrowDocuments {
    name: String,
    messages: Messages,
    fields: Vec<Field>,
    id: Option<Column>,
    contents: Vec<Column>,
    /// How fingerprints are written; `None` for texts.
    fingerprints: Option<Notation>,
    ids: Ids,
    number: RowNumber,
    /// By their ids.
    dictionaries: HashMap<i64, Dictionary>,
    /// The batch that is read: the columns of the contents, then that of the id.
    batch: Vec<Values>,
    rows: usize,
    next_row: usize,
    row: u64,
    failed: bool,
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
        let (fields, messages) = opened.map_err(|fault| ArrowError::of(fault, &name, 0))?;
        let find =
            |column: &String, flags, is_text| Column::find(&name, &fields, column, flags, is_text);
        let id = columns.id.as_ref();
        let id = id.map(|column| find(column, "--id-field or --id row", false));
        let is_text = matches!(columns.content, ContentColumn::Texts(_));
        let flags = columns.content.flags();
        let contents = columns.content.names().iter();
        let contents: Result<_, _> = contents
            .map(|column| find(column, flags, is_text))
            .collect();
        let (id, contents) = (id.transpose()?, contents?);
        let fingerprints = match columns.content {
            ContentColumn::Texts(_) => None,
            ContentColumn::Fingerprint(_, notation) => Some(notation),
        };
        Ok(Self {
            name,
            messages,
            id,
            contents,
            fields,
            fingerprints,
            ids,
            number: RowNumber::default(),
            dictionaries: HashMap::new(),
            batch: Vec::new(),
            rows: 0,
            next_row: 0,
            row: 0,
            failed: false,
            most_bytes: MAX_BATCH_BYTES,
        })
    }

    /// The same, whose ids that are numbers of rows go on from this one.
    #[must_use]
    pub fn numbered(self, number: RowNumber) -> Self {
        Self { number, ..self }
    }

    /// Reads on to the next batch that has a row; whether there is one.
    fn has_row(&mut self) -> Result<bool, Fault> {
        while self.next_row == self.rows {
            let Some(message) = self.messages.next()? else {
                return Ok(false);
            };
            match message.holds()? {
                Holds::Batch => {
                    let columns = self.contents.iter().chain(&self.id);
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

    /// Reads a dictionary, if a column needs it.
    fn read_dictionary(&mut self, header: flat::Table<'_>) -> Result<(), Fault> {
        let id = header.i64(0)?;
        let needs_it = |column: &Column| matches!(column.layout, Layout::Dictionary { id: needed, .. } if needed == id);
        if !self.contents.iter().chain(&self.id).any(needs_it) {
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

    /// Reads the row that [`Self::has_row`] found.
    fn read_row(&mut self) -> Result<Document, RowFault> {
        let row = self.next_row;
        self.next_row += 1;
        let cell = |column: &Column, number: usize| {
            let values = self.batch.get(number).ok_or("a column is missing");
            let cell = values.and_then(|values| self.cell(values, row, column));
            cell.map_err(|reason| RowFault::File(Fault::Malformed(reason)))
        };
        let id = match &self.id {
            Some(column) => id_of(cell(column, self.contents.len())?, column)?,
            None => self.number.id(),
        };
        self.ids.check(&id)?;
        let cells = self.contents.iter().enumerate();
        let cells = cells.map(|(number, column)| Ok((cell(column, number)?, column)));
        let cells: Vec<_> = cells.collect::<Result<_, RowFault>>()?;
        let content = match (self.fingerprints, cells.first()) {
            (Some(notation), Some((cell, column))) => {
                Content::Fingerprint(fingerprint_of(*cell, column, notation)?)
            }
            (None, _) | (_, None) => Content::Text(texts_of(&cells)?),
        };
        Ok(Document { id, content })
    }

    fn cell<'a>(
        &'a self,
        values: &'a Values,
        row: usize,
        column: &Column,
    ) -> Result<Cell<'a>, &'static str> {
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

impl Iterator for ArrowDocuments {
    type Item = Result<Document, ArrowError>;

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
            Err(fault) => Err(RowFault::File(fault)),
        };
        Some(read.map_err(|fault| match fault {
            RowFault::Row(problem) => ArrowError::BadRow {
                file: self.name.clone(),
                row: self.row,
                problem,
            },
            RowFault::File(fault) => {
                self.failed = true;
                ArrowError::of(fault, &self.name, self.row)
            }
        }))
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
