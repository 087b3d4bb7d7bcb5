//! One shard: what stands in memory and in segments, together.
//!
//! An element may stand in several places at once: in the memtable, in the one that is being written to
//! a segment, and in segments. Its newest state counts, wherever that is.
//!
//! # Invariants
//! - SH1: what a change makes of an element is decided against the element's newest state in the shard.
//! - SH2: a change that is older than the state of an element leaves it and says so. If both mean the same, it says so
//!   only where other replicas may lack the newer state. A change that is that very state was applied before.

use std::collections::BTreeMap;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::replication::{Outcome, decide};
use simshard_topology::{CorpusUid, Version};

use crate::element::State;
use crate::error::ReadError;
use crate::memtable::Memtable;
use crate::segment::Segment;
use crate::stored::SharedChange;

/// The effect of a change on one shard.
#[derive(Debug, Default)]
pub struct Effects {
    /// Places of the documents that became live, or ceased to be.
    pub changed: Vec<u32>,
    /// Places of the documents that did not change because they have a newer state, and its version.
    pub newer: Vec<(u32, Version)>,
    /// Why some documents could not be looked up. They did not change, but the others did, so data that is
    /// derived from the documents must follow `changed` all the same.
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
    /// What the shard had before it began anew, until it has a copy.
    pub(crate) aside: Aside,
}

/// Elements that are no part of the shard. A copy may take them up again (DC3).
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Not written yet.
    pub(crate) memtable: Arc<Memtable>,
    /// Oldest first.
    pub(crate) segments: Vec<Arc<Segment>>,
}

impl Aside {
    pub(crate) fn is_empty(&self) -> bool {
        self.memtable.is_empty() && self.segments.is_empty()
    }
}

impl Shard {
    pub(crate) fn is_empty(&self) -> bool {
        let is_written = self.memtable.is_empty() && self.frozen.is_empty();
        is_written && self.segments.is_empty() && self.aside.is_empty()
    }

    /// Bytes in memory of what is to be set aside for a flush, or by a shard that began anew.
    pub(crate) fn changing_bytes(&self) -> usize {
        self.memtable.bytes() + self.aside.memtable.bytes()
    }

    /// Begins anew. Of what the shard had, what was set aside before stays so. If that was nothing, the rest is.
    pub(crate) fn begin_anew(&mut self) {
        let before = mem::take(self);
        if !before.aside.is_empty() {
            self.aside = before.aside;
            return;
        }
        let mut memtable = before.memtable;
        memtable.put_all(&before.frozen);
        self.aside = Aside {
            memtable: Arc::new(memtable),
            segments: Arc::unwrap_or_clone(before.segments),
        };
    }

    /// Applies a change to the documents at `places`. `is_stored` says whether live documents may have a
    /// fingerprint: for most that are inserted none has, and segments need not be read.
    pub(crate) fn apply(
        &mut self,
        shared: &SharedChange<'_>,
        places: &[u32],
        is_replicated: bool,
        is_stored: impl Fn(Fingerprint) -> bool,
    ) -> Effects {
        let mut effects = Effects::default();
        let change = shared.change();
        let state = change.state();
        for &place in places {
            let fingerprint = change.documents.fingerprints[place as usize];
            let id = change.documents.id(place as usize);
            // Where no document is live, only an operation newer than this one matters.
            let since = if is_stored(fingerprint) {
                Version::NONE
            } else {
                change.version
            };
            let before = match self.state_since(since, change.corpus, fingerprint, id) {
                Ok(before) => before,
                Err(error) => {
                    effects.error.get_or_insert(error);
                    continue;
                }
            };
            let mut after = before;
            match decide(&mut after, state) {
                // It was applied before.
                Outcome::Done if after == before => {}
                Outcome::Done => {
                    self.memtable.put(change.corpus, shared.stored(place));
                    if before.live != after.live {
                        effects.changed.push(place);
                    }
                }
                Outcome::Newer(version) if is_replicated || before.live != state.live => {
                    effects.newer.push((place, version));
                }
                Outcome::Newer(_) => {}
            }
        }
        effects
    }

