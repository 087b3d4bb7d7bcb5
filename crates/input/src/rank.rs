//! The rank that a field gives a document: the higher, the more it is preferred.
//!
//! Each format makes a [`Cell`] of its value, and what that is worth is the same for all. So a value has the same rank
//! in every format.

mod date;

use serde_json::Value;

use crate::cell::Cell;
use crate::fields::{RankField, RankedBy};
use crate::parse::{DecodedJson, decode_json, json_field};
use crate::problem::{LineProblem, excerpt};

/// Most bytes of a text that an error takes an excerpt of.
const QUOTED_BYTES: usize = 256;

/// The rank of a document without the field that ranks it.
pub(crate) const LOWEST: u64 = 0;

impl RankField {
    /// The rank of a JSON object, which stands on this line.
    pub(crate) fn of_json(&self, line: &[u8]) -> Result<u64, LineProblem> {
        let line = std::str::from_utf8(line).unwrap_or_default();
        let Some(written) = json_field(line, &self.name)? else {
            return Ok(LOWEST);
        };
        let rank = match decode_json(written) {
            DecodedJson::String(text) => self.rank(Cell::Bytes(text.as_bytes())),
            DecodedJson::Number(number) => self.rank(number_of(number)),
            DecodedJson::Other if written == "null" => Some(LOWEST),
            DecodedJson::Other => None,
        };
        rank.ok_or_else(|| self.other_kind(written, "null"))
    }

    /// The rank of a value of CSV, or of a header, which says no type.
    pub(crate) fn of_text(&self, value: &str) -> Result<u64, LineProblem> {
        let rank = match self.by {
            RankedBy::Date => self.rank(Cell::Bytes(value.as_bytes())),
            RankedBy::Number => self.rank(number_of(value)),
        };
        rank.ok_or_else(|| self.other_kind(&quoted(value.as_bytes()), "an empty value"))
    }

    /// The rank of a value of a table.
    pub(crate) fn of_cell(&self, cell: Cell<&[u8]>) -> Result<u64, LineProblem> {
        let rank = self.rank(cell);
        rank.ok_or_else(|| self.other_kind(&shown(cell), "null"))
    }

    /// The rank of a value; `None` if it is of another kind.
    fn rank(&self, value: Cell<&[u8]>) -> Option<u64> {
        match (self.by, value) {
            (RankedBy::Date | RankedBy::Number, Cell::Null | Cell::Bytes(b"")) => Some(LOWEST),
            (RankedBy::Date, Cell::Bytes(text)) => date::ticks(text).map(|ticks| 1 + ticks),
            (RankedBy::Date, Cell::Time(time)) => date::since_1970(time).map(|ticks| 1 + ticks),
            (RankedBy::Number, Cell::Signed(number)) => Some(ascending(number as f64)),
            (RankedBy::Number, Cell::Unsigned(number)) => Some(ascending(number as f64)),
            (RankedBy::Number, Cell::Number(number)) => {
                (!number.is_nan()).then(|| ascending(number))
            }
            (RankedBy::Date, Cell::Signed(_) | Cell::Unsigned(_) | Cell::Number(_))
            | (RankedBy::Number, Cell::Bytes(_) | Cell::Time(_)) => None,
        }
    }

    fn other_kind(&self, value: &str, nothing: &'static str) -> LineProblem {
        LineProblem::NoRank {
            name: excerpt(&self.name),
            value: excerpt(value),
            expected: match self.by {
                RankedBy::Date => "a date as 2026-01-31T23:59:59Z (RFC 3339) or 2026-01-31",
                RankedBy::Number => "a number",
            },
            nothing,
        }
    }
}

/// The number that a text writes, or the text. Neither infinity nor what is no number is one.
fn number_of(text: &str) -> Cell<&[u8]> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Cell::Number(number),
        Ok(_) | Err(_) => Cell::Bytes(text.as_bytes()),
    }
}

/// A value as an error shows it.
fn shown(cell: Cell<&[u8]>) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Bytes(bytes) => quoted(bytes),
        Cell::Signed(number) => number.to_string(),
        Cell::Unsigned(number) => number.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Time(_) => "a time before the year 0 or after 9999".to_owned(),
    }
}

/// The beginning of a text, as JSON writes it: enough for an excerpt.
fn quoted(text: &[u8]) -> String {
    let beginning = &text[..text.len().min(QUOTED_BYTES)];
    Value::from(String::from_utf8_lossy(beginning)).to_string()
}

/// A number that grows as the given one does, and is never the lowest.
fn ascending(number: f64) -> u64 {
    // The two zeros are one number.
    let bits = (number + 0.0).to_bits();
    let sign = 1 << 63;
    if bits & sign == 0 { bits | sign } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend() {
        let ascend = [
            f64::NEG_INFINITY,
            f64::MIN,
            -2.5,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            1e-300,
            1.0,
            2.0,
            f64::MAX,
            f64::INFINITY,
        ];
        assert!(ascend.is_sorted_by(|a, b| ascending(*a) < ascending(*b)));
        assert_eq!(ascending(-0.0), ascending(0.0));
        assert!(ascending(f64::NEG_INFINITY) > LOWEST);
    }
}
