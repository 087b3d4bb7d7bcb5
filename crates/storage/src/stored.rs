//! A state of a document in memory, which all shards that hold the document share.
//!
//! A document is in up to `k + 1` shards, and a store usually owns several of them. So its id is kept once.

use std::fmt;
use std::sync::OnceLock;

use simshard_simhash::Fingerprint;
use simshard_topology::Version;
use triomphe::ThinArc;

use crate::element::{Change, Element, State};

/// Bytes that a state takes beside its id: a count of its owners, its fields, and the length of the id.
const HEAD_BYTES: usize = size_of::<usize>() + size_of::<Head>() + size_of::<usize>() + 1;

/// What all states have. Whether it is live stands before the bytes of the id, where it takes one byte.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    fingerprint: Fingerprint,
    version: Version,
}

/// An immutable state of a document.
#[derive(Clone)]
pub(crate) struct Stored(ThinArc<Head, u8>);

impl Stored {
    /// Makes it.
    pub(crate) fn new(fingerprint: Fingerprint, id: &str, state: State) -> Self {
        let head = Head {
            fingerprint,
            version: state.version,
        };
        let (live, id) = (u8::from(state.live), id.as_bytes());
        let tail = (0..id.len() + 1).map(|at| at.checked_sub(1).map_or(live, |at| id[at]));
        Self(ThinArc::from_header_and_iter(head, tail))
    }

    /// Its fingerprint.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.0.header.header.fingerprint
    }

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        // They are the bytes of a string.
        std::str::from_utf8(&self.0.slice[1..]).unwrap_or_default()
    }

    /// How the key of this compares with another one is how these compare.
    pub(crate) fn key(&self) -> (Fingerprint, &[u8]) {
        (self.fingerprint(), &self.0.slice[1..])
    }

    /// Its state.
    pub(crate) fn state(&self) -> State {
        State {
            version: self.0.header.header.version,
            live: self.0.slice[0] != 0,
        }
    }

    /// As elements of segments are seen.
    pub(crate) fn element(&self) -> Element<'_> {
        let State { version, live } = self.state();
        Element {
            fingerprint: self.fingerprint(),
            id: self.id(),
            version,
            live,
        }
    }

    /// Bytes of memory that it takes, as if nothing else shared it.
    pub(crate) fn bytes(&self) -> usize {
        HEAD_BYTES + self.0.slice.len() - 1
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.element().fmt(f)
    }
}

/// A change, and the states that it makes: each once, for all shards.
pub struct SharedChange<'a> {
    change: &'a Change,
    stored: Vec<OnceLock<Stored>>,
}

impl<'a> SharedChange<'a> {
    /// No shard has taken anything of it yet.
    #[must_use]
    pub fn new(change: &'a Change) -> Self {
        let mut stored = Vec::new();
        stored.resize_with(change.documents.len(), OnceLock::new);
        Self { change, stored }
    }

    /// The change.
    #[must_use]
    pub const fn change(&self) -> &'a Change {
        self.change
    }

    /// The state that it gives to the document at a place.
    pub(crate) fn stored(&self, place: u32) -> Stored {
        let place = place as usize;
        let documents = &self.change.documents;
        let make = || {
            let (fingerprint, id) = (documents.fingerprints[place], documents.id(place));
            Stored::new(fingerprint, id, self.change.state())
        };
        self.stored[place].get_or_init(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_what_it_was_made_of() {
        for (id, live) in [("", true), ("é", false), ("a/b", true)] {
            let version = Version(u64::MAX);
            let stored = Stored::new(Fingerprint(7), id, State { version, live });
            let element = Element {
                fingerprint: Fingerprint(7),
                id,
                version,
                live,
            };
            assert_eq!(stored.element(), element);
            assert_eq!(stored.state(), element.into());
            assert_eq!(stored.key(), (Fingerprint(7), id.as_bytes()));
        }
    }
}
