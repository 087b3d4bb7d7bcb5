//! The `lines` format: a line is a text.

use std::borrow::Cow;

use super::walk::Line;
use crate::document::{Record, RecordContent};
use crate::problem::{LineProblem, refuse_nul};

/// Reads a line; `None` for a blank one.
pub(super) fn parse<'a>(line: &Line<'a>, text: &'a str) -> Result<Option<Record<'a>>, LineProblem> {
    if is_blank(text) {
        return Ok(None);
    }
    refuse_nul(text)?;
    Ok(Some(Record {
        id: line.id(),
        content: RecordContent::Text(Cow::Borrowed(text)),
    }))
}

/// Whether there is nothing but white space on a line.
pub(super) fn is_blank(line: &str) -> bool {
    line.trim_start().is_empty()
}
