//! One column: what it must be, and what its values are as parts of a document.

use std::borrow::Cow;

use simshard_simhash::Fingerprint;

use super::error::ArrowError;
use super::fault::Fault;
use super::schema::{self, Field, Layout};
use super::values::Cell;
use crate::document::MAX_RECORD_BYTES;
use crate::fields::join;
use crate::notation::Notation;
use crate::parse;
use crate::problem::{LineProblem, excerpt, not_utf8};
use crate::row_problem::RowProblem;

/// How many columns an error names.
const NAMED_COLUMNS: usize = 20;

/// A column that is read.
pub(super) struct Column {
    pub(super) name: String,
    /// The numbers of the fields that lead to it.
    pub(super) path: Vec<usize>,
    pub(super) layout: Layout,
}

/// Why a row is no document: the row's own fault, or the file's.
pub(super) enum RowFault {
    Row(RowProblem),
    File(Fault),
}

impl From<LineProblem> for RowFault {
    fn from(problem: LineProblem) -> Self {
        Self::Row(problem.into())
    }
}

impl Column {
    pub(super) fn find(
        file: &str,
        fields: &[Field],
        name: &str,
        flags: &'static str,
        is_text: bool,
    ) -> Result<Self, ArrowError> {
        let (file, column) = (file.to_owned(), name.to_owned());
        let found = schema::find(fields, name);
        let [path] = found.as_slice() else {
            return Err(if found.is_empty() {
                let present = names(fields);
                ArrowError::MissingColumn {
                    file,
                    column,
                    present,
                    flags,
                }
            } else {
                ArrowError::RepeatedColumn { file, column }
            });
        };
        let field = schema::at(fields, path);
        let layout = field.and_then(Field::layout);
        match (field, layout) {
            (Some(field), Some(layout)) if !is_text || field.is_text() => Ok(Self {
                name: column,
                path: path.clone(),
                layout,
            }),
            (field, _) => Err(ArrowError::WrongType {
                file,
                column,
                found: field.map_or("", Field::type_name),
                expected: if is_text {
                    "strings"
                } else {
                    "strings or integers"
                },
            }),
        }
    }

    fn null(&self) -> RowFault {
        RowFault::Row(RowProblem::Null {
            column: self.name.clone(),
        })
    }

    fn too_long(&self, bytes: usize) -> RowFault {
        RowFault::Row(RowProblem::TooLong {
            column: self.name.clone(),
            bytes,
        })
    }
}

fn names(fields: &[Field]) -> String {
    let shown = fields.iter().take(NAMED_COLUMNS);
    let shown: Vec<_> = shown
        .map(|field| format!("\"{}\"", excerpt(&field.name)))
        .collect();
    let mut names = shown.join(", ");
    if fields.len() > NAMED_COLUMNS {
        names.push_str(&format!(" and {} more", fields.len() - NAMED_COLUMNS));
    }
    names
}

fn text_of<'a>(bytes: &'a [u8], column: &Column) -> Result<&'a str, RowFault> {
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(column.too_long(bytes.len()));
    }
    Ok(std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, &error))?)
}

pub(super) fn id_of(cell: Cell<'_>, column: &Column) -> Result<String, RowFault> {
    match cell {
        Cell::Null => Err(column.null()),
        Cell::Signed(number) => Ok(number.to_string()),
        Cell::Unsigned(number) => Ok(number.to_string()),
        Cell::Bytes(bytes) => Ok(text_of(bytes, column)?.to_owned()),
    }
}

/// The joined texts of some columns. Of several, some may be null.
pub(super) fn texts_of(cells: &[(Cell<'_>, &Column)]) -> Result<String, RowFault> {
    let mut texts = Vec::with_capacity(cells.len());
    for (cell, column) in cells {
        match cell {
            Cell::Bytes(bytes) => texts.push(Cow::Borrowed(text_of(bytes, column)?)),
            Cell::Null if cells.len() > 1 => {}
            Cell::Null | Cell::Signed(_) | Cell::Unsigned(_) => return Err(column.null()),
        }
    }
    let Some((_, column)) = cells.first() else {
        return Ok(String::new());
    };
    if texts.is_empty() {
        return Err(column.null());
    }
    let text = join(texts).into_owned();
    if text.len() > MAX_RECORD_BYTES {
        return Err(column.too_long(text.len()));
    }
    Ok(text)
}

pub(super) fn fingerprint_of(
    cell: Cell<'_>,
    column: &Column,
    notation: Notation,
) -> Result<Fingerprint, RowFault> {
    match cell {
        Cell::Null => Err(column.null()),
        Cell::Unsigned(number) => Ok(Fingerprint(number)),
        Cell::Signed(number) => notation.of_signed(number).ok_or_else(|| {
            RowFault::Row(RowProblem::Negative {
                column: column.name.clone(),
                value: number,
            })
        }),
        Cell::Bytes(bytes) => {
            let digits = text_of(bytes, column)?;
            Ok(parse::fingerprint(digits.as_bytes(), notation)?)
        }
    }
}
