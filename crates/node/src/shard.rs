//! One shard of one corpus, in memory: the permuted tables, and what must be known of the documents
//! behind them without reading any. Pure.
//!
//! # Invariants
//! - S1: the index holds exactly the distinct fingerprints of the live documents.
//! - S2: the home counts are those of the documents whose fingerprint starts with this shard's byte, so
//!   over all shards each document counts once.
//! - S3: a fingerprint stands in `document_counts` exactly if it has more than one live document.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use simshard_simhash::{Fingerprint, Index, Tables};
use simshard_topology::ShardId;

/// The counts of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardCounts {
    /// Documents stored.
    pub(crate) documents: u64,
    /// Documents at home here.
    pub(crate) home_documents: u64,
    /// Distinct fingerprints at home here.
    pub(crate) home_fingerprints: u64,
}

/// The live documents of one corpus in one shard, as far as searches need to know them.
#[derive(Debug)]
pub(crate) struct Shard {
    id: ShardId,
    index: Index,
    /// How many documents have a fingerprint, where it is not one.
    document_counts: HashMap<Fingerprint, u64>,
    /// Whether no document has had an id other than the empty one.
    bare: bool,
    counts: ShardCounts,
}

impl Shard {
    /// An empty shard of a corpus with these tables.
    pub(crate) fn new(id: ShardId, tables: Arc<Tables>) -> Self {
        Self {
            id,
            index: Index::of_shard(tables, id.0),
            document_counts: HashMap::new(),
            bare: true,
            counts: ShardCounts::default(),
        }
    }

    /// Its counts.
    pub(crate) const fn counts(&self) -> ShardCounts {
        self.counts
    }

    /// Whether a live document has this fingerprint.
    pub(crate) fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.index.contains(fingerprint)
    }

    /// Those of some fingerprints that live documents have.
    pub(crate) fn known(
        &self,
        fingerprints: impl IntoIterator<Item = Fingerprint>,
    ) -> HashSet<Fingerprint> {
        self.index.contained(fingerprints)
    }

    /// How many live documents have this fingerprint.
    pub(crate) fn documents(&self, fingerprint: Fingerprint) -> u64 {
        match self.document_counts.get(&fingerprint) {
            Some(count) => *count,
            None => u64::from(self.contains(fingerprint)),
        }
    }

    /// Whether all documents are bare fingerprints: each fingerprint has one, with the empty id.
    pub(crate) const fn is_bare(&self) -> bool {
        self.bare
    }

    /// Takes note of documents that became live, each of which was not. `known` are those of their fingerprints that
    /// other live documents had.
    pub(crate) fn insert<'a>(
        &mut self,
        documents: impl IntoIterator<Item = (Fingerprint, &'a str)>,
        known: &HashSet<Fingerprint>,
    ) {
        let mut new: HashMap<Fingerprint, u64> = HashMap::new();
        for (fingerprint, id) in documents {
            self.bare &= id.is_empty();
            let home = self.is_home(fingerprint);
            self.counts.documents += 1;
            self.counts.home_documents += u64::from(home);
            match self.document_counts.entry(fingerprint) {
                Entry::Occupied(mut count) => *count.get_mut() += 1,
                Entry::Vacant(place) if known.contains(&fingerprint) => {
                    place.insert(2);
                }
                Entry::Vacant(_) => {
                    *new.entry(fingerprint).or_default() += 1;
                }
            }
        }
        for (&fingerprint, &documents) in &new {
            self.counts.home_fingerprints += u64::from(self.is_home(fingerprint));
            if documents > 1 {
                self.document_counts.insert(fingerprint, documents);
            }
        }
        self.index.insert_new(new.into_keys().collect());
    }

    /// Takes note of documents that were live, and are no longer.
    pub(crate) fn remove(&mut self, fingerprints: impl IntoIterator<Item = Fingerprint>) {
        let mut gone = Vec::new();
        for fingerprint in fingerprints {
            let home = self.is_home(fingerprint);
            self.counts.documents -= 1;
            self.counts.home_documents -= u64::from(home);
            match self.document_counts.entry(fingerprint) {
                Entry::Occupied(count) if *count.get() == 2 => {
                    count.remove();
                }
                Entry::Occupied(mut count) => *count.get_mut() -= 1,
                Entry::Vacant(_) => {
                    self.counts.home_fingerprints -= u64::from(home);
                    gone.push(fingerprint);
                }
            }
        }
        self.index.remove_present(&gone);
    }

    /// To search for the matches that this shard reports.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The fingerprints in the shard whose leading byte under a table is the shard.
    pub(crate) fn entries(&self, table: usize) -> Vec<Fingerprint> {
        self.index.entries(table).collect()
    }

    /// The fingerprints at home here that several documents have.
    pub(crate) fn repeated(&self) -> Vec<Fingerprint> {
        let repeated = self.document_counts.keys().copied();
        repeated
            .filter(|&fingerprint| self.is_home(fingerprint))
            .collect()
    }

    /// Whether documents of this fingerprint are at home here.
    pub(crate) const fn is_home(&self, fingerprint: Fingerprint) -> bool {
        home(fingerprint).0 == self.id.0
    }
}

/// The shard where the documents of a fingerprint are at home.
pub(crate) const fn home(fingerprint: Fingerprint) -> ShardId {
    ShardId(Tables::home_shard(fingerprint))
}

