//! A bit for each unit: whether there is a document, then whether it is left out.

/// By source, a bit for each unit.
pub struct Marks {
    pub(super) sources: Vec<SourceMarks>,
}

#[derive(Default)]
pub(super) struct SourceMarks {
    /// At first whether there is a document, then whether the unit is left out.
    bits: Vec<u64>,
    /// Bad units that are skipped, in their order.
    bad: Vec<u64>,
    /// The first and the last unit of documents that take several.
    long: Vec<(u64, u64)>,
    pub(super) units: u64,
}

impl Marks {
    /// Marks what is left out: the documents of which this is true by their number, and bad units.
    pub fn leave_out(&mut self, is_dropped: impl Fn(usize) -> bool) {
        let mut document = 0;
        for marks in &mut self.sources {
            for word in &mut marks.bits {
                let mut documents = *word;
                while documents != 0 {
                    let bit = documents & documents.wrapping_neg();
                    documents ^= bit;
                    if !is_dropped(document) {
                        *word ^= bit;
                    }
                    document += 1;
                }
            }
            for unit in std::mem::take(&mut marks.bad) {
                marks.set(unit);
            }
            for (first, last) in std::mem::take(&mut marks.long) {
                if marks.is_set(first) {
                    (first..=last).for_each(|unit| marks.set(unit));
                }
            }
        }
    }
}

impl SourceMarks {
    /// Adds some documents of one unit each, and bad units, all up to this unit.
    pub(super) fn add(&mut self, documents: &[u64], bad: Vec<u64>, last: u64) {
        self.grow(last);
        for &unit in documents {
            self.set(unit);
        }
        self.bad.extend(bad);
    }

    /// Adds a document, by its first and its last unit.
    pub(super) fn add_document(&mut self, (first, last): (u64, u64)) {
        self.grow(last);
        self.set(first);
        if last > first {
            self.long.push((first, last));
        }
    }

    /// Adds what is bad, by its first and its last unit.
    pub(super) fn add_bad(&mut self, (first, last): (u64, u64)) {
        self.grow(last);
        self.bad.extend(first..=last);
    }

    /// Makes room for the bits of units up to this one.
    pub(super) fn grow(&mut self, last: u64) {
        self.units = self.units.max(last);
        self.bits.resize(self.units.div_ceil(64) as usize, 0);
    }

    /// Sets the bit of a unit, by its number from 1.
    fn set(&mut self, unit: u64) {
        let at = unit - 1;
        self.bits[(at / 64) as usize] |= 1 << (at % 64);
    }

    /// Whether the bit of a unit is set; number 0, which is before the first, has none.
    pub(super) fn is_set(&self, unit: u64) -> bool {
        let Some(at) = unit.checked_sub(1) else {
            return false;
        };
        let word = self.bits.get((at / 64) as usize);
        word.is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}
