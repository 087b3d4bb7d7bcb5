//! Decimal numbers, as lines and fields write fingerprints.

use simshard_simhash::Fingerprint;

use crate::notation::Notation;
use crate::problem::{LineProblem, excerpt, not_utf8};

/// The value of decimal digits and nothing else, as `str::parse` reads them; `None` for all that
/// is no unsigned 64-bit decimal, a sign included.
#[must_use]
#[inline]
pub fn parse_decimal(digits: &[u8]) -> Option<u64> {
    const ZEROS_MAY_LEAD: bool = true;
    atoi_simd::parse_pos::<u64, ZEROS_MAY_LEAD>(digits).ok()
}

/// The number that some bytes begin with, and how many digits it has: at most 20. `None` where
/// they begin with no digit or a number that is longer or too large.
#[inline]
pub(super) fn leading(bytes: &[u8]) -> Option<(u64, usize)> {
    const ANY_ZEROS_MAY_LEAD: bool = false;
    atoi_simd::parse_prefix_pos::<u64, ANY_ZEROS_MAY_LEAD>(bytes).ok()
}

/// The fingerprint that these bytes write, or what is wrong with them.
#[inline]
pub(crate) fn fingerprint(written: &[u8], notation: Notation) -> Result<Fingerprint, LineProblem> {
    let value = match notation {
        Notation::Unsigned => parse_decimal(written),
        Notation::Signed => parse_signed(written).map(i64::cast_unsigned),
    };
    match value {
        Some(value) => Ok(Fingerprint(value)),
        None => Err(no_fingerprint(written, notation)),
    }
}

/// The value of decimal digits with or without a minus before them; `None` for all else.
fn parse_signed(written: &[u8]) -> Option<i64> {
    match written.strip_prefix(b"-") {
        None => i64::try_from(parse_decimal(written)?).ok(),
        Some(digits) => 0_i64.checked_sub_unsigned(parse_decimal(digits)?),
    }
}

#[cold]
fn no_fingerprint(written: &[u8], notation: Notation) -> LineProblem {
    let text = match std::str::from_utf8(written) {
        Ok(text) => text,
        Err(error) => return not_utf8(written, &error),
    };
    let value = excerpt(text);
    match notation {
        Notation::Signed => return LineProblem::NotSigned { value },
        Notation::Unsigned if parse_signed(written).is_some() => {
            return LineProblem::Negative { value };
        }
        Notation::Unsigned => {}
    }
    let error = match text.parse::<Fingerprint>() {
        Err(error) => error,
        // Not reached: both read the same numbers, which a property test holds them to.
        Ok(_) => simshard_simhash::ParseFingerprintError::NotDecimal,
    };
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
            let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let expected = parse_slowly(&bytes[..length]).filter(|_| length <= 20);
            prop_assert_eq!(leading(&bytes), expected.map(|value| (value, length)));
        }
    }

    #[test]
    fn twos_complement_goes_from_the_least_to_the_largest() {
        let read = |written: &str| fingerprint(written.as_bytes(), Notation::Signed);
        for (written, value) in [
            ("-9223372036854775808", i64::MIN),
            ("9223372036854775807", i64::MAX),
            ("-1", -1),
            ("-0", 0),
            ("007", 7),
        ] {
            let expected = Fingerprint(value.cast_unsigned());
            assert_eq!(read(written), Ok(expected), "{written}");
            let back = Notation::Signed.text(expected);
            assert_eq!(back, value.to_string());
        }
        for written in [
            "",
            "-",
            "--1",
            "+1",
            " 1",
            "1-",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551615",
        ] {
            let value = written.to_owned();
            assert_eq!(read(written), Err(LineProblem::NotSigned { value }));
        }
        let value = "-7".to_owned();
        let unsigned = fingerprint(b"-7", Notation::Unsigned);
        assert_eq!(unsigned, Err(LineProblem::Negative { value }));
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
            (
                "1234567890123456\n.......",
                Some((1_234_567_890_123_456, 16)),
            ),
            ("123456789012345678901\n..", None),
            ("000000000000000000007\n..", None),
            ("12345678901234567\n", Some((12_345_678_901_234_567, 17))),
            ("7", Some((7, 1))),
            ("", None),
            ("+7\n", None),
            ("-7\n", None),
        ] {
            assert_eq!(leading(digits.as_bytes()), value, "{digits:?}");
        }
        for none in ["", "+7", "-7", " 7", "7 ", "0x7"] {
            assert_eq!(parse_decimal(none.as_bytes()), None, "{none:?}");
        }
        assert_eq!(
            parse_decimal(format!("{}7", "0".repeat(500)).as_bytes()),
            Some(7)
        );
    }
}
