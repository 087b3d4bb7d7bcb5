//! Clusters from the pairs that link them. Pure.
//!
//! # Invariants
//! - LK1: a cluster is called by its smallest fingerprint, whatever the order of the links.

use std::collections::HashMap;

use simshard_simhash::{Clusters, Fingerprint, Pair};

/// Fingerprints that have been linked, each with what it is linked to. Takes some 40 bytes a fingerprint, and as
/// much again while the clusters are put in order.
#[derive(Debug)]
pub(crate) struct Links {
    /// The number of each fingerprint, in the order in which they came.
    numbers: HashMap<Fingerprint, usize>,
    clusters: Clusters,
}

/// A fingerprint of a cluster; ordered by cluster, then fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    /// The smallest fingerprint of the cluster.
    pub(crate) cluster: Fingerprint,
    pub(crate) fingerprint: Fingerprint,
}

impl Links {
    /// No links.
    pub(crate) fn new() -> Self {
        Self {
            numbers: HashMap::new(),
            clusters: Clusters::new(0),
        }
    }

    /// Number of fingerprints.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Links two fingerprints, or makes one known that is its own cluster.
    pub(crate) fn add(&mut self, pair: Pair) {
        let (a, b) = (self.number(pair.a), self.number(pair.b));
        self.clusters.union(a, b);
    }

    fn number(&mut self, fingerprint: Fingerprint) -> usize {
        let clusters = &mut self.clusters;
        *self
            .numbers
            .entry(fingerprint)
            .or_insert_with(|| clusters.add())
    }

    /// All that were linked, cluster by cluster.
    pub(crate) fn into_members(self) -> Vec<Member> {
        let roots = self.clusters.roots();
        let mut smallest = vec![Fingerprint(u64::MAX); roots.len()];
        for (&fingerprint, &number) in &self.numbers {
            let root = &mut smallest[roots[number] as usize];
            *root = fingerprint.min(*root);
        }
        let member = |(fingerprint, number): (Fingerprint, usize)| Member {
            cluster: smallest[roots[number] as usize],
            fingerprint,
        };
        let mut members: Vec<Member> = self.numbers.into_iter().map(member).collect();
        members.sort_unstable();
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: u64, b: u64) -> Pair {
        let (a, b) = (Fingerprint(a), Fingerprint(b));
        Pair { a, b }
    }

    /// LK1.
    #[test]
    fn clusters_are_called_by_their_smallest_fingerprints_in_any_order_of_links() {
        let mut pairs = [
            pair(8, 9),
            pair(7, 7),
            pair(u64::MAX, u64::MAX),
            pair(2, 9),
            pair(3, 5),
            pair(0, 2),
            pair(3, 5),
        ];
        let expected = [
            (0, 0),
            (0, 2),
            (0, 8),
            (0, 9),
            (3, 3),
            (3, 5),
            (7, 7),
            (u64::MAX, u64::MAX),
        ];
        for _ in 0..2 {
            let mut links = Links::new();
            pairs.into_iter().for_each(|pair| links.add(pair));
            let members = links.into_members();
            let members = members.iter().map(|one| (one.cluster.0, one.fingerprint.0));
            assert!(members.eq(expected));
            pairs.reverse();
        }
        assert_eq!(Links::new().into_members(), []);
    }
}
