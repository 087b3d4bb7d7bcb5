//! Which documents are kept, and because of which the others are dropped.

use std::borrow::Cow;
use std::cmp::Reverse;

use simshard_simhash::{FingerprintSet, PairProgress, PairSearch};

use super::greedy::{Kept, greedy};
use super::known::Known;
use crate::documents::DocumentSet;

/// The cause of a document that is kept. No document: a set holds at most 2^32-1.
const KEPT: u32 = u32::MAX;

/// Marks a distance, which is 64 at most: the cause is the number of a known document.
const IS_KNOWN: u8 = 0x80;

/// Which documents are kept, and because of which the others are dropped.
#[derive(Debug)]
pub(super) struct Choice {
    /// By document, the one because of which it is dropped.
    causes: Vec<u32>,
    /// By document, the distance of the two.
    distances: Vec<u8>,
}

/// Because of what a document is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The number of a document that is kept.
    Kept(usize),
    /// The number of a known document.
    Known(usize),
}

/// What is chosen from: the documents whose fingerprints are not known.
pub(super) struct Candidates<'a> {
    documents: &'a DocumentSet,
    set: Cow<'a, FingerprintSet>,
    /// By place in the set, that among all documents; `None` where it is the same.
    places: Option<Vec<u32>>,
    /// By document, the higher the better; of equal ones the first document is better.
    ranks: Vec<u64>,
}

impl<'a> Candidates<'a> {
    /// All documents but those of known fingerprints. Without ranks, all are equal.
    pub(super) fn new(documents: &'a DocumentSet, known: &[Known], ranks: Vec<u64>) -> Self {
        let all = documents.fingerprints();
        let mut candidates = Self {
            documents,
            set: Cow::Borrowed(all),
            places: None,
            ranks,
        };
        if !known.is_empty() {
            let mut known = known.iter().map(|known| known.place).peekable();
            let is_new = |place: &u32| known.next_if_eq(&(*place as usize)).is_none();
            let places: Vec<u32> = (0..).take(all.len()).filter(is_new).collect();
            let new = places.iter().map(|&place| all.as_slice()[place as usize]);
            candidates.set = Cow::Owned(FingerprintSet::from_unsorted(new.collect()));
            candidates.places = Some(places);
        }
        candidates
    }

    /// The place among all documents.
    fn place(&self, place: usize) -> usize {
        match &self.places {
            None => place,
            Some(places) => places[place] as usize,
        }
    }

    /// A key that is the smaller the better the document is.
    fn key(&self, document: u32) -> (Reverse<u64>, u32) {
        let rank = self.ranks.get(document as usize).copied();
        (Reverse(rank.unwrap_or_default()), document)
    }

    /// The best document of each fingerprint, by place.
    fn best(&self) -> Vec<u32> {
        let best = |place| {
            let numbers = self.documents.numbers(self.place(place)).iter().copied();
            numbers.min_by_key(|&document| self.key(document))
        };
        let places = 0..self.set.len();
        places
            .map(|place| best(place).unwrap_or_default())
            .collect()
    }
}

impl Choice {
    /// Keeps all, but for the documents of known fingerprints.
    pub(super) fn all_new(documents: &DocumentSet, known: &[Known]) -> Self {
        let mut choice = Self {
            causes: vec![KEPT; documents.len()],
            distances: vec![0; documents.len()],
        };
        for (number, found) in (0..).zip(known) {
            for &document in documents.numbers(found.place) {
                choice.causes[document as usize] = number;
                choice.distances[document as usize] = found.distance as u8 | IS_KNOWN;
            }
        }
        choice
    }

    /// Keeps the best of each cluster.
    pub(super) fn by_cluster(
        &mut self,
        candidates: &Candidates<'_>,
        search: &PairSearch,
        progress: &PairProgress<'_>,
    ) {
        let best = candidates.best();
        let roots = search.clusters(&candidates.set, progress).roots();
        // By the place of each root: the place with the best document of its cluster.
        let mut kept: Vec<u32> = (0..).take(roots.len()).collect();
        for (place, &root) in roots.iter().enumerate() {
            let leader = &mut kept[root as usize];
            if candidates.key(best[place]) < candidates.key(best[*leader as usize]) {
                *leader = place as u32;
            }
        }
        for (place, &root) in roots.iter().enumerate() {
            let leader = kept[root as usize] as usize;
            self.drop_at(candidates, place, leader, best[leader]);
        }
    }

    /// Keeps the best, then each next one that is near none of those.
    pub(super) fn by_pairs(
        &mut self,
        candidates: &Candidates<'_>,
        search: &PairSearch,
        progress: &PairProgress<'_>,
    ) {
        let best = candidates.best();
        let mut order: Vec<u32> = (0..).take(best.len()).collect();
        order.sort_unstable_by_key(|&place| candidates.key(best[place as usize]));
        let Kept { causes } = greedy(&candidates.set, search, &order, progress);
        for (place, &cause) in causes.iter().enumerate() {
            let leader = cause as usize;
            self.drop_at(candidates, place, leader, best[leader]);
        }
    }

    /// Drops the documents at a place but for `cause`, the best at the place `leader`.
    fn drop_at(&mut self, candidates: &Candidates<'_>, place: usize, leader: usize, cause: u32) {
        let set = candidates.set.as_slice();
        let distance = set[place].distance(set[leader]) as u8;
        for &document in candidates.documents.numbers(candidates.place(place)) {
            if document != cause {
                self.causes[document as usize] = cause;
                self.distances[document as usize] = distance;
            }
        }
    }

    /// Whether a document is dropped.
    pub(super) fn is_dropped(&self, document: usize) -> bool {
        self.causes[document] != KEPT || self.distances[document] & IS_KNOWN != 0
    }

    /// The dropped documents in the order of the input, each with its cause and their distance.
    pub(super) fn dropped(&self) -> impl Iterator<Item = (usize, Cause, u8)> {
        let all = 0..self.causes.len();
        all.filter(|&document| self.is_dropped(document))
            .map(|document| {
                let cause = self.causes[document] as usize;
                let distance = self.distances[document];
                match distance & IS_KNOWN {
                    0 => (document, Cause::Kept(cause), distance),
                    _ => (document, Cause::Known(cause), distance & !IS_KNOWN),
                }
            })
    }
}
