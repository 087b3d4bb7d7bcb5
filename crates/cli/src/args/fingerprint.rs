//! A fingerprint as an argument.

use simshard_simhash::{Fingerprint, ParseFingerprintError};

/// Reads a fingerprint. One with a minus is in two's complement, as `--signed` prints it.
pub(crate) fn fingerprint(text: &str) -> Result<Fingerprint, ParseFingerprintError> {
    if text.starts_with('-')
        && let Ok(signed) = text.parse::<i64>()
    {
        return Ok(Fingerprint(signed.cast_unsigned()));
    }
    text.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_number_is_that_of_twos_complement() {
        for (text, value) in [
            ("7", 7),
            ("-1", u64::MAX),
            ("-9223372036854775808", 1 << 63),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(fingerprint(text), Ok(Fingerprint(value)), "{text}");
        }
        for text in ["-", "--1", "-9223372036854775809", "1.5", "+1", ""] {
            assert!(fingerprint(text).is_err(), "{text}");
        }
    }
}
