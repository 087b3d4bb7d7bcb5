//! Features: hashes with weights, from which a fingerprint is computed.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use simshard_simhash::{Fingerprint, features};

use super::decimal::parse_decimal;

/// The syntax of features, for messages.
pub(super) const EXPECTED: &str = "an object {\"hash\": weight, …} with each hash once, \
     or an array of hashes and [hash, weight] pairs, all of them integers from 0 to 2^64-1";

/// Hashes with their weights.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Features(pub(super) Vec<(u64, u64)>);

/// Reads one valid JSON value; `None` where it is no features.
pub(super) fn parse(written: &str) -> Option<Features> {
    serde_json::from_str(written).ok()
}

impl Features {
    /// Their fingerprint; `None` where the weights reach 2^64 in all.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        features::fingerprint(&self.0).ok()
    }
}

impl<'de> Deserialize<'de> for Features {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(Outer)
    }
}

struct Outer;

impl<'de> Visitor<'de> for Outer {
    type Value = Features;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut weights: M) -> Result<Features, M::Error> {
        let mut features = Vec::new();
        while let Some((Hash(hash), weight)) = weights.next_entry()? {
            features.push((hash, weight));
        }
        features.sort_unstable();
        let twice = |pair: &[(u64, u64)]| pair[0].0 == pair[1].0;
        if features.windows(2).any(twice) {
            return Err(M::Error::custom("a hash twice"));
        }
        Ok(Features(features))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<Features, S::Error> {
        let mut features = Vec::new();
        while let Some(Element(hash, weight)) = elements.next_element()? {
            features.push((hash, weight));
        }
        Ok(Features(features))
    }
}

/// A number, or a string of decimal digits.
struct Hash(u64);

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let Element(hash, _) = value.deserialize_any(ElementVisitor { pairs: false })?;
        Ok(Self(hash))
    }
}

/// A hash that counts once, or a hash with its weight.
struct Element(u64, u64);

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(ElementVisitor { pairs: true })
    }
}

struct ElementVisitor {
    /// Whether a pair will do.
    pairs: bool,
}

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hash")
    }

    fn visit_u64<E: Error>(self, hash: u64) -> Result<Element, E> {
        Ok(Element(hash, 1))
    }

    fn visit_str<E: Error>(self, digits: &str) -> Result<Element, E> {
        match parse_decimal(digits.as_bytes()) {
            Some(hash) => Ok(Element(hash, 1)),
            None => Err(E::custom("no hash")),
        }
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut pair: S) -> Result<Element, S::Error> {
        let (true, Some(Hash(hash)), Some(weight)) =
            (self.pairs, pair.next_element()?, pair.next_element()?)
        else {
            return Err(S::Error::custom("no pair"));
        };
        match pair.next_element::<u64>()? {
            None => Ok(Element(hash, weight)),
            Some(_) => Err(S::Error::custom("more than a pair")),
        }
    }
}
