//! Statistics of a run for a summary or a report. Their memory does not grow with the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use simshard_simhash::{Fingerprint, Layout};

use crate::clusters::Cluster;
use crate::documents::{DocumentSet, Group};
use crate::member::Member;

/// Clusters, and members of each, of which samples are kept.
const CLUSTER_SAMPLES: usize = 20;
const MEMBER_SAMPLES: usize = 8;

/// Documents of a crowded fingerprint of which the names are kept.
const DOCUMENT_SAMPLES: usize = 5;

/// Leading bits of a fingerprint that are counted as a prefix.
const PREFIX_BITS: u32 = 16;

/// The findings of a run, and its duration.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// The documents.
    pub documents: u64,
    /// The distinct fingerprints.
    pub fingerprints: u64,
    /// How they were searched.
    pub layout: Layout,
    /// Pairs of documents by distance, from 0; empty where pairs are not counted.
    pub pairs_by_distance: Vec<u64>,
    /// The clusters; none where clusters are not sought.
    pub clusters: ClusterSizes,
    /// How long each phase took.
    pub timings: Timings,
}

impl Statistics {
    /// All pairs of documents that were found.
    #[must_use]
    pub fn pair_count(&self) -> u64 {
        self.pairs_by_distance.iter().sum()
    }
}

/// How long each phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Reading and fingerprinting.
    pub read: Duration,
    /// Sorting the fingerprints and grouping the documents.
    pub sort: Duration,
    /// Searching, without writing.
    pub join: Duration,
    /// Writing.
    pub write: Duration,
}

/// How large clusters are, and samples of the largest.
#[derive(Clone, Debug, Default)]
pub struct ClusterSizes {
    /// Clusters by their number of documents, from 2.
    pub by_size: BTreeMap<u64, u64>,
    /// The smallest of the largest comes off first.
    largest: BinaryHeap<Reverse<(u64, ClusterSample)>>,
}

/// Some of the documents of a large cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterSample {
    /// Its id.
    pub cluster: Reverse<Fingerprint>,
    /// Its first documents.
    pub members: Vec<MemberSample>,
}

/// A document of a sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberSample {
    /// Its id, or the number that stands for one.
    pub id: String,
    /// The bits by which it differs from the cluster's first document.
    pub distance: u32,
}

impl ClusterSizes {
    /// Counts a cluster of `size` documents, two or more.
    pub fn add(&mut self, cluster: Cluster<'_>, size: u64) {
        *self.by_size.entry(size).or_default() += 1;
        let smallest = self.largest.peek().map(|Reverse((size, _))| *size);
        let full = self.largest.len() == CLUSTER_SAMPLES;
        if full && smallest.is_some_and(|smallest| size <= smallest) {
            return;
        }
        let members = cluster.members().take(MEMBER_SAMPLES);
        let sample = ClusterSample {
            cluster: Reverse(cluster.id()),
            members: members
                .map(|member| MemberSample {
                    distance: member.fingerprint.distance(cluster.id()),
                    id: name(member),
                })
                .collect(),
        };
        self.largest.push(Reverse((size, sample)));
        if full {
            self.largest.pop();
        }
    }

    /// The number of clusters of two documents or more.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_size.values().sum()
    }

    /// The largest clusters with their sizes, the largest first; of equal ones, that of the smaller
    /// fingerprint.
    #[must_use]
    pub fn largest(&self) -> Vec<(u64, ClusterSample)> {
        let mut largest: Vec<_> = self.largest.iter().cloned().collect();
        largest.sort_unstable();
        largest.into_iter().map(|Reverse(sample)| sample).collect()
    }
}

fn name(member: Member<'_>) -> String {
    match member.id {
        Some(id) => id.into_owned(),
        None => member.fingerprint.to_string(),
    }
}

/// Documents that share the leading 16 bits of their fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyPrefix {
    /// The leading bits.
    pub prefix: u16,
    /// The documents.
    pub documents: u64,
}

/// The `most` prefixes that the most documents share, the heaviest first, equal ones by prefix.
#[must_use]
pub fn heaviest_prefixes(documents: &DocumentSet, most: usize) -> Vec<HeavyPrefix> {
    let mut counts = vec![0_u64; 1 << PREFIX_BITS];
    for group in documents.groups() {
        let prefix = group.fingerprint.0 >> (u64::BITS - PREFIX_BITS);
        counts[prefix as usize] += group.len() as u64;
    }
    let counted = (0..=u16::MAX).zip(counts);
    let mut prefixes: Vec<HeavyPrefix> = counted
        .filter(|&(_, documents)| documents > 0)
        .map(|(prefix, documents)| HeavyPrefix { prefix, documents })
        .collect();
    prefixes.sort_by_key(|heavy| Reverse(heavy.documents));
    prefixes.truncate(most);
    prefixes
}

/// A fingerprint that deserves a look, and some of its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrowdedFingerprint {
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    /// The documents that have it.
    pub documents: u64,
    /// The names of the first of them.
    pub samples: Vec<String>,
}

