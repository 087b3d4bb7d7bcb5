//! Statistics of a run for a summary or a report. Their memory does not grow with the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use simshard_simhash::Fingerprint;

use crate::clusters::Cluster;
use crate::documents::{DocumentSet, Group};
use crate::member::Member;
use crate::texts::Excerpt;

/// Clusters, and members of each, of which samples are kept.
const CLUSTER_SAMPLES: usize = 20;
const MEMBER_SAMPLES: usize = 8;

/// Pairs of near-duplicates of which samples are kept, and the members of a cluster that they are taken from.
const PAIR_SAMPLES: usize = 10;
const LOOKED_AT: usize = 64;

/// Documents of a crowded fingerprint of which the names are kept.
const DOCUMENT_SAMPLES: usize = 5;

/// Leading bits of a fingerprint that are counted as a prefix.
const PREFIX_BITS: u32 = 16;

/// The findings of a run, and its duration.
#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    /// The documents.
    pub(crate) documents: u64,
    /// The distinct fingerprints.
    pub(crate) fingerprints: u64,
    /// Pairs of documents by distance, from 0; empty where pairs are not counted.
    pub(crate) pairs_by_distance: Vec<u64>,
    /// The clusters; none where clusters are not sought.
    pub(crate) clusters: ClusterSizes,
    /// How long each phase took.
    pub(crate) timings: Timings,
}

impl Statistics {
    /// All pairs of documents that were found.
    pub(crate) fn pair_count(&self) -> u64 {
        self.pairs_by_distance.iter().sum()
    }
}

/// How long each phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timings {
    /// Reading and fingerprinting.
    pub(crate) read: Duration,
    /// Sorting the fingerprints and grouping the documents.
    pub(crate) sort: Duration,
    /// Searching, without writing.
    pub(crate) join: Duration,
    /// Writing.
    pub(crate) write: Duration,
    /// Reading the texts of a report again.
    pub(crate) read_again: Duration,
}

/// How large clusters are, and samples of the largest.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterSizes {
    /// Clusters by their number of documents, from 2.
    pub(crate) by_size: BTreeMap<u64, u64>,
    /// The smallest of the largest comes off first.
    largest: BinaryHeap<Reverse<ClusterSample>>,
    /// Pairs of clusters that were drawn, by how late they were. Those of equal fingerprints come last.
    pairs: BinaryHeap<Drawn>,
    /// The largest distance of a pair.
    distance: u32,
}

/// A pair, and its place in the order of drawing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    is_equal: bool,
    lot: u64,
    pair: PairSample,
}

/// Two near-duplicates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairSample {
    /// The bits by which they differ.
    pub distance: u32,
    /// The documents.
    pub documents: [DocumentSample; 2],
}

/// A document, and its text where it could be read again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentSample {
    /// Its id, or the number that stands for one.
    pub id: String,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Its text.
    pub text: Option<Excerpt>,
}

/// A large cluster, with its first documents. The larger is greater; of equal ones, that of the smaller fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterSample {
    /// Its documents.
    pub size: u64,
    /// Its id: the smallest fingerprint in it.
    pub id: Reverse<Fingerprint>,
    /// Its first documents.
    pub members: Vec<MemberSample>,
}

/// A document of a sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberSample {
    /// Its id, or the number that stands for one.
    pub id: String,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The bits by which it differs from the cluster's first document.
    pub distance: u32,
    /// Its text, for the first and the farthest of the sample.
    pub text: Option<Excerpt>,
}

impl ClusterSizes {
    /// No clusters yet, of pairs up to this distance.
    pub(crate) fn up_to(distance: u32) -> Self {
        Self {
            distance,
            ..Self::default()
        }
    }

    /// Counts a cluster of `size` documents, two or more.
    pub(crate) fn add(&mut self, cluster: Cluster<'_>, size: u64) {
        *self.by_size.entry(size).or_default() += 1;
        self.draw(cluster);
        let smallest = self.largest.peek().map(|Reverse(sample)| sample.size);
        let full = self.largest.len() == CLUSTER_SAMPLES;
        if full && smallest.is_some_and(|smallest| size <= smallest) {
            return;
        }
        let members = cluster.members().take(MEMBER_SAMPLES);
        let sample = ClusterSample {
            size,
            id: Reverse(cluster.id()),
            members: members
                .map(|member| MemberSample {
                    distance: member.fingerprint.distance(cluster.id()),
                    fingerprint: member.fingerprint,
                    id: name(member),
                    text: None,
                })
                .collect(),
        };
        self.largest.push(Reverse(sample));
        if full {
            self.largest.pop();
        }
    }

