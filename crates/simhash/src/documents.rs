//! Documents as columns.

use crate::Fingerprint;

/// Documents as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documents {
    /// One fingerprint a document.
    pub fingerprints: Vec<Fingerprint>,
    /// One id a document, or no ids at all: then all are empty.
    pub ids: Vec<String>,
}

impl Documents {
    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// The id of the document at a place.
    ///
    /// # Panics
    /// If there are ids, but too few.
    #[must_use]
    pub fn id(&self, place: usize) -> &str {
        if self.ids.is_empty() {
            ""
        } else {
            &self.ids[place]
        }
    }

    /// The documents at these places, in that order.
    ///
    /// # Panics
    /// If a place is beyond the last document.
    #[must_use]
    pub fn select(&self, places: &[u32]) -> Self {
        let places = || places.iter().map(|&place| place as usize);
        let fingerprints = places().map(|place| self.fingerprints[place]).collect();
        let ids = if self.ids.is_empty() {
            Vec::new()
        } else {
            places().map(|place| self.ids[place].clone()).collect()
        };
        Self { fingerprints, ids }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selecting_keeps_ids_beside_their_fingerprints() {
        let documents = Documents {
            fingerprints: [1, 2, 3].map(Fingerprint).to_vec(),
            ids: ["a", "b", "c"].map(String::from).to_vec(),
        };
        let selected = documents.select(&[2, 0]);
        assert_eq!(selected.fingerprints, [3, 1].map(Fingerprint));
        assert_eq!((selected.id(0), selected.id(1)), ("c", "a"));
    }
}
