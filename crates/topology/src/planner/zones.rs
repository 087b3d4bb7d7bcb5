//! How many replicas of a shard each zone takes.
//!
//! The most even way gives each zone the same number of replicas, or as many as it has nodes, and
//! some zones one more. With as many zones as replicas, or more, that is at most one for each zone.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::planner::candidate::Candidate;

/// The zones of a plan.
pub(super) struct Zones {
    /// The zones, in order. Nodes without one are in the zone without a name.
    pub(super) names: Vec<Option<Arc<str>>>,
    /// The zone of each node.
    of_node: Vec<usize>,
    /// How many nodes each zone has.
    pub(super) sizes: Vec<usize>,
    /// The fewest replicas of a shard in each zone.
    pub(super) fewest: Vec<usize>,
    /// The most replicas of a shard in each zone.
    pub(super) most: Vec<usize>,
    replicas: usize,
}

impl Zones {
    /// The zones of at least as many nodes as there are `replicas`.
    pub(super) fn new(nodes: &[Candidate], replicas: usize) -> Self {
        let names: BTreeSet<_> = nodes.iter().map(|node| node.zone.clone()).collect();
        let names = Vec::from_iter(names);
        let place = |node: &Candidate| names.partition_point(|name| *name < node.zone);
        let of_node: Vec<usize> = nodes.iter().map(place).collect();
        let mut sizes = vec![0; names.len()];
        of_node.iter().for_each(|&zone| sizes[zone] += 1);

        let up_to = |most: usize| sizes.iter().map(move |&size| size.min(most));
        let is_enough = |most: &usize| up_to(*most).sum::<usize>() >= replicas;
        let most = (1..replicas).find(is_enough).unwrap_or(replicas);
        let is_exact = up_to(most).sum::<usize>() == replicas;
        let fewest = if is_exact { most } else { most - 1 };
        Self {
            fewest: up_to(fewest).collect(),
            most: up_to(most).collect(),
            names,
            of_node,
            sizes,
            replicas,
        }
    }

    /// How many zones there are.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// The zone of a node.
    pub(super) fn of(&self, node: usize) -> usize {
        self.of_node[node]
    }

    /// The nodes, one of each zone in turn.
    pub(super) fn in_turn(&self) -> Vec<usize> {
        let mut seen = vec![0; self.count()];
        let mut turns: Vec<(usize, usize)> = Vec::new();
        for &zone in &self.of_node {
            turns.push((seen[zone], zone));
            seen[zone] += 1;
        }
        let mut nodes: Vec<usize> = (0..turns.len()).collect();
        nodes.sort_by_key(|&node| turns[node]);
        nodes
    }

    /// Leaves out what a shard has too much of, the last of its nodes first, so that the rest can
    /// become a most even way.
    pub(super) fn thin(&self, nodes: &mut Vec<usize>) {
        while let Some(place) = self.surplus(nodes) {
            nodes.remove(place);
        }
    }

    fn surplus(&self, nodes: &[usize]) -> Option<usize> {
        let count = |zone| nodes.iter().filter(|&&node| self.of(node) == zone).count();
        let last_above = |limits: &[usize]| {
            let is_above = |&node: &usize| count(self.of(node)) > limits[self.of(node)];
            nodes.iter().rposition(is_above)
        };
        let short = (0..self.count()).map(|zone| self.fewest[zone].saturating_sub(count(zone)));
        let is_full = nodes.len() + short.sum::<usize>() <= self.replicas;
        last_above(&self.most).or_else(|| {
            if is_full {
                None
            } else {
                last_above(&self.fewest)
            }
        })
    }
}
