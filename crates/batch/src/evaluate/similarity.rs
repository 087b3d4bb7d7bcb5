//! The exact Jaccard similarity of sets, and all pairs of sets with at least some similarity.
//!
//! Two similar sets share one of their rarest elements, so only sets that share one are compared. Order all elements,
//! the rarest first. Take two sets of `n` and `m ≤ n` elements whose similarity is at least `t`. Then they share an
//! element of two short beginnings. These are the first `n - ceil(t n) + 1` elements of the larger set, and the first
//! `m - ceil(2 t m / (1 + t)) + 1` of the smaller. Elements of one set alone count for the sizes, but are not searched
//! for.
//!
//! Source: Bayardo, Ma and Srikant, "Scaling up all pairs similarity search", WWW 2007, and Xiao and
//! others, "Efficient similarity joins for near-duplicate detection", WWW 2008.

use rayon::prelude::*;

/// Smaller than any difference between two similarities, and larger than rounding errors.
const TINY: f64 = 1e-9;

/// How alike two sets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Similarity {
    /// Elements that both have.
    pub(super) common: usize,
    /// Elements that at least one has.
    pub(super) union: usize,
}

impl Similarity {
    /// From 0 to 1; for two empty sets 0.
    pub(super) fn value(self) -> f64 {
        self.common as f64 / self.union.max(1) as f64
    }

    /// Twentieths, rounded down without an error of floating point.
    pub(super) fn twentieths(self) -> usize {
        20 * self.common / self.union.max(1)
    }
}

/// Sets by their size, the smallest first.
pub(super) struct Sets {
    sizes: Vec<usize>,
    /// For each set, the elements that another set has too, as ascending ranks; the rarest has the lowest.
    shared: Vec<Vec<u32>>,
    ranks: usize,
}

/// For each element, the sets that have it among their first elements.
pub(super) struct Prefixes {
    least: f64,
    starts: Vec<u32>,
    sets: Vec<u32>,
}

/// The memory of a search, reused by the next one.
pub(super) struct Scratch {
    seen: Vec<bool>,
    candidates: Vec<u32>,
    marks: Marks,
}

/// A bit for each rank: those of one set, which many are compared with.
struct Marks(Vec<u64>);

/// Elements that are counted before it is asked whether enough may follow.
const COUNTED_TOGETHER: usize = 64;

impl Marks {
    fn set(&mut self, ranks: &[u32]) {
        for &rank in ranks {
            self.0[rank as usize / 64] |= 1 << (rank % 64);
        }
    }

    fn clear(&mut self, ranks: &[u32]) {
        for &rank in ranks {
            self.0[rank as usize / 64] = 0;
        }
    }

    /// How many of these have a mark; `None` if fewer than `needed`.
    fn count(&self, ranks: &[u32], needed: usize) -> Option<usize> {
        let (mut count, mut left) = (0, ranks.len());
        for ranks in ranks.chunks(COUNTED_TOGETHER) {
            if count + left < needed {
                return None;
            }
            let marks = ranks
                .iter()
                .map(|&rank| self.0[rank as usize / 64] >> (rank % 64) & 1);
            count += marks.sum::<u64>() as usize;
            left -= ranks.len();
        }
        (count >= needed).then_some(count)
    }
}

impl Sets {
    /// Numbers the elements of sets. No set may repeat an element, and the sets must be sorted by size.
    pub(super) fn new(sets: &[&[u64]]) -> Self {
        let sizes: Vec<usize> = sets.iter().map(|set| set.len()).collect();
        debug_assert!(sizes.is_sorted(), "the smallest set comes first");
        let mut entries: Vec<(u64, u32)> = (0..)
            .zip(sets)
            .flat_map(|(set, elements)| elements.iter().map(move |&element| (element, set)))
            .collect();
        entries.par_sort_unstable();
        let groups = entries.chunk_by(|a, b| a.0 == b.0);
        let mut groups: Vec<&[(u64, u32)]> = groups.filter(|group| group.len() > 1).collect();
        groups.par_sort_unstable_by_key(|group| (group.len(), group[0].0));
        let mut shared = vec![Vec::new(); sets.len()];
        for (rank, group) in (0..).zip(&groups) {
            for &(_, set) in *group {
                shared[set as usize].push(rank);
            }
        }
        Self {
            sizes,
            shared,
            ranks: groups.len(),
        }
    }

    /// The similarity of two sets.
    pub(super) fn similarity(&self, a: usize, b: usize) -> Similarity {
        let common = common(&self.shared[a], &self.shared[b]);
        self.with_common(a, b, common)
    }

    fn with_common(&self, a: usize, b: usize, common: usize) -> Similarity {
        let union = self.sizes[a] + self.sizes[b] - common;
        Similarity { common, union }
    }

    /// Prepares searches for sets with at least this similarity, which is over 0.
    pub(super) fn prefixes(&self, least: f64) -> Prefixes {
        let prefix = |set| self.first(set, 2.0 * least / (1.0 + least));
        let mut starts = vec![0; self.ranks + 2];
        for set in 0..self.sizes.len() {
            for &rank in prefix(set) {
                starts[rank as usize + 2] += 1;
            }
        }
        for rank in 1..starts.len() {
            starts[rank] += starts[rank - 1];
        }
        let mut sets = vec![0; starts[self.ranks + 1] as usize];
        for set in 0..self.sizes.len() {
            for &rank in prefix(set) {
                let next = &mut starts[rank as usize + 1];
                sets[*next as usize] = set as u32;
                *next += 1;
            }
        }
        Prefixes {
            least,
            starts,
            sets,
        }
    }

