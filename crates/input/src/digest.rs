//! A running hash: not against forgers, but against mistakes.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A hash of pieces of bytes one after another. Where two pieces meet counts.
///
/// It is written as 16 hexadecimal digits: many JSON readers round large numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Adds a piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.0 = xxh3_64_with_seed(piece, self.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = u64::from_str_radix(&text, 16).map(Self);
        match value {
            Ok(digest) if digest.to_string() == text => Ok(digest),
            Ok(_) | Err(_) => Err(de::Error::custom(format!("{text:?} is no digest"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&str]) -> Digest {
        let mut digest = Digest::default();
        for piece in pieces {
            digest.add(piece.as_bytes());
        }
        digest
    }

    #[test]
    fn pieces_their_order_and_where_they_meet_count() {
        let digests = [
            of(&[]),
            of(&[""]),
            of(&["ab", "c"]),
            of(&["a", "bc"]),
            of(&["c", "ab"]),
            of(&["abc"]),
        ];
        for (place, digest) in digests.iter().enumerate() {
            assert!(!digests[..place].contains(digest), "{place}");
        }
    }

    #[test]
    fn it_is_written_as_hexadecimal_digits_and_read_back() {
        for digest in [of(&[]), of(&["a"]), Digest(u64::MAX)] {
            let json = serde_json::to_string(&digest).unwrap();
            assert_eq!(json.len(), 18, "{json}");
            assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        }
        for bad in [
            "\"\"",
            "\"12\"",
            "\"+00000000000000a\"",
            "\"000000000000000A\"",
            "7",
        ] {
            assert!(serde_json::from_str::<Digest>(bad).is_err(), "{bad}");
        }
    }
}
