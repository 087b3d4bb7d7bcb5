//! Permuting and sorting fingerprints: one scatter by the leading bits, then one of
//! each part by the next, which stays in the cache, then insertion of each value
//! among its few neighbours. Prefixes are mixed, so parts and bins are about equal;
//! where values crowd all the same, the standard sort takes over.

use crate::Fingerprint;
use crate::scan::{self, BATCH, Level};
use crate::table::Table;

/// Fewer values than this are sorted at once.
const SMALL: usize = 4096;

/// Bits that the scatter looks at.
const SCATTER_BITS: u32 = 11;

/// Parts shorter or longer than this are left to the standard sort.
const PART: std::ops::Range<usize> = 32..1 << 16;

/// Most values that one bin of a part may hold, so that insertion is fast.
const BIN: u32 = 16;

/// What is sorted: fingerprints as one table of a shard, or of all, holds them.
pub(super) struct Permuted<'a> {
    pub(super) level: Level,
    pub(super) table: &'a Table,
    pub(super) shard: Option<u8>,
    pub(super) fingerprints: &'a [Fingerprint],
}

impl Permuted<'_> {
    /// The permuted values, mixed, ascending.
    pub(super) fn sorted(&self) -> Vec<u64> {
        if self.fingerprints.len() < SMALL {
            let mut values = Vec::with_capacity(self.fingerprints.len());
            self.each(|value| values.push(value));
            values.sort_unstable();
            return values;
        }
        let bucket = |value: u64| (value >> (64 - SCATTER_BITS)) as usize;
        let mut ends = vec![0_usize; 1 << SCATTER_BITS];
        self.each(|value| ends[bucket(value)] += 1);
        let mut before = 0;
        for end in &mut ends {
            // Where the bucket starts: the scatter moves it to the end.
            (before, *end) = (before + *end, before);
        }
        let mut values = scan::zeroed(before);
        self.each(|value| {
            let end = &mut ends[bucket(value)];
            values[*end] = value;
            *end += 1;
        });
        let mut sorter = PartSorter::default();
        let mut start = 0;
        for end in ends {
            sorter.sort(&mut values[start..end]);
            start = end;
        }
        values
    }

    /// Calls `value` for each permuted value that the shard holds, mixed.
    fn each(&self, mut value: impl FnMut(u64)) {
        let prefix = self.table.leading_mask();
        let mut permuted = [0; BATCH];
        for fingerprints in self.fingerprints.chunks(BATCH) {
            let permuted = &mut permuted[..fingerprints.len()];
            scan::permute(self.level, self.table, fingerprints, permuted);
            for permuted in permuted {
                let held = |shard| (*permuted >> 56) as u8 == shard;
                if self.shard.is_none_or(held) {
                    value(scan::mix(prefix, *permuted));
                }
            }
        }
    }
}

/// Sorts values that agree in their first [`SCATTER_BITS`].
#[derive(Default)]
struct PartSorter {
    ends: Vec<u32>,
    binned: Vec<u64>,
}

impl PartSorter {
    fn sort(&mut self, values: &mut [u64]) {
        if !PART.contains(&values.len()) {
            return values.sort_unstable();
        }
        let bits = values.len().ilog2();
        let bin = |value: u64| (value << SCATTER_BITS >> (64 - bits)) as usize;
        self.ends.clear();
        self.ends.resize(1 << bits, 0);
        for &value in &*values {
            self.ends[bin(value)] += 1;
        }
        if self.ends.iter().any(|&count| count > BIN) {
            return values.sort_unstable();
        }
        let mut before = 0;
        for end in &mut self.ends {
            (before, *end) = (before + *end, before);
        }
        self.binned.resize(values.len(), 0);
        for &value in &*values {
            let end = &mut self.ends[bin(value)];
            self.binned[*end as usize] = value;
            *end += 1;
        }
        for (place, &value) in self.binned.iter().enumerate() {
            let mut hole = place;
            while hole > 0 && values[hole - 1] > value {
                values[hole] = values[hole - 1];
                hole -= 1;
            }
            values[hole] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::synthetic::Data;
    use crate::tables::Tables;

    #[test]
    fn values_come_out_as_the_standard_sort_leaves_them() {
        let tables = Tables::new(Layout::new(5, 3).unwrap());
        for (count, shard) in [
            (100, None),
            (100, Some(7)),
            (20_000, None),
            (200_000, None),
            (20_000, Some(0x9f)),
        ] {
            for data in Data::ALL {
                let mut fingerprints = data.fingerprints(count, 5);
                fingerprints.extend([0, u64::MAX].map(Fingerprint));
                for table in tables.iter() {
                    let permuted = fingerprints.iter().map(|&f| table.permute(f));
                    let held =
                        |value: &u64| shard.is_none_or(|shard| value.to_be_bytes()[0] == shard);
                    let mix = |value| scan::mix(table.leading_mask(), value);
                    let mut expected: Vec<u64> = permuted.filter(held).map(mix).collect();
                    expected.sort_unstable();
                    let sorted = Permuted {
                        level: Level::best(),
                        table,
                        shard,
                        fingerprints: &fingerprints,
                    };
                    assert_eq!(
                        sorted.sorted(),
                        expected,
                        "{table} {shard:?} {}",
                        data.name()
                    );
                }
            }
        }
    }
}
