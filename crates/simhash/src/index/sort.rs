//! Permuting and sorting fingerprints: one scatter by the leading bits, then small
//! sorts that stay in the first-level cache.

use crate::Fingerprint;
use crate::scan::{self, BATCH, Level};
use crate::table::Table;

/// Fewer values than this are sorted at once.
const SMALL: usize = 4096;

/// Bits that the scatter looks at.
const SCATTER_BITS: u32 = 11;

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
        let mut start = 0;
        for end in ends {
            values[start..end].sort_unstable();
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
