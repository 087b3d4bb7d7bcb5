//! What values are as parts of a document.

use std::borrow::Cow;

use simshard_simhash::Fingerprint;

use crate::cell::Cell;
use crate::document::MAX_RECORD_BYTES;
use crate::fields::join;
use crate::notation::Notation;
use crate::parse;
use crate::problem::not_utf8;
use crate::row_problem::RowProblem;

fn null(column: &str) -> RowProblem {
    RowProblem::Null {
        column: column.to_owned(),
    }
}

fn check_length(bytes: usize, column: &str) -> Result<(), RowProblem> {
    if bytes <= MAX_RECORD_BYTES {
        return Ok(());
    }
    Err(RowProblem::TooLong {
        column: column.to_owned(),
        bytes,
    })
}

fn text_of<'a>(bytes: &'a [u8], column: &str) -> Result<&'a str, RowProblem> {
    check_length(bytes.len(), column)?;
    Ok(std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, &error))?)
}

pub(super) fn id_of(cell: Cell<&[u8]>, column: &str) -> Result<String, RowProblem> {
    match cell {
        // Columns of other numbers, and of times, are not read as ids.
        Cell::Null | Cell::Number(_) | Cell::Time(_) => Err(null(column)),
        Cell::Signed(number) => Ok(number.to_string()),
        Cell::Unsigned(number) => Ok(number.to_string()),
        Cell::Bytes(bytes) => Ok(text_of(bytes, column)?.to_owned()),
    }
}

/// The joined texts of some columns. One that is null is as an empty one.
pub(super) fn texts_of(cells: &[Cell<&[u8]>], columns: &[String]) -> Result<String, RowProblem> {
    let mut texts = Vec::with_capacity(cells.len());
    for (cell, column) in cells.iter().zip(columns) {
        match cell {
            Cell::Bytes(bytes) => texts.push(Cow::Borrowed(text_of(bytes, column)?)),
            Cell::Null => {}
            // Only columns of strings are read as texts.
            Cell::Signed(_) | Cell::Unsigned(_) | Cell::Number(_) | Cell::Time(_) => {
                return Err(null(column));
            }
        }
    }
    let column = columns.first().map_or("", String::as_str);
    let text = join(texts);
    check_length(text.len(), column)?;
    Ok(text.into_owned())
}

pub(super) fn fingerprint_of(
    cell: Cell<&[u8]>,
    column: &str,
    notation: Notation,
) -> Result<Fingerprint, RowProblem> {
    match cell {
        // As of ids.
        Cell::Null | Cell::Number(_) | Cell::Time(_) => Err(null(column)),
        Cell::Unsigned(number) => Ok(Fingerprint(number)),
        Cell::Signed(value) => {
            let fingerprint = notation.of_signed(value);
            fingerprint.ok_or_else(|| RowProblem::Negative {
                column: column.to_owned(),
                value,
            })
        }
        Cell::Bytes(bytes) => {
            let digits = text_of(bytes, column)?;
            Ok(parse::fingerprint(digits.as_bytes(), notation)?)
        }
    }
}
