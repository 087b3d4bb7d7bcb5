//! Permuting and sorting fingerprints. One scatter goes by the leading bits that may differ. Then
//! each part is scattered by the next bits, which stays in the cache. Last, each value is inserted
//! among its few neighbours. Prefixes are mixed, so parts and bins are about equal; where values
//! crowd all the same, the standard sort takes over.

use super::{mixed_bits, shared_bits};
use crate::Fingerprint;
use crate::counting;
use crate::scan::{self, BATCH, Level, Zeroed};
use crate::table::Table;

/// Fewer values than this are sorted at once.
const FEW_VALUES: usize = 4096;

/// Bits that the scatter looks at.
const SCATTER_BITS: u32 = 11;

/// Parts shorter or longer than this are left to the standard sort.
const PART: std::ops::Range<usize> = 32..1 << 16;

/// Most values that one bin of a part may hold, so that insertion is fast.
const BIN: u32 = 16;

/// The input of a sort: fingerprints as one table of a shard, or of all shards, holds them.
pub(super) struct Permuted<'a> {
    pub(super) level: Level,
    pub(super) table: &'a Table,
    pub(super) shard: Option<u8>,
    pub(super) fingerprints: &'a [Fingerprint],
}

impl Permuted<'_> {
    /// The permuted values, mixed, ascending, in `buffer`.
    pub(super) fn sorted<'b>(&self, buffer: &'b mut Zeroed<u64>) -> &'b [u64] {
        if self.fingerprints.len() < FEW_VALUES {
            let (values, mut len) = (buffer.room(self.fingerprints.len()), 0);
            self.batches(|batch| {
                values[len..len + batch.len()].copy_from_slice(batch);
                len += batch.len();
            });
            values[..len].sort_unstable();
            return &values[..len];
        }
        let shared = shared_bits(self.shard);
        let bucket = |value: u64| (value << shared >> (64 - SCATTER_BITS)) as usize;
        let mut ends = vec![0_usize; 1 << SCATTER_BITS];
        self.batches(|batch| counting::count(&mut ends, batch.iter().map(|&v| bucket(v))));
        let values = buffer.room(counting::to_starts(&mut ends));
        self.batches(|batch| {
            let by_bucket = batch.iter().map(|&value| (bucket(value), value));
            counting::scatter(&mut ends, by_bucket, values);
        });
        let mut sorter = PartSorter::default();
        let mut start = 0;
        for end in ends {
            sorter.sort(&mut values[start..end], shared + SCATTER_BITS);
            start = end;
        }
        values
    }

    /// Calls `batch` with the permuted values that the shard holds, mixed.
    fn batches(&self, mut batch: impl FnMut(&[u64])) {
        let mask = mixed_bits(self.table, self.shard);
        let mut permuted = [0; BATCH];
        for fingerprints in self.fingerprints.chunks(BATCH) {
            let permuted = &mut permuted[..fingerprints.len()];
            scan::permute(self.level, self.table, fingerprints, permuted);
            let held = match self.shard {
                Some(shard) => held(permuted, shard),
                None => permuted,
            };
            scan::mix_all(self.level, mask, held);
            batch(held);
        }
    }
}

/// Moves the values that begin with a shard's byte to the front.
fn held(values: &mut [u64], shard: u8) -> &mut [u64] {
    let mut kept = 0;
    for place in 0..values.len() {
        let value = values[place];
        values[kept] = value;
        kept += usize::from((value >> 56) as u8 == shard);
    }
    &mut values[..kept]
}

/// Sorts values that agree in their leading bits.
#[derive(Default)]
struct PartSorter {
    ends: Vec<u32>,
    binned: Vec<u64>,
}

impl PartSorter {
    fn sort(&mut self, values: &mut [u64], equal_bits: u32) {
        if !PART.contains(&values.len()) {
            return values.sort_unstable();
        }
        let bits = values.len().ilog2();
        let bin = |value: u64| (value << equal_bits >> (64 - bits)) as usize;
        self.ends.clear();
        self.ends.resize(1 << bits, 0);
        counting::count(&mut self.ends, values.iter().map(|&value| bin(value)));
        if self.ends.iter().any(|&count| count > BIN) {
            return values.sort_unstable();
        }
        counting::to_starts(&mut self.ends);
        self.binned.resize(values.len(), 0);
        let by_bin = values.iter().map(|&value| (bin(value), value));
        counting::scatter(&mut self.ends, by_bin, &mut self.binned);
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
                    let mix = |value| scan::mix(mixed_bits(table, shard), value);
                    let mut expected: Vec<u64> = permuted.filter(held).map(mix).collect();
                    expected.sort_unstable();
                    let mut buffer = Zeroed::default();
                    let sorted = Permuted {
                        level: Level::best(),
                        table,
                        shard,
                        fingerprints: &fingerprints,
                    };
                    assert_eq!(
                        sorted.sorted(&mut buffer),
                        expected,
                        "{table} {shard:?} {}",
                        data.name()
                    );
                }
            }
        }
    }
}
