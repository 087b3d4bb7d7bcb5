//! A plan in the making: who held what before, and who holds what now.

use crate::ids::{NodeId, ShardId};
use crate::shard_map::ShardMap;
use crate::shard_set::ShardSet;

/// An assignment being drawn. Nodes are positions in the sorted list of nodes.
pub(super) struct Draft {
    /// The most shards a node may hold (P2).
    pub(super) cap: usize,
    /// The shards of each node in the previous map.
    pub(super) before: Vec<ShardSet>,
    /// The shards of each node in the draft.
    pub(super) held: Vec<ShardSet>,
    /// How many replicas each shard is short of.
    missing: [usize; ShardId::COUNT],
}

impl Draft {
    /// The previous map without the nodes that left, and without surplus replicas.
    pub(super) fn new(previous: &ShardMap, nodes: &[NodeId], replicas: usize) -> Draft {
        let before: Vec<ShardSet> = nodes.iter().map(|node| previous.shards_of(node)).collect();
        let mut draft = Draft {
            cap: (ShardId::COUNT * replicas).div_ceil(nodes.len()),
            held: vec![ShardSet::EMPTY; nodes.len()],
            before,
            missing: [replicas; ShardId::COUNT],
        };
        for shard in ShardId::all() {
            for node in previous.replicas(shard) {
                if let Ok(node) = nodes.binary_search(node)
                    && draft.missing[shard.index()] > 0
                {
                    draft.give(node, shard);
                }
            }
        }
        draft
    }

    /// Every node.
    pub(super) fn nodes(&self) -> std::ops::Range<usize> {
        0..self.held.len()
    }

    /// How many shards a node holds.
    pub(super) fn load(&self, node: usize) -> usize {
        self.held[node].len()
    }

    /// How many replicas `shard` is short of.
    pub(super) fn missing(&self, shard: ShardId) -> usize {
        self.missing[shard.index()]
    }

    /// The shards short of exactly `count` replicas.
    pub(super) fn missing_exactly(&self, count: usize) -> ShardSet {
        ShardId::all()
            .filter(|&shard| self.missing(shard) == count)
            .collect()
    }

    /// The shards short of replicas.
    pub(super) fn holes(&self) -> ShardSet {
        ShardId::all()
            .filter(|&shard| self.missing(shard) > 0)
            .collect()
    }

    /// Makes `node` a replica of `shard`, which it is not yet and which lacks one.
    pub(super) fn give(&mut self, node: usize, shard: ShardId) {
        let is_new = self.held[node].insert(shard);
        debug_assert!(is_new, "P1: node {node} given shard {shard} twice");
        self.missing[shard.index()] -= 1;
    }

    /// Takes `shard` from `node`, which is a replica of it.
    pub(super) fn take(&mut self, node: usize, shard: ShardId) {
        let was_held = self.held[node].remove(shard);
        debug_assert!(was_held, "node {node} does not hold shard {shard}");
        self.missing[shard.index()] += 1;
    }

    /// Whether each node keeps as many of its shards as the cap allows, and no shard is new yet.
    ///
    /// No plan keeps more. From here any way to fill the holes costs one move each, the minimum.
    pub(super) fn keeps_all_it_could(&self) -> bool {
        self.nodes()
            .all(|node| self.load(node) == self.before[node].len().min(self.cap))
    }

    /// Whether every shard has the nodes it had before, and no other.
    pub(super) fn changes_nothing(&self, previous: &ShardMap) -> bool {
        let pairs_before: usize = ShardId::all()
            .map(|shard| previous.replicas(shard).len())
            .sum();
        let pairs_now: usize = self.nodes().map(|node| self.load(node)).sum();
        self.held == self.before && pairs_before == pairs_now
    }
}
