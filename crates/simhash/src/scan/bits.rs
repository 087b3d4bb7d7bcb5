//! Fingerprints as plain numbers, without copying them.

#![allow(unsafe_code, reason = "a slice is viewed as another type")]

use crate::Fingerprint;

/// The bits of fingerprints, in place.
pub(crate) const fn bits(fingerprints: &[Fingerprint]) -> &[u64] {
    // SAFETY: a fingerprint is a transparent wrapper of u64, so layout and valid values are equal.
    unsafe { std::slice::from_raw_parts(fingerprints.as_ptr().cast(), fingerprints.len()) }
}

/// The same, to change them.
pub(crate) const fn bits_mut(fingerprints: &mut [Fingerprint]) -> &mut [u64] {
    // SAFETY: as above, and any bits are a fingerprint.
    unsafe { std::slice::from_raw_parts_mut(fingerprints.as_mut_ptr().cast(), fingerprints.len()) }
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
        let mut fingerprints = [Fingerprint(7), Fingerprint(u64::MAX)];
        bits_mut(&mut fingerprints)[0] = 8;
        assert_eq!(fingerprints, [8, u64::MAX].map(Fingerprint));
    }
}
