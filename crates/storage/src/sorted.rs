//! The states of documents in ascending order of fingerprint, then id, in chunks that are nearly full.
//!
//! A search for a place hardly reads any state. It finds the chunk by `starts`, and the place in it by `leading`: bits
//! of the fingerprints that tell the states of one chunk apart. Both are few bytes in a row.
//!
//! # Invariants
//! - SO1: keys ascend strictly, within chunks and from one to the next.
//! - SO2: no chunk has more than [`MOST_STATES`] states, and none but the first is empty.
//! - SO3: the fingerprints of a chunk lie between its own start and the next one, both included. `leading` has 16 bits of
//!   each, behind those that both ends share.

use simshard_simhash::Fingerprint;

use crate::stored::Stored;

/// Most states of a chunk.
const MOST_STATES: usize = 256;

/// The states that a chunk has room for is a multiple of this. So it has little room to spare, and what it takes is a
/// size that the allocator has.
const STEP: usize = 32;

/// States in order.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    /// By chunk, its first fingerprint; 0 for the first chunk, whatever it has.
    starts: Vec<Fingerprint>,
    chunks: Vec<Chunk>,
}

#[derive(Clone, Debug, Default)]
struct Chunk {
    /// Leading bits that all its fingerprints share.
    shared: u32,
    leading: Vec<u16>,
    stored: Vec<Stored>,
}

/// Where a key is, or would be.
struct Place {
    chunk: usize,
    place: usize,
    is_there: bool,
}

impl Default for Sorted {
    fn default() -> Self {
        Self {
            starts: vec![Fingerprint(0)],
            chunks: vec![Chunk::default()],
        }
    }
}

impl Sorted {
    /// Puts a state, unless a newer one of the same document is there. Says whether the document is a new one.
    pub(crate) fn put(&mut self, stored: Stored) -> bool {
        let (fingerprint, id) = stored.key();
        let Place {
            chunk,
            place,
            is_there,
        } = self.find(fingerprint, id);
        if is_there {
            let there = &mut self.chunks[chunk].stored[place];
            if there.state() < stored.state() {
                *there = stored;
            }
            return false;
        }
        self.chunks[chunk].insert(place, stored);
        if self.chunks[chunk].stored.len() == MOST_STATES {
            self.split(chunk);
        }
        true
    }

    /// The state of a document.
    pub(crate) fn get(&self, fingerprint: Fingerprint, id: &str) -> Option<&Stored> {
        let found = self.find(fingerprint, id.as_bytes());
        let stored = || &self.chunks[found.chunk].stored[found.place];
        found.is_there.then(stored)
    }

    /// The states from a key on.
    pub(crate) fn from(&self, fingerprint: Fingerprint, id: &str) -> impl Iterator<Item = &Stored> {
        let Place { chunk, place, .. } = self.find(fingerprint, id.as_bytes());
        let first = &self.chunks[chunk].stored[place..];
        let others = &self.chunks[chunk + 1..];
        first
            .iter()
            .chain(others.iter().flat_map(|chunk| &chunk.stored))
    }

    /// Number of states.
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.stored.len()).sum()
    }

    /// All states.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stored> {
        self.chunks.iter().flat_map(|chunk| &chunk.stored)
    }

    fn find(&self, fingerprint: Fingerprint, id: &[u8]) -> Place {
        let below = self.starts.partition_point(|&start| start < fingerprint);
        // Documents of one fingerprint may fill several chunks.
        let equal = self.starts[below..].partition_point(|&start| start == fingerprint);
        let not_behind = |chunk: &Chunk| {
            let first = chunk.stored.first();
            first.is_none_or(|first| first.key() <= (fingerprint, id))
        };
        let above = self.chunks[below..below + equal].partition_point(not_behind);
        let chunk = (below + above).saturating_sub(1);
        let (place, is_there) = self.chunks[chunk].find(fingerprint, id);
        Place {
            chunk,
            place,
            is_there,
        }
    }

    /// Makes two of a chunk.
    fn split(&mut self, chunk: usize) {
        let behind = self.starts.get(chunk + 1).copied();
        let behind = behind.unwrap_or(Fingerprint(u64::MAX));
        let own = self.starts[chunk];
        let halves = &mut self.chunks[chunk];
        let rest = halves.stored.split_off(MOST_STATES / 2);
        let middle = rest[0].fingerprint();
        let first = std::mem::take(&mut halves.stored);
        *halves = Chunk::between(own, middle, first);
        let rest = Chunk::between(middle, behind, rest);
        self.chunks.insert(chunk + 1, rest);
        self.starts.insert(chunk + 1, middle);
    }
}