    /// The first elements of a set. Every set that shares this part of its elements has one of them.
    fn first(&self, set: usize, part: f64) -> &[u32] {
        let (size, shared) = (self.sizes[set], &self.shared[set]);
        let needed = at_least(part * size as f64);
        let alone = size - shared.len();
        let length = (size + 1).saturating_sub(needed).saturating_sub(alone);
        &shared[..length.min(shared.len())]
    }

    /// Calls `take` with each earlier set whose similarity to this one is high enough.
    pub(super) fn similar(
        &self,
        prefixes: &Prefixes,
        set: usize,
        scratch: &mut Scratch,
        mut take: impl FnMut(usize, Similarity),
    ) {
        let (size, least) = (self.sizes[set], prefixes.least);
        let smallest = at_least(least * size as f64);
        let from = self.sizes.partition_point(|&size| size < smallest) as u32;
        for &rank in self.first(set, least) {
            let list = prefixes.of(rank);
            let list = &list[list.partition_point(|&other| other < from)..];
            for &other in list.iter().take_while(|&&other| (other as usize) < set) {
                if !scratch.seen[other as usize] {
                    scratch.seen[other as usize] = true;
                    scratch.candidates.push(other);
                }
            }
        }
        if scratch.candidates.is_empty() {
            return;
        }
        scratch.marks.set(&self.shared[set]);
        for other in scratch.candidates.drain(..) {
            let other = other as usize;
            scratch.seen[other] = false;
            let both = (size + self.sizes[other]) as f64;
            let needed = at_least(least / (1.0 + least) * both);
            if let Some(common) = scratch.marks.count(&self.shared[other], needed) {
                take(other, self.with_common(other, set, common));
            }
        }
        scratch.marks.clear(&self.shared[set]);
    }

    /// Room for searches.
    pub(super) fn scratch(&self) -> Scratch {
        Scratch {
            seen: vec![false; self.sizes.len()],
            candidates: Vec::new(),
            marks: Marks(vec![0; self.ranks.div_ceil(64)]),
        }
    }
}

impl Prefixes {
    fn of(&self, rank: u32) -> &[u32] {
        let [start, end] = [rank, rank + 1].map(|rank| self.starts[rank as usize] as usize);
        &self.sets[start..end]
    }
}

/// The smallest whole number that is not below `count`.
fn at_least(count: f64) -> usize {
    (count - TINY).ceil().max(0.0) as usize
}

/// The number of elements that two ascending lists have in common.
fn common(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (one, two) = (a[i], b[j]);
        common += usize::from(one == two);
        i += usize::from(one <= two);
        j += usize::from(two <= one);
    }
    common
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fastrand::Rng;

    use super::*;

    /// Random sets, sorted by size. Some are copies of others with a few elements replaced.
    fn made_up(seed: u64) -> Vec<Vec<u64>> {
        let mut rng = Rng::with_seed(seed);
        let mut sets: Vec<BTreeSet<u64>> = Vec::new();
        for _ in 0..300 {
            let mut set: BTreeSet<u64> = if rng.bool() && !sets.is_empty() {
                sets[rng.usize(..sets.len())].clone()
            } else {
                (0..rng.u64(..40)).map(|_| rng.u64(..2000)).collect()
            };
            for _ in 0..rng.usize(..8) {
                set.pop_first();
                // Small ones are in many sets.
                set.insert(rng.u64(..2000) >> rng.u32(..12));
            }
            sets.push(set);
        }
        let mut sets: Vec<Vec<u64>> = sets.into_iter().map(Vec::from_iter).collect();
        sets.sort_by_key(Vec::len);
        sets
    }

    fn slices(sets: &[Vec<u64>]) -> Vec<&[u64]> {
        sets.iter().map(Vec::as_slice).collect()
    }

    /// The similarity by the definition.
    fn by_definition(a: &[u64], b: &[u64]) -> Similarity {
        let [a, b] = [a, b].map(|set| set.iter().collect::<BTreeSet<_>>());
        Similarity {
            common: a.intersection(&b).count(),
            union: a.union(&b).count(),
        }
    }

    #[test]
    fn the_pairs_are_those_of_comparing_all() {
        for seed in 0..20 {
            let all = made_up(seed);
            let sets = Sets::new(&slices(&all));
            for least in [0.1, 0.5, 0.8, 1.0] {
                let prefixes = sets.prefixes(least);
                let mut scratch = sets.scratch();
                let mut found = BTreeSet::new();
                let mut expected = BTreeSet::new();
                for set in 0..all.len() {
                    sets.similar(&prefixes, set, &mut scratch, |other, one| {
                        assert!(found.insert((other, set, one.common, one.union)));
                    });
                    for other in 0..set {
                        let one = by_definition(&all[other], &all[set]);
                        assert_eq!(sets.similarity(other, set), one, "{seed}");
                        if one.value() >= least {
                            expected.insert((other, set, one.common, one.union));
                        }
                    }
                }
                assert!(expected.len() > 5);
                assert_eq!(found, expected, "{seed} {least}");
            }
        }
    }

    #[test]
    fn twentieths_are_exact() {
        for (common, union, twentieths) in [(7, 10, 14), (69, 100, 13), (1, 1, 20), (0, 0, 0)] {
            assert_eq!(Similarity { common, union }.twentieths(), twentieths);
        }
    }
}
