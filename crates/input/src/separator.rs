//! The byte between the values of a row of CSV.

use std::fmt;
use std::str::FromStr;

/// The byte between the values of a row of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Separator(u8);

/// A name of no separator.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected one character, such as ; or |, or the word tab: no letter, digit, quote or line break; in a \
     shell, put quotes around it"
)]
pub struct ParseSeparatorError;

impl Separator {
    pub(crate) const COMMA: Self = Self(b',');
    pub(crate) const TAB: Self = Self(b'\t');

    pub(crate) const fn byte(self) -> u8 {
        self.0
    }

    /// Another usual one that stands in a value, if there is one.
    pub(crate) fn other_in(self, value: &[u8]) -> Option<Self> {
        let others = [b';', b'\t', b'|', b','].map(Self).into_iter();
        let mut others = others.filter(|other| *other != self);
        others.find(|other| value.contains(&other.0))
    }
}

impl FromStr for Separator {
    type Err = ParseSeparatorError;

    /// A shell makes a `t` of a bare `\t`, so no letter is one.
    fn from_str(text: &str) -> Result<Self, ParseSeparatorError> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self::TAB),
            [byte] if !byte.is_ascii_alphanumeric() && !b"\"\r\n\0".contains(byte) => {
                Ok(Self(*byte))
            }
            _ => Err(ParseSeparatorError),
        }
    }
}

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\t' => f.write_str("tab"),
            byte => write!(f, "{}", char::from(byte)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn separators_are_called_as_they_are_shown() {
        for name in ["tab", ",", ";", "|", " ", "'", "\\"] {
            assert_eq!(name.parse::<Separator>().unwrap().to_string(), name);
        }
        for name in ["\\t", "\t"] {
            assert_eq!(name.parse::<Separator>().unwrap(), Separator::TAB);
        }
        for name in ["", "t", "0", "\"", "\n", "\r", "\0", ",,", "\u{a7}"] {
            assert!(name.parse::<Separator>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_name_says_whether_tabs_separate() {
        for name in ["a.tsv", "a.TSV", "b/a.tsv.gz"] {
            assert_eq!(Separator::of_name(Path::new(name)), Separator::TAB);
        }
        for name in ["a.csv", "tsv", "a.tsv/b", "<stdin>"] {
            assert_eq!(Separator::of_name(Path::new(name)), Separator::COMMA);
        }
    }
}
