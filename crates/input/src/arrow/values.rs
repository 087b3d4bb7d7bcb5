//! The values of a column in a batch.

use bytes::Bytes;

use super::schema::{Integers, Layout};
use crate::cell::Cell;

const SHORT: &str = "a column is shorter than its batch";

/// The values of a column.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// How many there are.
    pub(super) rows: usize,
    /// Bits that say which are there, of the column and of the structs that it is in; empty where all are.
    pub(super) validities: Vec<Bytes>,
    /// The buffers after the bits.
    pub(super) buffers: Vec<Bytes>,
}

impl Values {
    /// The bytes of its buffers.
    pub(super) fn bytes(&self) -> u64 {
        let buffers = self.validities.iter().chain(&self.buffers);
        buffers.map(|buffer| buffer.len() as u64).sum()
    }

    fn is_there(&self, row: usize) -> Result<bool, &'static str> {
        for bits in &self.validities {
            if bits.is_empty() {
                continue;
            }
            let byte = bits.get(row / 8).ok_or(SHORT)?;
            if byte >> (row % 8) & 1 == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn buffer(&self, number: usize) -> &[u8] {
        self.buffers.get(number).map_or(&[], |bytes| bytes)
    }

    /// The value of a row, which is no number into a dictionary.
    pub(super) fn cell(&self, row: usize, layout: Layout) -> Result<Cell<&[u8]>, &'static str> {
        if !self.is_there(row)? {
            return Ok(Cell::Null);
        }
        match layout {
            Layout::Integers(integers) => integer(self.buffer(0), row, integers),
            Layout::Text { large } => {
                let width = if large { 8 } else { 4 };
                let integers = Integers {
                    width,
                    signed: true,
                };
                let next = row.checked_add(1).ok_or(SHORT)?;
                let (start, end) = (
                    place(self.buffer(0), row, integers)?,
                    place(self.buffer(0), next, integers)?,
                );
                let bytes = self.buffer(1).get(start..end);
                Ok(Cell::Bytes(
                    bytes.ok_or("a string leads out of its buffer")?,
                ))
            }
            Layout::TextViews => self.view(row),
            Layout::Dictionary { .. } => Err("a dictionary of a dictionary"),
        }
    }

    /// The number of a row into a dictionary; `None` where there is none.
    pub(super) fn number(
        &self,
        row: usize,
        integers: Integers,
    ) -> Result<Option<usize>, &'static str> {
        if !self.is_there(row)? {
            return Ok(None);
        }
        place(self.buffer(0), row, integers).map(Some)
    }

    /// A view: a length, and the string itself or its beginning, its buffer and its place there.
    fn view(&self, row: usize) -> Result<Cell<&[u8]>, &'static str> {
        const BYTES: usize = 16;
        const INLINE: usize = 12;
        let view = slot(self.buffer(0), row, BYTES)?;
        let number = |at: usize| {
            let bytes = [view[at], view[at + 1], view[at + 2], view[at + 3]];
            usize::try_from(i32::from_le_bytes(bytes)).map_err(|_| "a view has a negative place")
        };
        let length = number(0)?;
        if length <= INLINE {
            return Ok(Cell::Bytes(&view[4..4 + length]));
        }
        let (buffer, start) = (number(8)?, number(12)?);
        let bytes = self
            .buffer(1 + buffer)
            .get(start..start.saturating_add(length));
        Ok(Cell::Bytes(
            bytes.ok_or("a string leads out of its buffer")?,
        ))
    }
}

/// The bytes of a row, of which each has as many.
fn slot(buffer: &[u8], row: usize, width: usize) -> Result<&[u8], &'static str> {
    let start = row.checked_mul(width).ok_or(SHORT)?;
    let rest = buffer.get(start..).ok_or(SHORT)?;
    rest.get(..width).ok_or(SHORT)
}

fn integer(buffer: &[u8], row: usize, integers: Integers) -> Result<Cell<&[u8]>, &'static str> {
    let Integers { width, signed } = integers;
    let bytes = slot(buffer, row, width)?;
    let is_negative = signed && bytes.last().is_some_and(|byte| *byte >= 0x80);
    let mut whole = [if is_negative { 0xFF } else { 0 }; 8];
    whole[..width].copy_from_slice(bytes);
    Ok(if signed {
        Cell::Signed(i64::from_le_bytes(whole))
    } else {
        Cell::Unsigned(u64::from_le_bytes(whole))
    })
}

/// An integer as a place.
fn place(buffer: &[u8], row: usize, integers: Integers) -> Result<usize, &'static str> {
    let place = match integer(buffer, row, integers)? {
        Cell::Signed(place) => usize::try_from(place).ok(),
        Cell::Unsigned(place) => usize::try_from(place).ok(),
        Cell::Null | Cell::Bytes(_) | Cell::Number(_) | Cell::Time(_) => None,
    };
    place.ok_or("a column has a negative place")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AR2.
    #[test]
    fn a_row_far_beyond_the_buffers_is_an_error() {
        let buffer = Bytes::from_static(&[1; 64]);
        let values = Values {
            rows: usize::MAX,
            validities: Vec::new(),
            buffers: vec![buffer.clone(), buffer],
        };
        let integers = |width| Integers {
            width,
            signed: false,
        };
        // Of the second, places of 2, 4, 8 and 16 bytes overflow to those of the first row.
        for row in [usize::MAX, usize::MAX / 2 + 1, usize::MAX / 4 + 1] {
            for layout in [
                Layout::Integers(integers(2)),
                Layout::Integers(integers(8)),
                Layout::Text { large: false },
                Layout::Text { large: true },
                Layout::TextViews,
            ] {
                assert_eq!(values.cell(row, layout), Err(SHORT), "{row} {layout:?}");
            }
            assert_eq!(values.number(row, integers(8)), Err(SHORT));
        }
    }
}
