//! The corpora that a store holds, and those it held.

use std::collections::{BTreeMap, BTreeSet};

use simshard_simhash::Layout;
use simshard_topology::CorpusUid;

/// A corpus that a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// Its uid.
    pub uid: CorpusUid,
    /// Its blocks and distance.
    pub layout: Layout,
}

/// The corpora by uid. A uid is used once: what was dropped never comes back.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalog {
    pub(super) corpora: BTreeMap<CorpusUid, Layout>,
    pub(super) dropped: BTreeSet<CorpusUid>,
}

impl Catalog {
    pub(super) fn corpora(&self) -> Vec<Corpus> {
        let corpus = |(&uid, &layout)| Corpus { uid, layout };
        self.corpora.iter().map(corpus).collect()
    }

    /// Adds a corpus, unless its uid is or was in use.
    pub(super) fn create(&mut self, uid: CorpusUid, layout: Layout) {
        if !self.dropped.contains(&uid) {
            self.corpora.entry(uid).or_insert(layout);
        }
    }

    /// Drops a corpus, if there is one.
    pub(super) fn drop_corpus(&mut self, uid: CorpusUid) {
        if self.corpora.remove(&uid).is_some() {
            self.dropped.insert(uid);
        }
    }
}
