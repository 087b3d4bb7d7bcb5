//! The 64-bit simhash value that everything else stores, permutes and compares.

use std::fmt;
use std::str::FromStr;

/// A 64-bit simhash. Every value is ordinary, 0 and 2^64-1 included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Number of differing bits (Hamming distance), 0 to 64.
    #[must_use]
    pub const fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFingerprintError {
    /// Nothing but white space.
    #[error("a fingerprint is a decimal number, found nothing")]
    Blank,
    /// A character other than `0` to `9`.
    #[error("a fingerprint is a decimal number of digits only")]
    NotDecimal,
    /// 2^64 or more.
    #[error("a fingerprint is at most 18446744073709551615 (2^64-1)")]
    TooLarge,
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    /// Reads decimal digits and nothing else: no sign, no white space, no suffix.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Err(ParseFingerprintError::Blank);
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseFingerprintError::NotDecimal);
        }
        text.parse()
            .map(Self)
            .map_err(|_| ParseFingerprintError::TooLarge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_64_apart() {
        assert_eq!(Fingerprint(0).distance(Fingerprint(u64::MAX)), 64);
    }

    #[test]
    fn only_plain_decimals_below_two_to_the_64_parse() {
        use ParseFingerprintError::{Blank, NotDecimal, TooLarge};
        assert_eq!("0".parse(), Ok(Fingerprint(0)));
        assert_eq!("18446744073709551615".parse(), Ok(Fingerprint(u64::MAX)));
        for (text, error) in [
            ("", Blank),
            ("  ", Blank),
            ("-1", NotDecimal),
            ("+1", NotDecimal),
            (" 1", NotDecimal),
            ("12abc", NotDecimal),
            ("0x10", NotDecimal),
            ("18446744073709551616", TooLarge),
        ] {
            assert_eq!(text.parse::<Fingerprint>(), Err(error), "{text:?}");
        }
    }
}
