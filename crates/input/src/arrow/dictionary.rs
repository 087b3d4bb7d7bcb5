//! Dictionaries: values that columns refer to by their numbers. They may grow, and be replaced.

use super::batch::Budget;
use super::fault::Fault;
use super::flat::Malformed;
use super::schema::Layout;
use super::values::Values;
use crate::cell::Cell;

/// What a part takes beside its buffers, about. Parts may be small, and many.
const PART_BYTES: u64 = 256;

/// A dictionary.
pub(super) struct Dictionary {
    layout: Layout,
    /// Its values in the parts that came one after another.
    parts: Vec<Values>,
    /// How many values there are to the end of each part.
    ends: Vec<usize>,
    budget: Budget,
}

impl Dictionary {
    /// One that holds at most as many bytes.
    pub(super) const fn new(layout: Layout, most: u64) -> Self {
        Self {
            layout,
            parts: Vec::new(),
            ends: Vec::new(),
            budget: Budget::new(most),
        }
    }

    /// Adds values after those that there are.
    pub(super) fn add(&mut self, values: Values) -> Result<(), Fault> {
        if values.rows == 0 {
            return Ok(());
        }
        self.budget
            .take(PART_BYTES.saturating_add(values.bytes()))?;
        let before = self.ends.last().copied().unwrap_or_default();
        let end = before.checked_add(values.rows).ok_or(Malformed)?;
        self.ends.push(end);
        self.parts.push(values);
        Ok(())
    }

    /// The value of a number.
    pub(super) fn cell(&self, number: usize) -> Result<Cell<&[u8]>, &'static str> {
        let place = self.ends.partition_point(|end| *end <= number);
        let part = self.parts.get(place);
        let part = part.ok_or("a number leads out of its dictionary")?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        part.cell(number - start, self.layout)
    }
}
