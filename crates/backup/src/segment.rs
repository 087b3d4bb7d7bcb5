//! A segment: some documents of a corpus, and how they are stored.
//!
//! The stored form is the message `simshard.v1.ScanResponse`, which has a column of fingerprints and one of ids,
//! compressed by Zstandard. So any language with the protos can read it. Its name is the BLAKE3 hash of the message.

use std::fmt;
use std::str::FromStr;

use prost::Message;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use simshard_client::v1::ScanResponse;
use simshard_client::{Document, Fingerprint, MAX_ID_BYTES};

use crate::cut::MAX_BYTES;

/// As quick as copying to most stores. Ids become a fraction, and fingerprints stay what they are.
const LEVEL: i32 = 1;

/// Bytes of a fingerprint, and of the tag and the length of an id.
const FINGERPRINT_BYTES: usize = 8;
const ID_BYTES: usize = 6;

/// The largest message: a full segment, one more document, and the tags and lengths of the two columns.
const MAX_MESSAGE_BYTES: usize = MAX_BYTES + MAX_ID_BYTES + 64;

/// The documents of a segment as columns. No ids at all means that all are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    fingerprints: Vec<u64>,
    ids: Vec<String>,
}

/// The name of a segment: the BLAKE3 hash of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentHash(blake3::Hash);

/// Why the bytes of a segment are none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SegmentFault {
    /// They are not compressed data, or too long.
    #[error("it cannot be decompressed")]
    Compression(#[source] std::io::Error),
    /// They have another hash.
    #[error("its contents have the hash {0}")]
    Hash(SegmentHash),
    /// They are no message.
    #[error("it is no list of documents")]
    Message(#[source] prost::DecodeError),
    /// The columns have other lengths, or another order.
    #[error("its columns do not fit each other")]
    Columns,
}

impl Contents {
    /// Adds a document.
    pub(crate) fn push(&mut self, document: Document) {
        if !document.id.is_empty() || !self.ids.is_empty() {
            self.ids.resize(self.fingerprints.len(), String::new());
            self.ids.push(document.id);
        }
        self.fingerprints.push(document.fingerprint.0);
    }

    /// About how many bytes a document takes in a message, at most.
    pub(crate) fn bytes_of(document: &Document) -> usize {
        FINGERPRINT_BYTES + ID_BYTES + document.id.len()
    }

    pub(crate) const fn len(&self) -> usize {
        self.fingerprints.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// The first fingerprint, if there is one.
    pub(crate) fn first(&self) -> Option<Fingerprint> {
        self.fingerprints.first().copied().map(Fingerprint)
    }

    /// The last fingerprint, if there is one.
    pub(crate) fn last(&self) -> Option<Fingerprint> {
        self.fingerprints.last().copied().map(Fingerprint)
    }

    /// The fingerprints and ids.
    pub(crate) fn into_columns(self) -> (Vec<u64>, Vec<String>) {
        (self.fingerprints, self.ids)
    }

    /// The message of the documents.
    pub(crate) fn into_message(self) -> Vec<u8> {
        let (fingerprints, ids) = self.into_columns();
        ScanResponse { fingerprints, ids }.encode_to_vec()
    }
}

/// What is stored of a message.
pub(crate) fn compressed(message: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(message, LEVEL)
}

/// The documents of stored bytes with this name.
pub(crate) fn opened(stored: &[u8], name: SegmentHash) -> Result<Contents, SegmentFault> {
    let message = zstd::bulk::decompress(stored, MAX_MESSAGE_BYTES);
    let message = message.map_err(SegmentFault::Compression)?;
    let hash = SegmentHash::of(&message);
    if hash != name {
        return Err(SegmentFault::Hash(hash));
    }
    let message = ScanResponse::decode(&message[..]).map_err(SegmentFault::Message)?;
    let ScanResponse { fingerprints, ids } = message;
    let fits = ids.is_empty() || ids.len() == fingerprints.len();
    if !fits || !fingerprints.is_sorted() {
        return Err(SegmentFault::Columns);
    }
    Ok(Contents { fingerprints, ids })
}

impl SegmentHash {
    /// The hash of a message.
    pub(crate) fn of(message: &[u8]) -> Self {
        Self(blake3::hash(message))
    }
}

impl fmt::Display for SegmentHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.to_hex())
    }
}

impl FromStr for SegmentHash {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Serialize for SegmentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SegmentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn contents(documents: &[(u64, String)]) -> Contents {
        let mut contents = Contents::default();
        for (fingerprint, id) in documents {
            contents.push(Document {
                fingerprint: Fingerprint(*fingerprint),
                id: id.clone(),
            });
        }
        contents
    }

    proptest! {
        #[test]
        fn what_is_stored_comes_back(mut documents in vec((any::<u64>(), ".{0,20}"), 0..100)) {
            documents.sort();
            let stored = contents(&documents);
            let message = stored.clone().into_message();
            let bytes: usize = documents.iter().map(|(_, id)| FINGERPRINT_BYTES + ID_BYTES + id.len()).sum();
            prop_assert!(message.len() <= bytes + 64);
            let bytes = compressed(&message).unwrap();
            prop_assert_eq!(opened(&bytes, SegmentHash::of(&message)).unwrap(), stored);
        }

        #[test]
        fn damage_is_seen(documents in vec((any::<u64>(), ".{0,20}"), 1..100), place: prop::sample::Index, bit in 0_u8..8) {
            let mut documents = documents;
            documents.sort();
            let message = contents(&documents).into_message();
            let mut bytes = compressed(&message).unwrap();
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
            let name = SegmentHash::of(&message);
            // A bit that means nothing may change.
            if let Ok(opened) = opened(&bytes, name) {
                prop_assert_eq!(opened, contents(&documents));
            }
            bytes.truncate(place);
            prop_assert!(opened(&bytes, name).is_err());
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let zeros = vec![0; MAX_MESSAGE_BYTES + 1];
        let bytes = compressed(&zeros).unwrap();
        let refused = opened(&bytes, SegmentHash::of(&zeros)).unwrap_err();
        assert!(
            matches!(refused, SegmentFault::Compression(_)),
            "{refused:?}"
        );
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        for (fingerprints, ids) in [(vec![1, 2], vec!["a".to_owned()]), (vec![2, 1], Vec::new())] {
            let message = ScanResponse { fingerprints, ids }.encode_to_vec();
            let refused = opened(&compressed(&message).unwrap(), SegmentHash::of(&message));
            assert!(matches!(refused, Err(SegmentFault::Columns)));
        }
    }
}
