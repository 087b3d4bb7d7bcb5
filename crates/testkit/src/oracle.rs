//! The slow, obvious corpus: every answer by linear scan.

use std::collections::{BTreeMap, BTreeSet};

use simshard_client::{Fingerprint, Match, QueryMatches};

/// A set of documents.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    documents: BTreeMap<Fingerprint, BTreeSet<String>>,
}

impl Oracle {
    /// Adds a document; says whether it was absent.
    pub fn insert(&mut self, fingerprint: Fingerprint, id: &str) -> bool {
        let ids = self.documents.entry(fingerprint).or_default();
        ids.insert(id.to_owned())
    }

    /// Takes a document out; says whether it was present.
    pub fn remove(&mut self, fingerprint: Fingerprint, id: &str) -> bool {
        let Some(ids) = self.documents.get_mut(&fingerprint) else {
            return false;
        };
        let present = ids.remove(id);
        if ids.is_empty() {
            self.documents.remove(&fingerprint);
        }
        present
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.documents.values().map(|ids| ids.len() as u64).sum()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The documents, by fingerprint, then id.
    pub fn documents(&self) -> impl Iterator<Item = (Fingerprint, &str)> {
        let each = |(&fingerprint, ids)| {
            let ids: &BTreeSet<String> = ids;
            ids.iter().map(move |id| (fingerprint, id.as_str()))
        };
        self.documents.iter().flat_map(each)
    }

    /// Number of distinct fingerprints.
    #[must_use]
    pub fn fingerprint_count(&self) -> u64 {
        self.documents.len() as u64
    }

    /// Every match of a query up to a distance.
    #[must_use]
    pub fn find_all(&self, query: Fingerprint, max_distance: u32) -> QueryMatches {
        let near = self.documents.iter().map(|(&fingerprint, ids)| Match {
            fingerprint,
            distance: fingerprint.distance(query),
            document_count: ids.len() as u64,
            ids: ids.iter().cloned().collect(),
        });
        let mut matches: Vec<Match> = near.filter(|one| one.distance <= max_distance).collect();
        matches.sort_by_key(|one| (one.distance, one.fingerprint));
        QueryMatches {
            query,
            matches,
            truncated: false,
            missing: None,
        }
    }

    /// [`find_all`](Self::find_all) for each query.
    #[must_use]
    pub fn find_each(&self, queries: &[Fingerprint], max_distance: u32) -> Vec<QueryMatches> {
        let find = |&query| self.find_all(query, max_distance);
        queries.iter().map(find).collect()
    }
}
