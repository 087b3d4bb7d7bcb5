//! From word hashes to the hashes of their runs, many at a time.

use xxhash_rust::xxh3::xxh3_64;

use super::Window;

/// Runs that are hashed together.
const BATCH: usize = 256;

/// Most words that belong to two batches: the last run of one overlaps the first of the next.
const OVERLAP: usize = u8::MAX as usize - 1;

/// Hashes the runs of a sequence of word hashes, and hands them on.
pub(super) struct Runs {
    /// Words in a run.
    window: usize,
    /// The hashes of the latest words in little-endian order, the newest last.
    words: [[u8; 8]; OVERLAP + BATCH],
    /// How many there are.
    length: usize,
    /// Whether no run was handed on yet.
    is_first: bool,
}

impl Runs {
    pub(super) fn new(window: Window) -> Self {
        Self {
            window: window.size(),
            words: [[0; 8]; OVERLAP + BATCH],
            length: 0,
            is_first: true,
        }
    }

    /// Adds words in their order, and hands runs to `take` once there are many.
    pub(super) fn add_all(&mut self, mut words: &[u64], mut take: impl FnMut(&[u64])) {
        while !words.is_empty() {
            let room = &mut self.words[self.length..self.window - 1 + BATCH];
            let (now, later) = words.split_at(room.len().min(words.len()));
            for (place, word) in room.iter_mut().zip(now) {
                *place = word.to_le_bytes();
            }
            self.length += now.len();
            words = later;
            if self.length == self.window - 1 + BATCH {
                self.hand_on(&mut take);
            }
        }
    }

    /// Hands on what is left, when there are no more words.
    pub(super) fn finish(mut self, mut take: impl FnMut(&[u64])) {
        if self.length >= self.window {
            self.hand_on(&mut take);
        }
        if self.is_first && self.length > 0 {
            let all = xxh3_64(self.words[..self.length].as_flattened());
            take(&[all]);
        }
    }

    /// Hands on the runs of the words at hand, and keeps the words that begin further ones.
    fn hand_on(&mut self, take: &mut impl FnMut(&[u64])) {
        let mut hashes = [0; BATCH];
        let words = &self.words[..self.length];
        let count = words.len() - (self.window - 1);
        let hashes = &mut hashes[..count];
        match self.window {
            1 => hash_runs::<1>(words, hashes),
            2 => hash_runs::<2>(words, hashes),
            3 => hash_runs::<3>(words, hashes),
            4 => hash_runs::<4>(words, hashes),
            window => {
                for (hash, run) in hashes.iter_mut().zip(words.windows(window)) {
                    *hash = xxh3_64(run.as_flattened());
                }
            }
        }
        take(hashes);
        self.words.copy_within(count..self.length, 0);
        self.length -= count;
        self.is_first = false;
    }
}

/// Hashes the runs of `N` words. The compiler knows their length here, and so which way of the hash
/// function they take.
fn hash_runs<const N: usize>(words: &[[u8; 8]], hashes: &mut [u64]) {
    for (hash, run) in hashes.iter_mut().zip(words.array_windows::<N>()) {
        *hash = xxh3_64(run.as_flattened());
    }
}
