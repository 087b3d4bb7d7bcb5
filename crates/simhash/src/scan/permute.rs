//! Permuting many fingerprints at once: the code of [`Table::permute_into`],
//! compiled for each level.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use super::Level;
use crate::Fingerprint;
use crate::table::Table;

/// Permutes each fingerprint into the place of `permuted` that belongs to it.
pub(crate) fn permute(
    level: Level,
    table: &Table,
    fingerprints: &[Fingerprint],
    permuted: &mut [u64],
) {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) | Level::Avx512(_) => unsafe {
            permute_avx512(table, fingerprints, permuted);
        },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { permute_avx2(table, fingerprints, permuted) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => table.permute_into(fingerprints, permuted),
        Level::Scalar => table.permute_into(fingerprints, permuted),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn permute_avx512(table: &Table, fingerprints: &[Fingerprint], permuted: &mut [u64]) {
    table.permute_into(fingerprints, permuted);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn permute_avx2(table: &Table, fingerprints: &[Fingerprint], permuted: &mut [u64]) {
    table.permute_into(fingerprints, permuted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::tables::Tables;

    #[test]
    fn every_level_permutes_as_one_by_one() {
        for (blocks, distance) in [(5, 3), (1, 0), (10, 7), (64, 1)] {
            let tables = Tables::new(Layout::new(blocks, distance).unwrap());
            let fingerprints: Vec<Fingerprint> = (0..77_u64)
                .map(|i| Fingerprint(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
                .collect();
            for table in tables.iter() {
                let expected: Vec<u64> = fingerprints.iter().map(|&f| table.permute(f)).collect();
                for level in Level::available() {
                    let mut permuted = vec![7; fingerprints.len()];
                    permute(level, table, &fingerprints, &mut permuted);
                    assert_eq!(permuted, expected, "{table} {level:?}");
                }
            }
        }
    }
}
