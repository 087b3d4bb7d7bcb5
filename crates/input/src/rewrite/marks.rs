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

/// Where documents stand, by their numbers.
pub struct Places<'a>(Vec<SourcePlaces<'a>>);

struct SourcePlaces<'a> {
    /// The number of its first document.
    first: usize,
    bits: &'a [u64],
    /// By word, how many documents stand before it.
    before: Vec<u32>,
}

impl Marks {
    /// Where the documents stand, before any is left out.
    #[must_use]
    pub fn places(&self) -> Places<'_> {
        let mut first = 0;
        let places = self.sources.iter().map(|marks| {
            let mut documents = 0;
            let before = marks.bits.iter().map(|word| {
                documents += word.count_ones();
                documents - word.count_ones()
            });
            let places = SourcePlaces {
                first,
                bits: &marks.bits,
                before: before.collect(),
            };
            first += documents as usize;
            places
        });
        Places(places.collect())
    }

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

impl Places<'_> {
    /// The number of the unit of a document in its source, from 1; of several units the first. 0 if there is no such
    /// document.
    #[must_use]
    pub fn unit(&self, document: usize) -> u64 {
        let source = self.0.partition_point(|source| source.first <= document);
        let source = source.checked_sub(1).map(|source| &self.0[source]);
        source.map_or(0, |source| source.unit(document - source.first))
    }
}

impl SourcePlaces<'_> {
    /// The unit of a document by its number among those of the source.
    fn unit(&self, number: usize) -> u64 {
        let word = self
            .before
            .partition_point(|&before| before as usize <= number);
        let Some(word) = word.checked_sub(1) else {
            return 0;
        };
        let mut documents = self.bits[word];
        for _ in self.before[word] as usize..number {
            // Without its lowest bit.
            documents &= documents.wrapping_sub(1);
        }
        match documents {
            0 => 0,
            documents => word as u64 * 64 + u64::from(documents.trailing_zeros()) + 1,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_bits() {
        let units: [&[u64]; 5] = [&[], &[1, 2, 64, 65, 1000], &[], &[130], &[]];
        let sources = units.map(|units| {
            let mut marks = SourceMarks::default();
            marks.add(units, Vec::new(), 1200);
            marks
        });
        let marks = Marks {
            sources: sources.into(),
        };
        let places = marks.places();
        let found: Vec<u64> = (0..7).map(|document| places.unit(document)).collect();
        assert_eq!(found, [1, 2, 64, 65, 1000, 130, 0]);
        let none = Marks {
            sources: Vec::new(),
        };
        assert_eq!(none.places().unit(0), 0);
    }
}
