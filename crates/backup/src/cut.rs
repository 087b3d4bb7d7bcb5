//! Cutting a corpus into segments.

use simshard_client::{Document, Fingerprint};

use crate::segment::Contents;

/// The number of distinct fingerprints of a segment, on average.
const FINGERPRINTS: u64 = 1 << 17;

/// A segment has at most this many bytes, unless a single document has more.
pub(crate) const MAX_BYTES: usize = 32 << 20;

/// Cuts documents that come by fingerprint, then id.
///
/// Where a segment begins depends on the fingerprint there, and on nothing else (BK1). So a document that is inserted or
/// removed changes the segment that has it, and no other. Only what is longer than [`MAX_BYTES`] is cut by its length.
#[derive(Debug)]
pub(crate) struct Cutter {
    open: Contents,
    /// About how many bytes that takes in a message, at most.
    bytes: usize,
    max_bytes: usize,
    fingerprints: u64,
}

impl Default for Cutter {
    fn default() -> Self {
        Self {
            open: Contents::default(),
            bytes: 0,
            max_bytes: MAX_BYTES,
            fingerprints: FINGERPRINTS,
        }
    }
}

impl Cutter {
    /// Takes the next document. Yields the segment that ends before it, if one does.
    pub(crate) fn push(&mut self, document: Document) -> Option<Contents> {
        let bytes = Contents::bytes_of(&document);
        let is_full = self.bytes + bytes > self.max_bytes;
        let begins =
            self.begins(document.fingerprint) && self.open.last() != Some(document.fingerprint);
        let ended = !self.open.is_empty() && (is_full || begins);
        let segment = ended.then(|| {
            self.bytes = 0;
            std::mem::take(&mut self.open)
        });
        self.bytes += bytes;
        self.open.push(document);
        segment
    }

    /// The last segment, if there is one.
    pub(crate) fn finish(self) -> Option<Contents> {
        (!self.open.is_empty()).then_some(self.open)
    }

    /// Whether a segment begins at a fingerprint.
    fn begins(&self, fingerprint: Fingerprint) -> bool {
        mixed(fingerprint.0).is_multiple_of(self.fingerprints)
    }
}

/// A number that looks random: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). Fingerprints themselves may
/// all have the same low bits.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn cut(documents: &BTreeSet<(u64, String)>, max_bytes: usize) -> Vec<Contents> {
        let mut cutter = Cutter {
            max_bytes,
            fingerprints: 8,
            ..Cutter::default()
        };
        let mut segments = Vec::new();
        for (fingerprint, id) in documents {
            segments.extend(cutter.push(Document {
                fingerprint: Fingerprint(*fingerprint),
                id: id.clone(),
            }));
        }
        segments.extend(cutter.finish());
        segments
    }

    fn documents() -> impl Strategy<Value = BTreeSet<(u64, String)>> {
        btree_set((0_u64..200, "[a-c]{0,3}"), 0..300)
    }

    proptest! {
        #[test]
        fn segments_have_all_documents_in_their_order(documents in documents(), max_bytes in 1_usize..200) {
            let segments = cut(&documents, max_bytes);
            let mut all = Vec::new();
            for segment in segments {
                let (fingerprints, mut ids) = segment.into_columns();
                ids.resize(fingerprints.len(), String::new());
                let bytes: usize = ids.iter().map(|id| 14 + id.len()).sum();
                prop_assert!(bytes <= max_bytes || ids.len() == 1);
                all.extend(fingerprints.into_iter().zip(ids));
            }
            prop_assert_eq!(all, documents.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn a_change_changes_one_segment(mut documents in documents(), change in (0_u64..200, "[a-c]{0,3}")) {
            let before = cut(&documents, usize::MAX);
            if !documents.remove(&change) {
                documents.insert(change);
            }
            let after = cut(&documents, usize::MAX);
            let gone = before.iter().filter(|segment| !after.contains(segment)).count();
            let new = after.iter().filter(|segment| !before.contains(segment)).count();
            // The document may begin a segment, which then parts or joins its neighbours.
            prop_assert!(gone <= 2 && new <= 2, "{} gone, {} new", gone, new);
        }

        #[test]
        fn fingerprints_that_agree_in_their_low_bits_are_cut_as_well(high in vec(0_u64..1 << 40, 2000..2001)) {
            let documents = high.iter().map(|high| (high << 24, String::new())).collect();
            let count = cut(&documents, usize::MAX).len();
            prop_assert!((100..500).contains(&count), "{}", count);
        }
    }
}