    /// Draws a pair of a cluster by lot: its first document, and the farthest that is near it. Every cluster has the
    /// same chance, and the same clusters give the same pairs.
    fn draw(&mut self, cluster: Cluster<'_>) {
        let lot = lot(cluster.id());
        let full = self.pairs.len() == PAIR_SAMPLES;
        let is_late = |last: &Drawn| !last.is_equal && last.lot <= lot;
        if full && self.pairs.peek().is_some_and(is_late) {
            return;
        }
        let mut members = cluster.members().take(LOOKED_AT);
        let Some(first) = members.next() else {
            return;
        };
        let distance = |member: &Member<'_>| member.fingerprint.distance(first.fingerprint);
        let near = members.filter(|member| distance(member) <= self.distance);
        let Some(other) = near.max_by_key(distance) else {
            return;
        };
        let distance = distance(&other);
        let document = |member: Member<'_>| DocumentSample {
            fingerprint: member.fingerprint,
            id: name(member),
            text: None,
        };
        self.pairs.push(Drawn {
            is_equal: distance == 0,
            lot,
            pair: PairSample {
                distance,
                documents: [first, other].map(document),
            },
        });
        if full {
            self.pairs.pop();
        }
    }

    /// The number of clusters of two documents or more.
    pub(crate) fn count(&self) -> u64 {
        self.by_size.values().sum()
    }

    /// The largest clusters, the largest first, and the pairs that were drawn, the farthest first.
    pub(crate) fn into_samples(self) -> (Vec<ClusterSample>, Vec<PairSample>) {
        let largest = self.largest.into_sorted_vec();
        let largest = largest.into_iter().map(|Reverse(sample)| sample);
        let mut pairs: Vec<_> = self.pairs.into_iter().map(|drawn| drawn.pair).collect();
        pairs.sort_by_key(|pair| (Reverse(pair.distance), pair.documents[0].fingerprint));
        (largest.collect(), pairs)
    }
}

