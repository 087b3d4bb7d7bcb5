//! One shard: its documents, and the permuted tables derived from them. Pure.
//!
//! # Invariants
//! - S1: the index holds exactly the distinct fingerprints of the documents.
//! - S2: the home counts are those of the documents whose fingerprint starts
//!   with this shard's byte, so over all shards each document counts once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;

use simshard_simhash::{Fingerprint, Hit, Index, Search, Tables};
use simshard_topology::ShardId;

use crate::ids::Ids;

/// A document as a shard keeps it.
pub(crate) type Document = (Fingerprint, Box<str>);

/// What a shard holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardCounts {
    /// Documents stored.
    pub(crate) documents: u64,
    /// Documents at home here.
    pub(crate) home_documents: u64,
    /// Distinct fingerprints at home here.
    pub(crate) home_fingerprints: u64,
}

/// The documents of one corpus in one shard.
#[derive(Debug)]
pub(crate) struct Shard {
    id: ShardId,
    documents: HashMap<Fingerprint, Ids>,
    index: Index,
    counts: ShardCounts,
}

impl Shard {
    /// An empty shard of a corpus with these tables.
    pub(crate) fn new(id: ShardId, tables: Arc<Tables>) -> Self {
        Self {
            id,
            documents: HashMap::new(),
            index: Index::of_shard(tables, id.0),
            counts: ShardCounts::default(),
        }
    }

    /// What it holds.
    pub(crate) const fn counts(&self) -> ShardCounts {
        self.counts
    }

    /// Adds documents; returns how many of those at home here were absent.
    pub(crate) fn insert(&mut self, documents: Vec<Document>) -> u64 {
        let before = self.counts.home_documents;
        let mut new = Vec::new();
        for (fingerprint, id) in documents {
            let first = match self.documents.entry(fingerprint) {
                Entry::Occupied(mut ids) => {
                    if !ids.get_mut().insert(id) {
                        continue;
                    }
                    false
                }
                Entry::Vacant(place) => {
                    place.insert(Ids::One(id));
                    new.push(fingerprint);
                    true
                }
            };
            let home = self.is_home(fingerprint);
            self.counts.documents += 1;
            self.counts.home_documents += u64::from(home);
            self.counts.home_fingerprints += u64::from(home && first);
        }
        self.index.insert_new(new);
        self.counts.home_documents - before
    }

    /// Takes documents out; returns how many of those at home here were present.
    pub(crate) fn remove(&mut self, documents: &[Document]) -> u64 {
        let before = self.counts.home_documents;
        let mut gone = Vec::new();
        for (fingerprint, id) in documents {
            let Entry::Occupied(mut ids) = self.documents.entry(*fingerprint) else {
                continue;
            };
            if !ids.get_mut().remove(id) {
                continue;
            }
            let last = ids.get().is_empty();
            if last {
                ids.remove();
                gone.push(*fingerprint);
            }
            let home = self.is_home(*fingerprint);
            self.counts.documents -= 1;
            self.counts.home_documents -= u64::from(home);
            self.counts.home_fingerprints -= u64::from(home && last);
        }
        self.index.remove_present(&gone);
        before - self.counts.home_documents
    }

    /// Calls `hit` for the matches that this shard reports, until it breaks.
    pub(crate) fn search(
        &self,
        search: &Search,
        queries: &[Fingerprint],
        hit: impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.index.search(search, queries, hit)
    }

    /// The ids behind a fingerprint: none if it is not stored.
    pub(crate) fn ids(&self, fingerprint: Fingerprint) -> &Ids {
        static NONE: Ids = Ids::NONE;
        self.documents.get(&fingerprint).unwrap_or(&NONE)
    }

    const fn is_home(&self, fingerprint: Fingerprint) -> bool {
        (fingerprint.0 >> 56) as u8 == self.id.0
    }
}

#[cfg(test)]
mod tests {
    use simshard_simhash::{ActiveTables, Layout};

    use super::*;

    fn shard(id: u8) -> Shard {
        let tables = Tables::new(Layout::new(5, 3).unwrap());
        Shard::new(ShardId(id), Arc::new(tables))
    }

    fn document(fingerprint: u64, id: &str) -> Document {
        (Fingerprint(fingerprint), id.into())
    }

    fn found(shard: &Shard, query: u64) -> Vec<u64> {
        let search = Search {
            active: ActiveTables::All,
            max_distance: 3,
        };
        let mut found = Vec::new();
        let flow = shard.search(&search, &[Fingerprint(query)], |hit| {
            found.push(hit.fingerprint.0);
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        found
    }

    /// S1.
    #[test]
    fn a_fingerprint_stays_until_its_last_document_goes() {
        let mut shard = shard(0);
        assert_eq!(
            shard.insert(vec![document(5, "a"), document(5, "b"), document(5, "a")]),
            2
        );
        assert_eq!(shard.counts().home_fingerprints, 1);
        assert_eq!(shard.remove(&[document(5, "a"), document(5, "x")]), 1);
        assert_eq!(found(&shard, 4), [5]);
        assert_eq!(shard.ids(Fingerprint(5)).iter().collect::<Vec<_>>(), ["b"]);
        assert_eq!(shard.remove(&[document(5, "b"), document(5, "b")]), 1);
        assert_eq!(found(&shard, 4), [0; 0]);
        assert_eq!(shard.counts(), ShardCounts::default());
    }

    /// S2.
    #[test]
    fn documents_are_counted_at_home_only() {
        let mut shard = shard(0);
        // Its own leading byte is 0xff, but its second block starts with 0.
        assert_eq!(
            shard.insert(vec![document(0xfff0_0000_0000_0000, "guest")]),
            0
        );
        assert_eq!(
            shard.counts(),
            ShardCounts {
                documents: 1,
                home_documents: 0,
                home_fingerprints: 0
            }
        );
    }

    #[test]
    fn an_empty_id_is_a_document_like_others() {
        let mut shard = shard(0);
        assert_eq!(shard.insert(vec![document(0, ""), document(0, "a")]), 2);
        assert_eq!(
            shard.ids(Fingerprint(0)).iter().collect::<Vec<_>>(),
            ["", "a"]
        );
        assert_eq!(shard.insert(vec![document(u64::MAX, "")]), 0);
    }
}