    /// Puts what a change says without a look at the rest, as merging finds the highest version anyway.
    pub(crate) fn replay(&mut self, shared: &SharedChange<'_>, place: u32) {
        let corpus = shared.change().corpus;
        self.memtable.put(corpus, shared.stored(place));
    }

    /// The state of an element, if its version is `since` or later. An older one that a segment holds may be
    /// superseded by what stands in a segment that was not read, so it says nothing.
    fn state_since(
        &self,
        since: Version,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
        id: &str,
    ) -> Result<State, ReadError> {
        let tables = [&self.memtable, &*self.frozen];
        let in_memory = tables.map(|table| table.get(corpus, fingerprint, id));
        let mut newest = in_memory
            .into_iter()
            .flatten()
            .fold(State::NEVER, State::max);
        for segment in &*self.segments {
            if segment.highest_version() >= since.max(newest.version)
                && let Some(found) = segment.find(corpus, fingerprint, id)?
            {
                newest = newest.max(found);
            }
        }
        if newest.version < since {
            Ok(State::NEVER)
        } else {
            Ok(newest)
        }
    }
}

/// The first ids of the live documents that have a fingerprint, ascending.
///
/// Takes the documents in memory under the shard's lock, and reads segments later, without it. From each of them it
/// takes a first part with up to `part` live documents. Up to the least end of these parts, all documents are known.
#[derive(Debug)]
pub(crate) struct Lookup {
    corpus: CorpusUid,
    fingerprint: Fingerprint,
    /// Live documents in each part.
    part: usize,
    states: BTreeMap<Box<str>, State>,
    /// Where the first part ends; none while all of them were taken whole.
    end: Option<Box<str>>,
    segments: Arc<Vec<Arc<Segment>>>,
}

impl Lookup {
    /// Takes the documents in the shard's memory, and the list of segments to read.
    pub(crate) fn new(
        shard: &Shard,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
        part: usize,
    ) -> Self {
        let mut lookup = Self {
            corpus,
            fingerprint,
            part,
            states: BTreeMap::new(),
            end: None,
            segments: Arc::clone(&shard.segments),
        };
        for table in [&shard.memtable, &*shard.frozen] {
            let mut left = part;
            for (id, state) in table.with_fingerprint(corpus, fingerprint) {
                if lookup.take(&mut left, id, state).is_break() {
                    break;
                }
            }
        }
        lookup
    }

    /// Reads the segments. Answers all ids, or `limit` of them; nothing if the parts were too small for that.
    pub(crate) fn live_ids(mut self, limit: usize) -> Result<Option<Vec<Box<str>>>, ReadError> {
        let segments = Arc::clone(&self.segments);
        for segment in &*segments {
            let mut left = self.part;
            segment.lookup(self.corpus, self.fingerprint, |element| {
                self.take(&mut left, element.id, element.into())
            })?;
        }
        let Self { states, end, .. } = self;
        let is_known = |id: &str| end.as_deref().is_none_or(|end| id <= end);
        let known = states.into_iter().take_while(|(id, _)| is_known(id));
        let live = known.filter(|(_, state)| state.live).map(|(id, _)| id);
        let ids: Vec<Box<str>> = live.take(limit).collect();
        let is_enough = end.is_none() || ids.len() == limit;
        Ok(is_enough.then_some(ids))
    }

    /// Takes an element of a part that has room for `left` more live ones.
    fn take(&mut self, left: &mut usize, id: &str, state: State) -> ControlFlow<()> {
        match self.states.get_mut(id) {
            Some(there) => *there = state.max(*there),
            None => drop(self.states.insert(id.into(), state)),
        }
        *left -= usize::from(state.live);
        if *left > 0 {
            return ControlFlow::Continue(());
        }
        if self.end.as_deref().is_none_or(|end| id < end) {
            self.end = Some(id.into());
        }
        ControlFlow::Break(())
    }
}