impl Chunk {
    /// A chunk of these states, whose fingerprints lie between the two.
    fn between(low: Fingerprint, high: Fingerprint, mut stored: Vec<Stored>) -> Self {
        stored.shrink_to_fit();
        let shared = (low.0 ^ high.0).leading_zeros();
        let leading = stored
            .iter()
            .map(|one| leading(one.fingerprint(), shared))
            .collect();
        Self {
            shared,
            leading,
            stored,
        }
    }

    fn find(&self, fingerprint: Fingerprint, id: &[u8]) -> (usize, bool) {
        let leading = leading(fingerprint, self.shared);
        let start = self.leading.partition_point(|&other| other < leading);
        let same = self.leading[start..].partition_point(|&other| other == leading);
        let same = &self.stored[start..start + same];
        match same.binary_search_by(|stored| stored.key().cmp(&(fingerprint, id))) {
            Ok(place) => (start + place, true),
            Err(place) => (start + place, false),
        }
    }

    fn insert(&mut self, place: usize, stored: Stored) {
        if self.stored.len() == self.stored.capacity() {
            self.leading.reserve_exact(STEP);
            self.stored.reserve_exact(STEP);
        }
        let leading = leading(stored.fingerprint(), self.shared);
        self.leading.insert(place, leading);
        self.stored.insert(place, stored);
    }
}

/// The 16 bits of a fingerprint behind its first ones.
fn leading(fingerprint: Fingerprint, first: u32) -> u16 {
    (fingerprint.0.unbounded_shl(first) >> 48) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use simshard_topology::Version;

    use super::*;
    use crate::element::State;

    type Model = BTreeMap<(Fingerprint, String), State>;

    fn check(sorted: &Sorted, model: &Model) {
        let all = sorted.iter().map(|one| {
            let key = (one.fingerprint(), one.id().to_owned());
            (key, one.state())
        });
        assert!(all.eq(model.clone()), "SO1");
        let ends = sorted.starts[1..].iter().copied();
        let ends = ends.chain([Fingerprint(u64::MAX)]);
        let bounds = sorted.starts.iter().copied().zip(ends);
        for (chunk, (low, high)) in sorted.chunks.iter().zip(bounds) {
            let own = chunk.stored.iter().map(Stored::fingerprint);
            assert!(own.clone().all(|one| low <= one && one <= high), "SO3");
            let own = own.map(|one| leading(one, chunk.shared));
            assert!(own.eq(chunk.leading.iter().copied()), "SO3");
            let least = usize::from(low.0 > 0);
            assert!((least..MOST_STATES).contains(&chunk.stored.len()), "SO2");
        }
    }

    /// SO1, SO2: against the map of the standard library.
    #[test]
    fn it_is_a_map_in_order() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        // Many equal fingerprints, many that share their leading bits, and many that share nothing.
        for mask in [0x3, 0xfff, u64::MAX] {
            let (mut sorted, mut model) = (Sorted::default(), Model::new());
            for step in 0..6000 {
                let fingerprint = Fingerprint(rng.u64(..) & mask);
                let id = rng.u32(..40).to_string();
                let state = State {
                    version: Version(rng.u64(..9)),
                    live: rng.bool(),
                };
                let is_new = sorted.put(Stored::new(fingerprint, &id, state));
                let there = model.entry((fingerprint, id.clone()));
                assert_eq!(
                    is_new,
                    matches!(there, std::collections::btree_map::Entry::Vacant(_))
                );
                let there = there.or_insert(state);
                *there = state.max(*there);
                let got = sorted.get(fingerprint, &id).map(Stored::state);
                assert_eq!(got, Some(*there));
                if step % 1000 == 0 {
                    check(&sorted, &model);
                }
                let from = (Fingerprint(rng.u64(..) & mask), String::new());
                let next = sorted.from(from.0, "").next();
                let next = next.map(|one| (one.fingerprint(), one.id().to_owned()));
                assert_eq!(
                    next.as_ref(),
                    model.range(from..).next().map(|(key, _)| key)
                );
            }
            check(&sorted, &model);
        }
    }

    #[test]
    fn nothing_is_in_none() {
        let sorted = Sorted::default();
        assert!(sorted.get(Fingerprint(0), "").is_none());
        assert_eq!(sorted.from(Fingerprint(0), "").count(), 0);
    }

    /// Chunks have room for few states that are not there.
    #[test]
    fn little_room_is_left() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut sorted = Sorted::default();
        let count = 20_000;
        for _ in 0..count {
            let state = State {
                version: Version(1),
                live: true,
            };
            sorted.put(Stored::new(Fingerprint(rng.u64(..)), "", state));
        }
        let room: usize = sorted
            .chunks
            .iter()
            .map(|chunk| chunk.stored.capacity())
            .sum();
        assert!(room < count + count / 8, "{room}");
    }
}
