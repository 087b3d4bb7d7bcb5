//! Decimal numbers, eight digits at a step.

use simshard_simhash::Fingerprint;

use crate::problem::{LineProblem, excerpt, not_utf8};

/// Eight times the digit 0.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The most digits that can never be too large.
const SAFE_DIGITS: usize = 19;

/// The value of decimal digits and nothing else, as `str::parse` reads them; `None` for all that
/// is no unsigned 64-bit decimal, a sign included.
#[must_use]
#[inline]
pub fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.len() > SAFE_DIGITS {
        return long(digits);
    }
    if digits.is_empty() {
        return None;
    }
    short(digits)
}

/// At most 19 digits: below 10^19, and so below 2^64.
#[inline]
fn short(digits: &[u8]) -> Option<u64> {
    let mut value = 0;
    let mut rest = digits;
    while let Some((eight, after)) = rest.split_first_chunk() {
        value = value * 100_000_000 + eight_digits(u64::from_le_bytes(*eight))?;
        rest = after;
    }
    for &digit in rest {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

fn long(digits: &[u8]) -> Option<u64> {
    let (rest, last) = digits.split_at(digits.len() - 1);
    // Zeros may lead, as many as there are.
    let surplus = rest.len() - SAFE_DIGITS;
    if rest[..surplus].iter().any(|&digit| digit != b'0') {
        return None;
    }
    let tens = short(&rest[surplus..])?;
    tens.checked_mul(10)?.checked_add(short(last)?)
}

/// The number of 17 to 20 digits that some bytes begin with, and how many these are; `None` for
/// any other number of digits, or fewer than 24 bytes, or a number that is too large.
///
/// Most fingerprints have 19 or 20 digits, at random: here neither is a branch taken wrongly.
#[inline]
pub(super) fn leading(bytes: &[u8]) -> Option<(u64, usize)> {
    let (upper, rest) = bytes.split_first_chunk()?;
    let (middle, rest) = rest.split_first_chunk()?;
    let lower = u64::from_le_bytes(*rest.first_chunk()?);
    let upper = eight_digits(u64::from_le_bytes(*upper))?;
    let sixteen = upper * 100_000_000 + eight_digits(u64::from_le_bytes(*middle))?;
    let digits = (others(lower).trailing_zeros() / 8) as usize;
    let scale = *[0, 10, 100, 1000, 10_000]
        .get(digits)
        .filter(|&&scale| scale > 0)?;
    // The digits move to the end of the word, zeros come before them.
    let aligned = lower << (64 - 8 * digits) | ZEROS >> (8 * digits);
    let value = sixteen.checked_mul(scale)?.checked_add(value(aligned))?;
    Some((value, 16 + digits))
}

/// The value of eight ASCII digits, the first in the lowest byte.
#[inline]
fn eight_digits(ascii: u64) -> Option<u64> {
    (others(ascii) == 0).then(|| value(ascii))
}

/// The highest bit of every byte that is no ASCII digit.
#[inline]
const fn others(ascii: u64) -> u64 {
    // The digits become 0 to 9, and with 0x76 more everything above them reaches 0x80.
    let offsets = ascii ^ ZEROS;
    let above_nine = (offsets & 0x7F7F_7F7F_7F7F_7F7F) + 0x7676_7676_7676_7676;
    (above_nine | offsets) & 0x8080_8080_8080_8080
}

/// The value of what are known to be digits. Neighbours are added up in all lanes at once: digits
/// to numbers below 100, those to numbers below 10,000, those to one.
#[inline]
const fn value(ascii: u64) -> u64 {
    let digits = ascii ^ ZEROS;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF
}

/// The fingerprint that these bytes write, or what is wrong with them.
#[inline]
pub(super) fn fingerprint(written: &[u8]) -> Result<Fingerprint, LineProblem> {
    match parse_decimal(written) {
        Some(value) => Ok(Fingerprint(value)),
        None => Err(no_fingerprint(written)),
    }
}

#[cold]
fn no_fingerprint(written: &[u8]) -> LineProblem {
    let text = match std::str::from_utf8(written) {
        Ok(text) => text,
        Err(error) => return not_utf8(written, &error),
    };
    let error = match text.parse::<Fingerprint>() {
        Err(error) => error,
        // Not reached: both read the same numbers, which a property test holds them to.
        Ok(_) => simshard_simhash::ParseFingerprintError::NotDecimal,
    };
    let value = excerpt(text);
    LineProblem::NotFingerprint { value, error }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Digits as they come, at the limits, with zeros ahead, and with one byte put wrong.
    fn written() -> impl Strategy<Value = Vec<u8>> {
        let number = prop_oneof![
            any::<u64>().prop_map(u128::from),
            (0..64_u32).prop_flat_map(|bits| 0..=(1_u128 << bits)),
            (u128::from(u64::MAX) - 5)..(u128::from(u64::MAX) + 5),
            any::<u128>(),
        ];
        (
            number,
            0..9_usize,
            any::<bool>(),
            any::<u8>(),
            any::<prop::sample::Index>(),
        )
            .prop_map(|(number, zeros, damaged, byte, place)| {
                let mut digits = format!("{}{number}", "0".repeat(zeros)).into_bytes();
                if damaged {
                    let place = place.index(digits.len());
                    digits[place] = byte;
                }
                digits
            })
    }

    fn parse_slowly(digits: &[u8]) -> Option<u64> {
        let text = std::str::from_utf8(digits).ok()?;
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits_only)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn decimals_are_read_as_the_standard_library_reads_them(digits in written()) {
            prop_assert_eq!(parse_decimal(&digits), parse_slowly(&digits));
        }

        #[test]
        fn a_leading_number_is_the_one_that_stands_there(
            digits in written(),
            after in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let bytes = [&digits[..], &after].concat();
            if let Some((value, length)) = leading(&bytes) {
                prop_assert!((17..=20).contains(&length));
                prop_assert_eq!(parse_slowly(&bytes[..length]), Some(value));
                prop_assert!(!bytes[length].is_ascii_digit());
            }
        }
    }

    #[test]
    fn the_extremes_are_read_at_a_glance() {
        for (digits, value) in [
            ("18446744073709551615\n...", Some((u64::MAX, 20))),
            ("18446744073709551616\n...", None),
            ("99999999999999999999\n...", None),
            (
                "9999999999999999999\n....",
                Some((9_999_999_999_999_999_999, 19)),
            ),
            ("00000000000000000000\n...", Some((0, 20))),
            (
                "12345678901234567\n......",
                Some((12_345_678_901_234_567, 17)),
            ),
            ("1234567890123456\n.......", None),
            ("123456789012345678901\n..", None),
            ("12345678901234567\n", None),
        ] {
            assert_eq!(leading(digits.as_bytes()), value, "{digits:?}");
        }
        assert_eq!(parse_decimal(b""), None);
        assert_eq!(
            parse_decimal(format!("{}7", "0".repeat(500)).as_bytes()),
            Some(7)
        );
    }
}
