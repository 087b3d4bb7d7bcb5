//! A request to change documents that is not done yet: which documents to send next, and how to stamp them. Pure.
//!
//! A document with a newer version is sent again. Usually the next reading of the clock is above that version. A
//! version far ahead of wall time is passed by that version + 1, and no other document may get that. So the documents
//! of a request are sent in parts, one for each such version, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_proto::Documents;
use simshard_topology::Version;

use crate::clock::Stamp;
use crate::error::RouterError;
use crate::too_far_ahead::TooFarAhead;

/// A request that met newer versions this many times fails with [`RouterError::WriteConflict`].
const MOST_CONFLICTS: usize = 8;

/// A request that is not done yet.
#[derive(Debug)]
pub(super) struct Pending {
    documents: Arc<Documents>,
    /// Places of the documents to send, ascending, by how they are stamped. Never empty while the request is not done.
    parts: BTreeMap<Stamp, BTreeSet<u32>>,
    /// Documents that changed so far.
    changed: u64,
    /// Number of parts that met newer versions.
    conflicts: usize,
    /// Documents whose versions are too far ahead, if there are any.
    ahead: Option<TooFarAhead>,
}

/// What to do with a request after one of its parts was sent.
#[derive(Debug)]
pub(super) enum Next {
    /// Send its next part.
    Send(Pending),
    /// Answer it: the number of documents that changed.
    Answer(Result<u64, RouterError>),
}

impl Pending {
    pub(super) fn new(documents: Arc<Documents>) -> Self {
        let places = (0..).zip(&documents.fingerprints).map(|(place, _)| place);
        Self {
            parts: BTreeMap::from([(Stamp::Reading, places.collect())]),
            documents,
            changed: 0,
            conflicts: 0,
            ahead: None,
        }
    }

    /// How its next part is stamped.
    pub(super) fn stamp(&self) -> Stamp {
        let first = self.parts.first_key_value();
        first.map_or(Stamp::Reading, |(stamp, _)| *stamp)
    }

    /// The documents of that part.
    pub(super) fn documents(&self) -> Arc<Documents> {
        match self.parts.first_key_value() {
            Some((_, places)) if places.len() < self.documents.len() => {
                let places: Vec<u32> = places.iter().copied().collect();
                Arc::new(self.documents.select(&places))
            }
            Some(_) | None => Arc::clone(&self.documents),
        }
    }

    /// Takes note that its next part was sent: `changed` documents of it changed, and those at some places of the part
    /// have newer versions. `above` says how to stamp a change above a version, `None` if that is too far ahead.
    pub(super) fn sent(
        mut self,
        changed: u64,
        newer: impl IntoIterator<Item = (usize, Version)>,
        above: impl Fn(Version) -> Option<Stamp>,
    ) -> Next {
        let sent = self.parts.pop_first();
        let sent: Vec<u32> = sent.into_iter().flat_map(|(_, places)| places).collect();
        self.changed += changed;
        let mut is_refused = false;
        for (place, version) in newer {
            is_refused = true;
            match above(version) {
                Some(stamp) => drop(self.parts.entry(stamp).or_default().insert(sent[place])),
                None => self.note_ahead(sent[place], version),
            }
        }
        self.conflicts += usize::from(is_refused);
        if !self.parts.is_empty() && self.conflicts < MOST_CONFLICTS {
            return Next::Send(self);
        }
        Next::Answer(match self.ahead {
            _ if !self.parts.is_empty() => Err(RouterError::WriteConflict),
            Some(documents) => Err(RouterError::TooFarAhead(documents)),
            None => Ok(self.changed),
        })
    }

    fn note_ahead(&mut self, place: u32, version: Version) {
        let one = TooFarAhead {
            count: 1,
            fingerprint: self.documents.fingerprints[place as usize],
            version,
        };
        let before = self.ahead.unwrap_or(TooFarAhead { count: 0, ..one });
        let farthest = if version > before.version {
            one
        } else {
            before
        };
        self.ahead = Some(TooFarAhead {
            count: before.count + 1,
            ..farthest
        });
    }
}

#[cfg(test)]
mod tests;