/// Takes the live documents of a shard in ascending order, and makes its tables at the end.
#[derive(Debug)]
pub(crate) struct Loader {
    shard: Shard,
    distinct: Vec<Fingerprint>,
    /// Documents of the last fingerprint.
    documents: u64,
}

impl Loader {
    /// For an empty shard of a corpus with these tables.
    pub(crate) fn new(id: ShardId, tables: Arc<Tables>) -> Self {
        Self {
            shard: Shard::new(id, tables),
            distinct: Vec::new(),
            documents: 0,
        }
    }

    /// Takes a document, in order of fingerprints.
    pub(crate) fn push(&mut self, fingerprint: Fingerprint, id: &str) {
        let home = self.shard.is_home(fingerprint);
        self.shard.bare &= id.is_empty();
        self.shard.counts.documents += 1;
        self.shard.counts.home_documents += u64::from(home);
        if self.distinct.last() == Some(&fingerprint) {
            self.documents += 1;
            self.shard
                .document_counts
                .insert(fingerprint, self.documents);
        } else {
            self.documents = 1;
            self.shard.counts.home_fingerprints += u64::from(home);
            self.distinct.push(fingerprint);
        }
    }

    pub(crate) fn finish(mut self) -> Shard {
        self.shard.index.insert_new(self.distinct);
        self.shard
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use simshard_simhash::{ActiveTables, Layout, Search};

    use super::*;

    fn shard(id: u8) -> Shard {
        let tables = Tables::new(Layout::new(5, 3).unwrap());
        Shard::new(ShardId(id), Arc::new(tables))
    }

    /// Inserts documents like the engine does when it applies a change.
    fn insert<'a>(shard: &mut Shard, documents: impl IntoIterator<Item = (Fingerprint, &'a str)>) {
        let documents: Vec<_> = documents.into_iter().collect();
        let known = shard.known(documents.iter().map(|(fingerprint, _)| *fingerprint));
        shard.insert(documents, &known);
    }

    fn found(shard: &Shard, query: u64) -> Vec<u64> {
        let search = Search {
            active: ActiveTables::All,
            max_distance: 3,
        };
        let mut found = Vec::new();
        let flow = shard.index().search(&search, &[Fingerprint(query)], |hit| {
            found.push(hit.fingerprint.0);
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        found
    }

    /// S1, S3.
    #[test]
    fn a_fingerprint_stays_until_its_last_document_goes() {
        let mut shard = shard(0);
        let five = Fingerprint(5);
        let documents = |shard: &Shard| shard.counts().home_documents;
        insert(&mut shard, [(five, "a"), (five, "b")]);
        assert_eq!(documents(&shard), 2);
        insert(&mut shard, [(five, "c")]);
        assert_eq!(shard.document_counts[&five], 3);
        assert_eq!(shard.documents(five), 3);
        assert_eq!(shard.counts().home_fingerprints, 1);
        shard.remove([five, five]);
        assert_eq!(documents(&shard), 1);
        assert!(shard.document_counts.is_empty());
        assert_eq!(
            (shard.documents(five), shard.documents(Fingerprint(4))),
            (1, 0)
        );
        assert_eq!(found(&shard, 4), [5]);
        insert(&mut shard, [(five, "d")]);
        shard.remove([five]);
        assert_eq!(documents(&shard), 1);
        shard.remove([five]);
        assert_eq!(found(&shard, 4), [0; 0]);
        assert!(!shard.contains(five));
        assert_eq!(shard.counts(), ShardCounts::default());
    }

    /// S2.
    #[test]
    fn documents_are_counted_at_home_only() {
        let mut shard = shard(0);
        // Its own leading byte is 0xff, but its second block starts with 0.
        let guest = Fingerprint(0xfff0_0000_0000_0000);
        insert(&mut shard, [(guest, "guest")]);
        let counts = ShardCounts {
            documents: 1,
            ..ShardCounts::default()
        };
        assert_eq!(shard.counts(), counts);
    }

    /// S1, S2, S3.
    #[test]
    fn a_loaded_shard_equals_one_that_took_the_documents_one_by_one() {
        let documents = [(1, ""), (5, "a"), (5, "b"), (5, "c"), (7, ""), (7, "x")];
        let documents = documents.map(|(fingerprint, id)| (Fingerprint(fingerprint), id));
        let mut taken = shard(0);
        let tables = Arc::clone(taken.index.tables());
        let mut loader = Loader::new(ShardId(0), tables);
        for (fingerprint, id) in documents {
            insert(&mut taken, [(fingerprint, id)]);
            loader.push(fingerprint, id);
        }
        let loaded = loader.finish();
        assert_eq!(loaded.counts(), taken.counts());
        assert_eq!(loaded.document_counts, taken.document_counts);
        assert!(!loaded.is_bare());
        assert_eq!(found(&loaded, 5), found(&taken, 5));
    }

    #[test]
    fn a_shard_is_bare_until_a_document_has_an_id() {
        let mut shard = shard(0);
        insert(&mut shard, [(Fingerprint(0), ""), (Fingerprint(1), "")]);
        assert!(shard.is_bare());
        insert(&mut shard, [(Fingerprint(0), "a")]);
        assert!(!shard.is_bare());
    }
}