/// The `most` fingerprints of two documents or more that the most documents have, the most crowded
/// first, then 0 and 2^64-1 if any document has them: these are what texts without content give.
#[must_use]
pub fn crowded_fingerprints(documents: &DocumentSet, most: usize) -> Vec<CrowdedFingerprint> {
    // The heap's top is the least crowded of those kept.
    let mut heap = BinaryHeap::new();
    for (place, group) in documents.groups().enumerate() {
        let crowd = (group.len(), Reverse(place));
        if group.len() < 2 || (heap.len() == most && heap.peek() <= Some(&Reverse(crowd))) {
            continue;
        }
        heap.push(Reverse(crowd));
        if heap.len() > most {
            heap.pop();
        }
    }
    let crowds = heap.into_sorted_vec();
    let places = crowds.iter().map(|Reverse((_, Reverse(place)))| *place);
    let mut found: Vec<_> = places.map(|place| crowded(&documents.at(place))).collect();
    for fingerprint in [Fingerprint(0), Fingerprint(u64::MAX)] {
        let listed = found.iter().any(|one| one.fingerprint == fingerprint);
        if let (false, Some(place)) = (listed, documents.place(fingerprint)) {
            found.push(crowded(&documents.at(place)));
        }
    }
    found
}

fn crowded(group: &Group<'_>) -> CrowdedFingerprint {
    CrowdedFingerprint {
        fingerprint: group.fingerprint,
        documents: group.len() as u64,
        samples: group.members().take(DOCUMENT_SAMPLES).map(name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use simshard_simhash::Clusters;

    use super::*;
    use crate::clusters::DocumentClusters;
    use crate::made_up::bare;
    use crate::member::BareName;

    fn set(counts: &[(u64, usize)]) -> DocumentSet {
        let each = |&(value, count)| std::iter::repeat_n(value, count);
        let fingerprints: Vec<u64> = counts.iter().flat_map(each).collect();
        bare(&fingerprints, BareName::Line)
    }

    #[test]
    fn prefixes_are_counted_by_documents() {
        let top = |prefix: u64, rest: u64| prefix << 48 | rest;
        let set = set(&[(top(7, 1), 2), (top(7, 2), 1), (top(65535, 0), 3), (0, 1)]);
        let heaviest = heaviest_prefixes(&set, 2);
        let found = heaviest.iter().map(|heavy| (heavy.prefix, heavy.documents));
        assert_eq!(found.collect::<Vec<_>>(), [(7, 3), (65535, 3)]);
        assert_eq!(heaviest_prefixes(&set, 9).len(), 3);
    }

    #[test]
    fn the_crowded_and_the_extreme_fingerprints_are_found() {
        let set = set(&[
            (0, 1),
            (5, 2),
            (6, 9),
            (7, 2),
            (8, 2),
            (9, 1),
            (u64::MAX, 1),
        ]);
        let counts = |most| {
            let found = crowded_fingerprints(&set, most);
            let counts = found.iter().map(|one| (one.fingerprint.0, one.documents));
            counts.collect::<Vec<_>>()
        };
        assert_eq!(counts(3), [(6, 9), (5, 2), (7, 2), (0, 1), (u64::MAX, 1)]);
        assert_eq!(counts(0), [(0, 1), (u64::MAX, 1)]);
        assert_eq!(counts(9).len(), 6);
        let six = &crowded_fingerprints(&set, 1)[0];
        assert_eq!(six.samples, ["4", "5", "6", "7", "8"]);
    }

    #[test]
    fn extremes_are_listed_once_and_only_if_there() {
        let set = set(&[(0, 2), (5, 1)]);
        let found = crowded_fingerprints(&set, 5);
        assert_eq!(
            found
                .iter()
                .map(|one| one.fingerprint.0)
                .collect::<Vec<_>>(),
            [0]
        );
    }

    fn sizes(set: &DocumentSet, links: &[(usize, usize)]) -> ClusterSizes {
        let mut linked = Clusters::new(set.fingerprints().len());
        for &(a, b) in links {
            linked.union(a, b);
        }
        let mut sizes = ClusterSizes::default();
        for cluster in DocumentClusters::new(set, &linked).iter() {
            sizes.add(cluster, cluster.document_count());
        }
        sizes
    }

    #[test]
    fn the_largest_clusters_are_kept() {
        let counts: Vec<(u64, usize)> = (0..50)
            .map(|value| (value, 2 + value as usize % 7))
            .collect();
        let set = set(&counts);
        let sizes = sizes(&set, &[]);
        assert_eq!(sizes.count(), 50);
        assert_eq!(sizes.by_size[&8], 7);
        let largest = sizes.largest();
        assert_eq!(largest.len(), CLUSTER_SAMPLES);
        let expected = (6..50)
            .step_by(7)
            .chain((5..50).step_by(7))
            .chain((4..50).step_by(7));
        let clusters = largest.iter().map(|(_, sample)| sample.cluster.0.0);
        assert!(clusters.eq(expected.take(CLUSTER_SAMPLES)), "{largest:?}");
        assert!(largest.is_sorted_by_key(|(size, _)| Reverse(*size)));
    }

    #[test]
    fn a_sample_shows_distances_from_the_first_document() {
        let set = set(&[(4, 1), (5, 2), (7, 1)]);
        let sizes = sizes(&set, &[(0, 1), (1, 2)]);
        let (size, sample) = &sizes.largest()[0];
        assert_eq!((*size, sample.cluster.0.0), (4, 4));
        let members = sample
            .members
            .iter()
            .map(|one| (one.id.as_str(), one.distance));
        assert_eq!(
            members.collect::<Vec<_>>(),
            [("1", 0), ("2", 1), ("3", 1), ("4", 2)]
        );
    }
}
