//! Spreading prefixes evenly: real fingerprints are dense in places, so neighbouring
//! prefixes would crowd into few buckets. A multiplication scatters them; those that
//! are equal stay equal, and the suffix stays as it is.
//!
//! # Invariants
//! - X8: mixing can be undone, keeps equal prefixes equal and different ones different, and keeps all other bits. In
//!   an index of one shard the leading byte, which all entries share, is such a bit too: a run need not store it.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use super::Level;

/// Odd, so that multiplying by it can be undone; 2^64 over the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

const INVERSE: u64 = inverse(FACTOR);

/// The number that gives 1 when multiplied by an odd `factor`, modulo 2^64.
const fn inverse(factor: u64) -> u64 {
    // Right in the lowest three bits; each step doubles them.
    let mut inverse = factor;
    let mut right = 3;
    while right < 64 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)));
        right *= 2;
    }
    inverse
}

/// A permuted value whose bits in the mask, which stand in a row, are mixed.
#[inline(always)]
pub(crate) const fn mix(mask: u64, value: u64) -> u64 {
    (value & mask).wrapping_mul(FACTOR) & mask | value & !mask
}

/// The inverse of [`mix`].
#[inline(always)]
pub(crate) const fn unmix(mask: u64, mixed: u64) -> u64 {
    (mixed & mask).wrapping_mul(INVERSE) & mask | mixed & !mask
}

/// [`mix`] for each value.
pub(crate) fn mix_all(level: Level, mask: u64, values: &mut [u64]) {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) | Level::Avx512(_) => unsafe { mix_all_avx512(mask, values) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { mix_all_avx2(mask, values) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => mix_all_scalar(mask, values),
        Level::Scalar => mix_all_scalar(mask, values),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn mix_all_avx512(mask: u64, values: &mut [u64]) {
    mix_all_scalar(mask, values);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn mix_all_avx2(mask: u64, values: &mut [u64]) {
    mix_all_scalar(mask, values);
}

#[inline(always)]
fn mix_all_scalar(mask: u64, values: &mut [u64]) {
    for value in values {
        *value = mix(mask, *value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// X8, at every level.
        #[test]
        fn prefixes_are_scattered_one_to_one_and_suffixes_stay(
            values in prop::collection::vec(any::<u64>(), 1..40),
            prefix_bits in 1..=64_u32,
            skipped in prop_oneof![Just(0_u32), Just(8)],
            flips: u64,
        ) {
            let prefix = u64::MAX << (64 - prefix_bits);
            let mask = prefix & u64::MAX >> skipped;
            for level in Level::available() {
                let mut mixed = values.clone();
                mix_all(level, mask, &mut mixed);
                for (&value, &mixed) in values.iter().zip(&mixed) {
                    prop_assert_eq!(mixed, mix(mask, value), "{:?}", level);
                    prop_assert_eq!(unmix(mask, mixed), value);
                    prop_assert_eq!(mixed & !mask, value & !mask);
                    let near = mix(mask, value ^ flips & !mask);
                    prop_assert_eq!(near ^ mixed, flips & !mask);
                }
            }
        }
    }
}
