//! A fingerprint as an argument.

use std::str::FromStr;

use simshard_simhash::{Fingerprint, ParseFingerprintError};

use crate::exit::UsageError;

/// A fingerprint as it was given. One with a minus is in two's complement, as `--signed` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenFingerprint {
    value: Fingerprint,
    has_minus: bool,
}

impl GivenFingerprint {
    /// The fingerprint, where negative ones are allowed or there is none.
    pub(crate) fn value(self, is_signed: bool) -> Result<Fingerprint, UsageError> {
        if self.has_minus && !is_signed {
            let number = self.value.0.cast_signed();
            return Err(UsageError(format!(
                "{number} is negative: give --signed with fingerprints in two's complement"
            )));
        }
        Ok(self.value)
    }
}

impl FromStr for GivenFingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let signed = text.parse::<i64>().ok().filter(|_| text.starts_with('-'));
        let value = match signed {
            Some(signed) => Fingerprint(signed.cast_unsigned()),
            None => text.parse()?,
        };
        Ok(Self {
            value,
            has_minus: signed.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_number_is_that_of_twos_complement_and_needs_the_option() {
        let value = |text: &str, is_signed| {
            let given: GivenFingerprint = text.parse().unwrap();
            given.value(is_signed).ok()
        };
        for (text, expected) in [("-1", u64::MAX), ("-9223372036854775808", 1 << 63)] {
            assert_eq!(value(text, true), Some(Fingerprint(expected)), "{text}");
            assert_eq!(value(text, false), None, "{text}");
        }
        for text in ["7", "18446744073709551615"] {
            let expected = text.parse().ok();
            assert_eq!(
                (value(text, true), value(text, false)),
                (expected, expected)
            );
        }
        for text in ["-", "--1", "-9223372036854775809", "1.5", "+1", ""] {
            assert!(text.parse::<GivenFingerprint>().is_err(), "{text}");
        }
    }
}
