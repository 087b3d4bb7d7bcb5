//! The TSV format: `id<TAB>fingerprint`.

use std::borrow::Cow;

use super::decimal;
use crate::document::{Record, RecordContent, RecordId};
use crate::notation::Notation;
use crate::problem::{LineProblem, excerpt, refuse_nul};

/// Reads line `number`; `None` for a header.
pub(super) fn parse(
    number: u64,
    line: &str,
    notation: Notation,
) -> Result<Option<Record<'_>>, LineProblem> {
    refuse_nul(line)?;
    if number == 1 && is_header(line) {
        return Ok(None);
    }
    let Some((id, digits)) = two_columns(line) else {
        let found = line.split('\t').count();
        let value = excerpt(line);
        return Err(of_table(
            found > 2,
            LineProblem::NotTwoColumns { value, found },
        ));
    };
    let fingerprint = decimal::fingerprint(digits.as_bytes(), notation);
    let fingerprint = fingerprint.map_err(|problem| of_table(is_header(line), problem))?;
    let content = RecordContent::Fingerprint(fingerprint);
    let id = RecordId::Given(Cow::Borrowed(id));
    Ok(Some(Record { id, content }))
}

/// The problem of a line, which may be a row of a table.
fn of_table(is_row: bool, problem: LineProblem) -> LineProblem {
    if !is_row {
        return problem;
    }
    LineProblem::Table {
        problem: Box::new(problem),
    }
}

/// Whether a file's first line is a header: two columns, the second of which does not look like a
/// number. A blank, or a text that begins like a number (`12abc`, `-1`, 2^64), is a bad fingerprint.
/// The reader drops a header in silence, and must not drop a damaged document like that.
#[must_use]
pub fn is_header(line: &str) -> bool {
    let Some((_, second)) = two_columns(line) else {
        return false;
    };
    match second.trim().chars().next() {
        Some(first) => !first.is_numeric() && !matches!(first, '+' | '-' | '.'),
        None => false,
    }
}

/// Whether a first line is surely of this format: a document, or the header that `hash` writes.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    let Some((_, second)) = std::str::from_utf8(line).ok().and_then(two_columns) else {
        return false;
    };
    let is_number = |notation| decimal::fingerprint(second.as_bytes(), notation).is_ok();
    line == b"id\thash" || is_number(Notation::Unsigned) || is_number(Notation::Signed)
}

fn two_columns(line: &str) -> Option<(&str, &str)> {
    let (first, second) = line.split_at(memchr::memchr(b'\t', line.as_bytes())?);
    let second = &second[1..];
    (!second.contains('\t')).then_some((first, second))
}
