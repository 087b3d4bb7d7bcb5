//! How fingerprints are written as numbers.

use simshard_simhash::Fingerprint;

/// How fingerprints are written as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notation {
    /// From 0 to 2^64-1.
    #[default]
    Unsigned,
    /// In two's complement, from -2^63 to 2^63-1, as systems without unsigned integers have them.
    Signed,
}

impl Notation {
    /// The fingerprint that an integer with a sign stands for; `None` if it is none.
    pub(crate) fn of_signed(self, number: i64) -> Option<Fingerprint> {
        match self {
            Self::Unsigned => u64::try_from(number).ok().map(Fingerprint),
            Self::Signed => Some(Fingerprint(number.cast_unsigned())),
        }
    }

    /// A fingerprint as a number.
    #[must_use]
    pub fn text(self, fingerprint: Fingerprint) -> String {
        match self {
            Self::Unsigned => fingerprint.0.to_string(),
            Self::Signed => fingerprint.0.cast_signed().to_string(),
        }
    }
}
