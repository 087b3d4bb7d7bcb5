//! Which documents are kept, and because of which the others are dropped.

use simshard_simhash::{Fingerprint, PairSearch};

use super::greedy::{Kept, greedy};
use crate::documents::DocumentSet;

/// The cause of a document that is kept. No document: a set holds at most 2^32-1.
const KEPT: u32 = u32::MAX;

/// Which documents are kept, and because of which the others are dropped.
#[derive(Debug)]
pub(super) struct Choice {
    /// By document, the kept one because of which it is dropped.
    causes: Vec<u32>,
    /// By document, the distance of the two.
    distances: Vec<u8>,
}

/// The ranks of documents, the higher the better; of equal ones the first document is better.
pub(super) struct Ranks(Vec<u64>);

impl Ranks {
    /// A key that is the smaller the better the document is.
    fn key(&self, document: u32) -> (std::cmp::Reverse<u64>, u32) {
        let rank = self.0.get(document as usize).copied();
        (std::cmp::Reverse(rank.unwrap_or_default()), document)
    }

    /// The best document of each fingerprint, by place.
    fn best(&self, documents: &DocumentSet) -> Vec<u32> {
        let places = 0..documents.fingerprints().len();
        let best = |place| {
            let numbers = documents.numbers(place).iter().copied();
            numbers.min_by_key(|&document| self.key(document))
        };
        places
            .map(|place| best(place).unwrap_or_default())
            .collect()
    }
}

impl Choice {
    /// Keeps the best of each cluster.
    pub(super) fn by_cluster(
        documents: &DocumentSet,
        search: &PairSearch,
        ranks: Vec<u64>,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Self {
        let ranks = Ranks(ranks);
        let best = ranks.best(documents);
        let set = documents.fingerprints();
        let roots = search.clusters(set, progress).roots();
        // By the place of each root: the place with the best document of its cluster.
        let mut kept: Vec<u32> = (0..).take(roots.len()).collect();
        for (place, &root) in roots.iter().enumerate() {
            let leader = &mut kept[root as usize];
            if ranks.key(best[place]) < ranks.key(best[*leader as usize]) {
                *leader = place as u32;
            }
        }
        let mut choice = Self::all(documents.len());
        for (place, &root) in roots.iter().enumerate() {
            let leader = kept[root as usize] as usize;
            choice.drop_at(documents, place, leader, best[leader]);
        }
        choice
    }

    /// Keeps the best, then each next one that is near none of those.
    pub(super) fn by_pairs(
        documents: &DocumentSet,
        search: &PairSearch,
        ranks: Vec<u64>,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Self {
        let ranks = Ranks(ranks);
        let best = ranks.best(documents);
        let mut order: Vec<u32> = (0..).take(best.len()).collect();
        order.sort_unstable_by_key(|&place| ranks.key(best[place as usize]));
        drop(ranks);
        let Kept { causes } = greedy(documents.fingerprints(), search, &order, progress);
        let mut choice = Self::all(documents.len());
        for (place, &cause) in causes.iter().enumerate() {
            let leader = cause as usize;
            choice.drop_at(documents, place, leader, best[leader]);
        }
        choice
    }

    fn all(documents: usize) -> Self {
        Self {
            causes: vec![KEPT; documents],
            distances: vec![0; documents],
        }
    }

    /// Drops the documents at a place but for `cause`, the best at the place `leader`.
    fn drop_at(&mut self, documents: &DocumentSet, place: usize, leader: usize, cause: u32) {
        let set: &[Fingerprint] = documents.fingerprints().as_slice();
        let distance = set[place].distance(set[leader]) as u8;
        for &document in documents.numbers(place) {
            if document != cause {
                self.causes[document as usize] = cause;
                self.distances[document as usize] = distance;
            }
        }
    }

    /// Whether a document is dropped.
    pub(super) fn is_dropped(&self, document: usize) -> bool {
        self.causes[document] != KEPT
    }

    /// The dropped documents in the order of the input, each with its cause and their distance.
    pub(super) fn dropped(&self) -> impl Iterator<Item = (usize, usize, u8)> {
        let all = self.causes.iter().zip(&self.distances).enumerate();
        all.filter(|(_, (cause, _))| **cause != KEPT)
            .map(|(document, (&cause, &distance))| (document, cause as usize, distance))
    }
}
