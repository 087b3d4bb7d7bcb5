//! The clusters of documents, from those of the places of their fingerprints.
//!
//! Each cluster is a chain of places, ascending, that begins at its smallest: two small columns
//! hold all of them, however many or large they are.

use simshard_simhash::{Clusters, Fingerprint};

use crate::documents::{DocumentSet, Group};
use crate::member::Member;

/// Ends a chain. No place: a set holds at most 2^32-1.
const END: u32 = u32::MAX;

/// All clusters of a set of documents, those of one document included.
#[derive(Debug)]
pub(crate) struct DocumentClusters<'a> {
    documents: &'a DocumentSet,
    /// By place, whether a cluster begins there.
    begins: Vec<bool>,
    /// By place, the next one of its cluster.
    next: Vec<u32>,
}

impl<'a> DocumentClusters<'a> {
    /// Those that these clusters of places make.
    pub(crate) fn new(documents: &'a DocumentSet, linked: Clusters) -> Self {
        let roots = linked.roots();
        let mut begins = vec![false; roots.len()];
        let mut next = vec![END; roots.len()];
        // From the last: each is put right behind its root, before those that are there.
        for (place, &root) in roots.iter().enumerate().rev() {
            let root = root as usize;
            begins[place] = root == place;
            if root != place {
                next[place] = next[root];
                next[root] = place as u32;
            }
        }
        Self {
            documents,
            begins,
            next,
        }
    }

    /// The clusters, by their smallest fingerprint.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Cluster<'_>> {
        let first = |(place, &begins): (usize, &bool)| begins.then_some(place);
        let firsts = self.begins.iter().enumerate().filter_map(first);
        firsts.map(|first| Cluster { all: self, first })
    }
}

/// Documents that are linked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster<'a> {
    all: &'a DocumentClusters<'a>,
    first: usize,
}

impl<'a> Cluster<'a> {
    /// Its smallest fingerprint, which no other cluster has.
    pub(crate) fn id(self) -> Fingerprint {
        self.all.documents.at(self.first).fingerprint
    }

    /// The number of documents.
    pub(crate) fn document_count(self) -> u64 {
        self.groups().map(|group| group.len() as u64).sum()
    }

    /// The documents, by fingerprint, then in the order of the input.
    pub(crate) fn members(self) -> impl Iterator<Item = Member<'a>> {
        self.groups().flat_map(|group| group.members())
    }

    fn groups(self) -> impl Iterator<Item = Group<'a>> {
        let all = self.all;
        let next = move |&place: &usize| {
            let next = all.next[place];
            (next != END).then_some(next as usize)
        };
        let places = std::iter::successors(Some(self.first), next);
        places.map(|place| all.documents.at(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::bare;
    use crate::member::BareName;

    #[test]
    fn chains_ascend_and_clusters_come_by_their_smallest_fingerprint() {
        let documents = bare(&[9, 2, 7, 2, 4, 0, 5], BareName::Line);
        // The places of 0, 2, 4, 5, 7 and 9 are 0 to 5.
        let mut linked = Clusters::new(6);
        for (a, b) in [(5, 4), (4, 1), (2, 3)] {
            linked.union(a, b);
        }
        let clusters = DocumentClusters::new(&documents, linked);
        let lines = |cluster: Cluster<'_>| {
            let ids = cluster
                .members()
                .map(|member| member.id.unwrap().into_owned());
            ids.collect::<Vec<_>>().join(" ")
        };
        let found: Vec<_> = clusters
            .iter()
            .map(|cluster| (cluster.id().0, cluster.document_count(), lines(cluster)))
            .collect();
        let expected = [(0, 1, "6"), (2, 4, "2 4 3 1"), (4, 2, "5 7")];
        let expected = expected.map(|(id, count, lines)| (id, count, lines.to_owned()));
        assert_eq!(found, expected);
    }
}
