//! One shard: what stands in memory and in segments, together.
//!
//! An element may stand in several places at once: in the memtable, in the one that is being written to
//! a segment, and in segments. Its newest state counts, wherever that is.
//!
//! # Invariants
//! - SH1: what a change makes of an element is decided against the element's newest state in the shard.
//! - SH2: a change that is not newer than an element leaves it, and says so, unless it is what wrote it.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::{CorpusUid, Version};

use crate::element::{Change, State};
use crate::error::ReadError;
use crate::memtable::Memtable;
use crate::segment::Segment;

/// What a change did to one shard.
#[derive(Debug, Default)]
pub struct Effects {
    /// Places of the documents that became live, or ceased to be.
    pub changed: Vec<u32>,
    /// The highest version that stood against the change, whose documents are as they were;
    /// `Version::NONE` if there was none.
    pub newer: Version,
    /// Why some documents could not be looked up. They are as they were, and the others changed all the same:
    /// whoever derives anything from the documents must not miss what happened to those.
    pub error: Option<ReadError>,
}

/// The elements of one shard, of all corpora.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// Takes changes.
    pub(crate) memtable: Memtable,
    /// Being written to a segment.
    pub(crate) frozen: Arc<Memtable>,
    /// Oldest first.
    pub(crate) segments: Arc<Vec<Arc<Segment>>>,
}

impl Shard {
    /// Applies a change to the documents at `places`. `is_stored` says whether live documents may have a
    /// fingerprint: for most that are inserted none has, and segments need not be read.
    pub(crate) fn apply(
        &mut self,
        change: &Change,
        places: &[u32],
        is_stored: impl Fn(Fingerprint) -> bool,
    ) -> Effects {
        let mut effects = Effects::default();
        let state = change.state();
        for &place in places {
            let fingerprint = change.documents.fingerprints[place as usize];
            let id = change.documents.id(place as usize);
            // Where no document is live, only an operation newer than this one matters.
            let since = match is_stored(fingerprint) {
                true => Version::NONE,
                false => change.version,
            };
            let key = (fingerprint, id.into());
            let before = match self.state_since(since, change.corpus, &key) {
                Ok(before) => before,
                Err(error) => {
                    effects.error.get_or_insert(error);
                    continue;
                }
            };
            if before < state {
                self.memtable.put(change.corpus, key, state);
                if before.live != state.live {
                    effects.changed.push(place);
                }
            } else if before != state {
                effects.newer = effects.newer.max(before.version);
            }
        }
        effects
    }

    /// Puts what a change says without a look at the rest, as merging finds the highest version anyway.
    pub(crate) fn replay(&mut self, change: &Change, places: &[u32]) {
        let state = change.state();
        for &place in places {
            let fingerprint = change.documents.fingerprints[place as usize];
            let key = (fingerprint, change.documents.id(place as usize).into());
            self.memtable.put(change.corpus, key, state);
        }
    }

    /// The state of an element, if its version is `since` or later. An older one that a segment holds may be
    /// superseded by what stands in a segment that was not read, so it says nothing.
    fn state_since(
        &self,
        since: Version,
        corpus: CorpusUid,
        key: &(Fingerprint, Box<str>),
    ) -> Result<State, ReadError> {
        let in_memory = [&self.memtable, &*self.frozen].map(|table| table.get(corpus, key));
        let mut newest = in_memory
            .into_iter()
            .flatten()
            .fold(State::NEVER, State::max);
        for segment in &*self.segments {
            if segment.highest_version() >= since.max(newest.version)
                && let Some(found) = segment.find(corpus, key.0, &key.1)?
            {
                newest = newest.max(found);
            }
        }
        match newest.version < since {
            true => Ok(State::NEVER),
            false => Ok(newest),
        }
    }
}

/// The ids of the live documents that have a fingerprint, ascending.
///
/// Takes what is in memory under the shard's lock, and reads segments later, without it.
#[derive(Debug)]
pub(crate) struct Lookup {
    corpus: CorpusUid,
    fingerprint: Fingerprint,
    states: BTreeMap<Box<str>, State>,
    segments: Arc<Vec<Arc<Segment>>>,
}

impl Lookup {
    /// What the shard has in memory, and the segments to read.
    pub(crate) fn new(shard: &Shard, corpus: CorpusUid, fingerprint: Fingerprint) -> Self {
        let mut states = BTreeMap::new();
        for table in [&shard.memtable, &*shard.frozen] {
            for (id, state) in table.with_fingerprint(corpus, fingerprint) {
                note(&mut states, id, state);
            }
        }
        Self {
            corpus,
            fingerprint,
            states,
            segments: Arc::clone(&shard.segments),
        }
    }

    /// Reads the segments.
    pub(crate) fn live_ids(mut self) -> Result<Vec<Box<str>>, ReadError> {
        for segment in &*self.segments {
            segment.lookup(self.corpus, self.fingerprint, |element| {
                note(&mut self.states, element.id, element.into());
            })?;
        }
        let live = self.states.into_iter().filter(|(_, state)| state.live);
        Ok(live.map(|(id, _)| id).collect())
    }
}

fn note(states: &mut BTreeMap<Box<str>, State>, id: &str, state: State) {
    match states.get_mut(id) {
        Some(there) => *there = state.max(*there),
        None => {
            states.insert(id.into(), state);
        }
    }
}
