//! Columns of bits: bit `i` is bit `i % 8` of byte `i / 8`.

/// A column of `bits` bits, in which those at `places` are set.
///
/// # Panics
/// If a place is beyond the last byte.
#[must_use]
pub fn bits_from(bits: usize, places: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; bits.div_ceil(8)];
    for &place in places {
        bytes[place as usize / 8] |= 1 << (place % 8);
    }
    bytes
}

/// The places of the bits that are set, ascending; bits from `bits` on do not count.
pub fn bits_into(bits: usize, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let is_set = |place: &usize| {
        let byte = bytes.get(place / 8).copied().unwrap_or_default();
        byte >> (place % 8) & 1 == 1
    };
    (0..bits).filter(is_set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_survive_the_column() {
        let column = bits_from(12, &[11, 0, 7, 8]);
        assert_eq!(column, [0b1000_0001, 0b1001]);
        assert_eq!(bits_into(12, &column).collect::<Vec<_>>(), [0, 7, 8, 11]);
    }

    #[test]
    fn bits_that_are_not_there_are_not_set() {
        assert_eq!(bits_into(100, &[0b10]).collect::<Vec<_>>(), [1]);
        assert_eq!(bits_into(3, &[0xff, 0xff]).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(bits_from(0, &[]).is_empty());
    }
}
