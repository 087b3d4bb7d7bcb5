//! Groups of fingerprints that are linked by pairs, directly or through others.
//!
//! A union-find forest over positions `0..n`. The smaller root always wins, so every parent is at
//! most its child. So the root of a tree is its smallest member, and one ascending pass resolves
//! all trees. Path halving keeps the trees flat: O(log n) a union, amortised. Tarjan and van
//! Leeuwen, "Worst-case analysis of set union algorithms", Journal of the ACM 31(2), 1984.
//!
//! # Invariants
//! - U1: `parents[x] <= x`, with equality exactly at the smallest of each group.

/// Disjoint groups of the numbers `0..n`, merged pair by pair.
#[derive(Clone, Debug)]
pub struct Clusters {
    parents: Vec<u32>,
}

/// As many numbers fit.
const MOST_NUMBERS: usize = u32::MAX as usize;

impl Clusters {
    /// The numbers `0..n`, each alone.
    ///
    /// # Panics
    /// If they are more than 2^32-1.
    #[must_use]
    pub fn new(n: usize) -> Self {
        assert!(n <= MOST_NUMBERS, "{n} numbers do not fit");
        Self {
            parents: (0..n as u32).collect(),
        }
    }

    /// Adds the next number, alone; returns it.
    ///
    /// # Panics
    /// If there are 2^32-1 already.
    pub fn add(&mut self) -> usize {
        let number = self.parents.len();
        assert!(number < MOST_NUMBERS, "one more number does not fit");
        self.parents.push(number as u32);
        number
    }

    /// Puts `a` and `b`, and all that is linked to either, into one group.
    ///
    /// # Panics
    /// If there is no number `a` or `b`.
    pub fn union(&mut self, a: usize, b: usize) {
        let root_a = self.root(a);
        let root_b = self.root(b);
        self.parents[root_a.max(root_b)] = root_a.min(root_b) as u32;
    }

    /// The groups of two or more, ordered by their smallest members; members ascend within each.
    /// The answer depends on what was linked, not on the order of the unions.
    #[must_use]
    pub fn groups(self) -> Vec<Vec<usize>> {
        let roots = self.roots();
        // Of each root how many members it has, and, once it was met, the number of its group.
        let mut of_root = vec![0_usize; roots.len()];
        for &root in &roots {
            of_root[root as usize] += 1;
        }

        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (member, root) in roots.into_iter().enumerate() {
            let root = root as usize;
            if member != root {
                groups[of_root[root]].push(member);
            } else if of_root[root] > 1 {
                let mut group = Vec::with_capacity(of_root[root]);
                group.push(member);
                of_root[root] = groups.len();
                groups.push(group);
            }
        }
        groups
    }

    /// For every number the smallest of its group: itself, if it is that or alone.
    #[must_use]
    pub fn roots(mut self) -> Vec<u32> {
        for member in 0..self.parents.len() {
            // By U1 this parent has become a root already.
            self.parents[member] = self.parents[self.parents[member] as usize];
        }
        self.parents
    }

    /// The root of one number; every second step of the way is made shorter for the next caller.
    fn root(&mut self, member: usize) -> usize {
        let mut at = member;
        loop {
            let parent = self.parents[at];
            if parent as usize == at {
                return at;
            }
            self.parents[at] = self.parents[parent as usize];
            at = self.parents[at] as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Relabels everything at every union.
    fn groups_slowly(n: usize, pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let mut labels: Vec<usize> = (0..n).collect();
        for &(a, b) in pairs {
            let (from, to) = (labels[a].max(labels[b]), labels[a].min(labels[b]));
            for label in &mut labels {
                if *label == from {
                    *label = to;
                }
            }
        }
        (0..n)
            .map(|first| {
                (0..n)
                    .filter(|&member| labels[member] == first)
                    .collect::<Vec<_>>()
            })
            .filter(|group| group.len() >= 2)
            .collect()
    }

    fn groups_of(n: usize, pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let mut clusters = Clusters::new(n);
        for &(a, b) in pairs {
            clusters.union(a, b);
        }
        clusters.groups()
    }

    proptest! {
        /// U1.
        #[test]
        fn a_parent_is_at_most_its_child_and_equal_at_the_smallest_of_a_group(
            pairs in prop::collection::vec((0..40_usize, 0..40_usize), 0..60),
        ) {
            let mut clusters = Clusters::new(40);
            for &(a, b) in &pairs {
                clusters.union(a, b);
                let mut parents = clusters.parents.iter().enumerate();
                prop_assert!(parents.all(|(child, &parent)| parent as usize <= child));
            }
            let groups = groups_slowly(40, &pairs);
            let is_smallest = |x| groups.iter().all(|group| group[0] == x || !group.contains(&x));
            for (child, &parent) in clusters.parents.iter().enumerate() {
                prop_assert_eq!(parent as usize == child, is_smallest(child));
            }
        }

        #[test]
        fn groups_equal_relabelling(pairs in prop::collection::vec((0..40_usize, 0..40_usize), 0..60)) {
            prop_assert_eq!(groups_of(40, &pairs), groups_slowly(40, &pairs));
        }

        #[test]
        fn the_order_of_unions_does_not_matter(
            mut pairs in prop::collection::vec((0..40_usize, 0..40_usize), 0..60),
        ) {
            let forwards = groups_of(40, &pairs);
            pairs.reverse();
            prop_assert_eq!(groups_of(40, &pairs), forwards);
        }
    }

    #[test]
    fn links_are_transitive_and_loners_are_left_out() {
        assert_eq!(
            groups_of(7, &[(5, 1), (6, 2), (3, 5), (4, 4)]),
            [vec![1, 3, 5], vec![2, 6]]
        );
    }

    #[test]
    fn the_root_of_a_number_is_the_smallest_of_its_group() {
        let mut clusters = Clusters::new(6);
        for (a, b) in [(5, 4), (1, 5), (3, 2)] {
            clusters.union(a, b);
        }
        assert_eq!(clusters.roots(), [0, 1, 2, 2, 1, 1]);
    }

    #[test]
    fn a_number_that_is_added_is_alone_until_it_is_linked() {
        let mut clusters = Clusters::new(2);
        clusters.union(0, 1);
        assert_eq!([clusters.add(), clusters.add()], [2, 3]);
        clusters.union(3, 1);
        assert_eq!(clusters.roots(), [0, 0, 2, 0]);
    }

    #[test]
    fn nothing_linked_gives_no_groups() {
        assert!(groups_of(0, &[]).is_empty());
        assert!(groups_of(3, &[]).is_empty());
    }
}
