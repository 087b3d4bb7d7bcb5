//! Fingerprints as plain numbers, without copying them.

#![allow(unsafe_code, reason = "a slice is viewed as another type")]

use crate::Fingerprint;

/// The bits of fingerprints, in place.
pub(crate) const fn bits(fingerprints: &[Fingerprint]) -> &[u64] {
    // SAFETY: a fingerprint is a transparent wrapper of u64, so layout and valid values are equal.
    unsafe { std::slice::from_raw_parts(fingerprints.as_ptr().cast(), fingerprints.len()) }
}

/// The fingerprints that have these bits, in place.
pub(crate) const fn of_bits(bits: &[u64]) -> &[Fingerprint] {
    // SAFETY: as above, and any bits are a fingerprint.
    unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_the_fingerprints() {
        assert!(bits(&[]).is_empty());
        assert_eq!(
            bits(&[Fingerprint(7), Fingerprint(u64::MAX)]),
            [7, u64::MAX]
        );
        assert_eq!(of_bits(&[8, u64::MAX]), [8, u64::MAX].map(Fingerprint));
    }
}