/// A number that says nothing of the fingerprint, and is always the same for it.
fn lot(fingerprint: Fingerprint) -> u64 {
    fastrand::Rng::with_seed(fingerprint.0).u64(..)
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
pub(crate) fn heaviest_prefixes(documents: &DocumentSet, most: usize) -> Vec<HeavyPrefix> {
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

/// A fingerprint that deserves a look.
#[derive(Debug, Clone)]
pub struct SpecialFingerprint {
    /// The fingerprint.
    pub fingerprint: u64,
    /// Documents that have it.
    pub documents: u64,
    /// The names of the first of them.
    pub samples: Vec<String>,
    /// Why it deserves a look.
    pub why: Why,
}

/// Why a fingerprint deserves a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is what the recipe makes of the empty text.
    EmptyText,
    /// Every bit is 0.
    AllZero,
    /// Every bit is 1.
    AllOne,
    /// Many documents have it.
    Crowded,
}

impl Why {
    /// The reason that fits a fingerprint best, given what the recipe makes of the empty text.
    /// `None` if there is no recipe, because the input holds fingerprints.
    #[must_use]
    pub fn of(fingerprint: u64, empty_text: Option<u64>) -> Self {
        match fingerprint {
            _ if empty_text == Some(fingerprint) => Self::EmptyText,
            0 => Self::AllZero,
            u64::MAX => Self::AllOne,
            _ => Self::Crowded,
        }
    }
}

/// The `most` fingerprints of two documents or more that the most documents have, the most crowded first. Then 0 and
/// 2^64-1 if any document has them: these are what texts without content give.
///
/// `empty_text` is what the recipe makes of the empty text; `None` if there is no recipe.
pub(crate) fn crowded_fingerprints(
    documents: &DocumentSet,
    most: usize,
    empty_text: Option<u64>,
) -> Vec<SpecialFingerprint> {
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
    let mut found: Vec<_> = places
        .map(|place| crowded(&documents.at(place), empty_text))
        .collect();
    for fingerprint in [0, u64::MAX] {
        let listed = found.iter().any(|one| one.fingerprint == fingerprint);
        if let (false, Some(place)) = (listed, documents.place(Fingerprint(fingerprint))) {
            found.push(crowded(&documents.at(place), empty_text));
        }
    }
    found
}

fn crowded(group: &Group<'_>, empty_text: Option<u64>) -> SpecialFingerprint {
    let fingerprint = group.fingerprint.0;
    SpecialFingerprint {
        fingerprint,
        documents: group.len() as u64,
        samples: group.members().take(DOCUMENT_SAMPLES).map(name).collect(),
        why: Why::of(fingerprint, empty_text),
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
            let found = crowded_fingerprints(&set, most, None);
            let counts = found.iter().map(|one| (one.fingerprint, one.documents));
            counts.collect::<Vec<_>>()
        };
        assert_eq!(counts(3), [(6, 9), (5, 2), (7, 2), (0, 1), (u64::MAX, 1)]);
        assert_eq!(counts(0), [(0, 1), (u64::MAX, 1)]);
        assert_eq!(counts(9).len(), 6);
        let six = &crowded_fingerprints(&set, 1, None)[0];
        assert_eq!(six.samples, ["4", "5", "6", "7", "8"]);
    }

    #[test]
    fn extremes_are_listed_once_and_only_if_there() {
        let set = set(&[(0, 2), (5, 1)]);
        let found = crowded_fingerprints(&set, 5, None);
        assert_eq!(
            found.iter().map(|one| one.fingerprint).collect::<Vec<_>>(),
            [0]
        );
    }

    fn sizes(set: &DocumentSet, links: &[(usize, usize)]) -> ClusterSizes {
        let mut linked = Clusters::new(set.fingerprints().len());
        for &(a, b) in links {
            linked.union(a, b);
        }
        let mut sizes = ClusterSizes::up_to(1);
        for cluster in DocumentClusters::new(set, linked).iter() {
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
        let (largest, _) = sizes.into_samples();
        assert_eq!(largest.len(), CLUSTER_SAMPLES);
        let expected = (6..50)
            .step_by(7)
            .chain((5..50).step_by(7))
            .chain((4..50).step_by(7));
        let clusters = largest.iter().map(|sample| sample.id.0.0);
        assert!(clusters.eq(expected.take(CLUSTER_SAMPLES)), "{largest:?}");
        assert!(largest.is_sorted_by_key(|sample| Reverse(sample.size)));
    }

    #[test]
    fn a_sample_shows_distances_from_the_first_document() {
        let set = set(&[(4, 1), (5, 2), (7, 1)]);
        let sizes = sizes(&set, &[(0, 1), (1, 2)]);
        let (largest, _) = sizes.into_samples();
        let sample = &largest[0];
        assert_eq!((sample.size, sample.id.0.0), (4, 4));
        let members = sample
            .members
            .iter()
            .map(|one| (one.id.as_str(), one.distance));
        assert_eq!(
            members.collect::<Vec<_>>(),
            [("1", 0), ("2", 1), ("3", 1), ("4", 2)]
        );
    }

    #[test]
    fn pairs_are_drawn_by_lot_those_that_differ_first() {
        // A hundred clusters of two fingerprints, and as many of one.
        let far = |cluster: u64| cluster << 40 | cluster << 8;
        let two = (1..=100).flat_map(|cluster| [(far(cluster), 1), (far(cluster) + 1, 1)]);
        let one = (101..=200).map(|cluster| (far(cluster), 2));
        let set = set(&two.chain(one).collect::<Vec<_>>());
        let links: Vec<_> = (0..100)
            .map(|cluster| (2 * cluster, 2 * cluster + 1))
            .collect();
        let (_, pairs) = sizes(&set, &links).into_samples();
        assert_eq!(pairs.len(), PAIR_SAMPLES);
        assert!(pairs.iter().all(|pair| pair.distance == 1));
        let firsts = pairs.iter().map(|pair| pair.documents[0].fingerprint.0);
        let firsts: Vec<_> = firsts.collect();
        assert!(firsts.iter().any(|&first| first > far(50)), "{firsts:?}");
        let (_, again) = sizes(&set, &links).into_samples();
        assert_eq!(again, pairs);

        let (_, pairs) = sizes(&set, &links[..4]).into_samples();
        let equal = pairs.iter().filter(|pair| pair.distance == 0);
        assert_eq!(equal.count(), PAIR_SAMPLES - 4);
    }

    #[test]
    fn a_drawn_pair_is_near() {
        let set = set(&[(4, 1), (5, 1), (7, 1)]);
        let (_, pairs) = sizes(&set, &[(0, 1), (1, 2)]).into_samples();
        let values = pairs[0].documents.each_ref().map(|one| one.fingerprint.0);
        assert_eq!((values, pairs[0].distance), ([4, 5], 1));
    }
}
