//! The states of documents in ascending order of fingerprint, then id, in chunks that are nearly full.
//!
//! Beside the states stand the leading bits of their fingerprints: a search for a place reads these, which are few
//! bytes in a row, and hardly any of the states.
//!
//! # Invariants
//! - SO1: keys ascend strictly, within chunks and from one to the next.
//! - SO2: no chunk is empty or has more than [`MOST`] states, and `leading` has the leading bits of each.

use std::cmp::Ordering;

use simshard_simhash::Fingerprint;

use crate::stored::Stored;

/// Most states of a chunk.
const MOST: usize = 256;

/// The states that a chunk has room for is a multiple of this: so it grows often, and has little room to spare.
const STEP: usize = 16;

/// States in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    chunks: Vec<Chunk>,
}

#[derive(Clone, Debug, Default)]
struct Chunk {
    leading: Vec<u16>,
    stored: Vec<Stored>,
}

/// Where a key is, or would be.
struct Place {
    chunk: usize,
    place: usize,
    is_there: bool,
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
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::default());
        }
        let full = self.chunks[chunk].insert(place, stored);
        if full {
            let rest = self.chunks[chunk].split();
            self.chunks.insert(chunk + 1, rest);
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
        let mut chunks = self.chunks.get(chunk..).unwrap_or_default().iter();
        let first = chunks
            .next()
            .map_or(&[][..], |chunk| &chunk.stored[place..]);
        first.iter().chain(chunks.flat_map(|chunk| &chunk.stored))
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
        let is_behind = |chunk: &Chunk| chunk.compare(0, fingerprint, id).is_gt();
        let after = self.chunks.partition_point(|chunk| !is_behind(chunk));
        let chunk = after.saturating_sub(1);
        let Some(found) = self.chunks.get(chunk) else {
            return Place {
                chunk,
                place: 0,
                is_there: false,
            };
        };
        let (place, is_there) = found.find(fingerprint, id);
        Place {
            chunk,
            place,
            is_there,
        }
    }
}

impl Chunk {
    /// How the key at a place compares with another one.
    fn compare(&self, place: usize, fingerprint: Fingerprint, id: &[u8]) -> Ordering {
        let by_leading = self.leading[place].cmp(&leading(fingerprint));
        by_leading.then_with(|| self.stored[place].key().cmp(&(fingerprint, id)))
    }

    fn find(&self, fingerprint: Fingerprint, id: &[u8]) -> (usize, bool) {
        let leading = leading(fingerprint);
        let start = self.leading.partition_point(|&other| other < leading);
        let same = self.leading[start..].partition_point(|&other| other == leading);
        let same = &self.stored[start..start + same];
        match same.binary_search_by(|stored| stored.key().cmp(&(fingerprint, id))) {
            Ok(place) => (start + place, true),
            Err(place) => (start + place, false),
        }
    }

    /// Inserts a state. Says whether the chunk is full now.
    fn insert(&mut self, place: usize, stored: Stored) -> bool {
        if self.stored.len() == self.stored.capacity() {
            self.leading.reserve_exact(STEP);
            self.stored.reserve_exact(STEP);
        }
        self.leading.insert(place, leading(stored.fingerprint()));
        self.stored.insert(place, stored);
        self.stored.len() == MOST
    }

    /// Takes the second half off.
    fn split(&mut self) -> Self {
        let half = MOST / 2;
        let rest = Self {
            leading: self.leading.split_off(half),
            stored: self.stored.split_off(half),
        };
        self.leading.shrink_to_fit();
        self.stored.shrink_to_fit();
        rest
    }
}

fn leading(fingerprint: Fingerprint) -> u16 {
    (fingerprint.0 >> 48) as u16
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
        for chunk in &sorted.chunks {
            let own = chunk.stored.iter().map(|one| leading(one.fingerprint()));
            assert!(own.eq(chunk.leading.iter().copied()), "SO2");
            assert!((1..MOST).contains(&chunk.stored.len()), "SO2");
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
