//! From word hashes to the fingerprint, many shingles at a time.

use xxhash_rust::xxh3::xxh3_64;

use super::SHINGLE;
use crate::{BitCounter, Fingerprint};

/// Shingles that are hashed together.
const BATCH: usize = 256;

/// Words that belong to two batches: the last shingle of one overlaps the first of the next.
const OVERLAP: usize = SHINGLE - 1;

/// Counts the features of a sequence of word hashes.
pub(super) struct Shingles {
    counter: BitCounter,
    /// The hashes of the latest words, the newest last.
    words: [u64; OVERLAP + BATCH],
    /// How many there are.
    length: usize,
    /// Whether no shingle was counted yet.
    is_first: bool,
}

impl Shingles {
    pub(super) const fn new() -> Self {
        Self {
            counter: BitCounter::new(),
            words: [0; OVERLAP + BATCH],
            length: 0,
            is_first: true,
        }
    }

    /// Adds a word.
    pub(super) fn add(&mut self, word: u64) {
        self.add_all(&[word]);
    }

    /// Adds words in their order.
    pub(super) fn add_all(&mut self, mut words: &[u64]) {
        while !words.is_empty() {
            let room = &mut self.words[self.length..];
            let (now, later) = words.split_at(room.len().min(words.len()));
            room[..now.len()].copy_from_slice(now);
            self.length += now.len();
            words = later;
            if self.length == self.words.len() {
                self.count();
            }
        }
    }

    /// The fingerprint of all that was added.
    pub(super) fn fingerprint(mut self) -> Fingerprint {
        if self.length >= SHINGLE {
            self.count();
        }
        if self.is_first && self.length > 0 {
            let words = self.words[..self.length].iter();
            let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
            self.counter.add(xxh3_64(&bytes));
        }
        self.counter.fingerprint()
    }

    /// Counts the shingles of the words at hand, and keeps those that begin further ones.
    fn count(&mut self) {
        let mut features = [0; BATCH];
        let counted = self.length - OVERLAP;
        let features = &mut features[..counted];
        let shingles = self.words.array_windows::<SHINGLE>();
        for (feature, shingle) in features.iter_mut().zip(shingles) {
            *feature = xxh3_64(shingle.map(u64::to_le_bytes).as_flattened());
        }
        self.counter.add_all(features);
        self.words.copy_within(counted..self.length, 0);
        self.length = OVERLAP;
        self.is_first = false;
    }
}
