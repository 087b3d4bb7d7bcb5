//! The corpora that a store holds, and those it held.

use std::collections::{BTreeMap, BTreeSet};

use simshard_simhash::Layout;
use simshard_topology::CorpusUid;

use crate::manifest::Manifest;

/// A corpus that a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// Its uid.
    pub uid: CorpusUid,
    /// Its blocks and distance.
    pub layout: Layout,
}

/// Most dropped corpora that are remembered although nothing on disk names them.
pub(super) const RECENT_DROPS: usize = 1024;

/// The corpora by uid. What was dropped does not come back, as long as the catalog remembers it (ST7).
#[derive(Clone, Debug, Default)]
pub(super) struct Catalog {
    pub(super) corpora: BTreeMap<CorpusUid, Layout>,
    /// With the sequence of the last record that created or dropped it in vain, or really.
    pub(super) dropped: BTreeMap<CorpusUid, u64>,
}

impl Catalog {
    pub(super) fn corpora(&self) -> Vec<Corpus> {
        let corpus = |(&uid, &layout)| Corpus { uid, layout };
        self.corpora.iter().map(corpus).collect()
    }

    /// The catalog of a manifest, as it was before the first record of the log that is needed.
    pub(super) fn of(manifest: &Manifest) -> Self {
        Self {
            corpora: manifest.corpora.clone(),
            dropped: manifest.dropped.iter().map(|uid| (*uid, 0)).collect(),
        }
    }

    /// Whether there is such a corpus.
    pub(super) fn holds(&self, uid: CorpusUid) -> bool {
        self.corpora.contains_key(&uid)
    }

    /// Adds a corpus, as a record of the log says, unless its uid is in use or was dropped.
    pub(super) fn create(&mut self, sequence: u64, uid: CorpusUid, layout: Layout) {
        match self.dropped.get_mut(&uid) {
            Some(last) => *last = sequence,
            None => drop(self.corpora.entry(uid).or_insert(layout)),
        }
    }

    /// Drops a corpus, as a record of the log says; also one that may be created later.
    pub(super) fn drop_corpus(&mut self, sequence: u64, uid: CorpusUid) {
        self.corpora.remove(&uid);
        self.dropped.insert(uid, sequence);
    }

    /// Forgets the corpora that are not dropped `still`, unless records from a sequence on speak of them.
    pub(super) fn prune(&mut self, still: &BTreeSet<CorpusUid>, first_sequence: u64) {
        let is_needed = |uid: &CorpusUid, last: u64| last >= first_sequence || still.contains(uid);
        self.dropped.retain(|uid, last| is_needed(uid, *last));
    }
}
