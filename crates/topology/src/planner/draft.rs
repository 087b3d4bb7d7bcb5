//! A plan in the making: which node holds what, and which changes keep P1 and P2.

use crate::ids::ShardId;
use crate::planner::Task;
use crate::shard_set::ShardSet;

/// An assignment being drawn.
pub(super) struct Draft<'a> {
    task: &'a Task<'a>,
    /// The shards of each node.
    pub(super) held: Vec<ShardSet>,
    /// The weight of each node's shards.
    pub(super) loads: Vec<u64>,
    /// How many replicas of each shard are in each zone.
    in_zone: Vec<[usize; ShardId::COUNT]>,
    /// How many replicas each shard is short of.
    missing: [usize; ShardId::COUNT],
    /// How many of those must come to zones that are below the fewest.
    short: [usize; ShardId::COUNT],
}

impl<'a> Draft<'a> {
    /// The replicas of `entries`, without those that are too many.
    pub(super) fn new(task: &'a Task<'a>, entries: &[Vec<usize>]) -> Self {
        let mut draft = Self {
            held: vec![ShardSet::EMPTY; task.nodes.len()],
            loads: vec![0; task.nodes.len()],
            in_zone: vec![[0; ShardId::COUNT]; task.zones.count()],
            missing: [task.replicas; ShardId::COUNT],
            short: [task.zones.fewest.iter().sum(); ShardId::COUNT],
            task,
        };
        for (shard, entry) in ShardId::all().zip(entries) {
            let mut nodes = entry.clone();
            task.zones.thin(&mut nodes);
            nodes.iter().for_each(|&node| draft.give(node, shard));
        }
        draft
    }

    /// The shards short of replicas.
    pub(super) fn holes(&self) -> ShardSet {
        let is_short = |shard: &ShardId| self.missing[shard.index()] > 0;
        ShardId::all().filter(is_short).collect()
    }

    /// The weight of the replicas that are missing.
    pub(super) fn missing_weight(&self) -> u64 {
        let weight = |shard: ShardId| self.task.weights.of(shard);
        let missing = |shard: ShardId| self.missing[shard.index()] as u64;
        ShardId::all()
            .map(|shard| weight(shard) * missing(shard))
            .sum()
    }

    /// Makes `node` a replica of `shard`, which it is not yet and which lacks one.
    pub(super) fn give(&mut self, node: usize, shard: ShardId) {
        let is_new = self.held[node].insert(shard);
        debug_assert!(is_new, "P1: node {node} given shard {shard} twice");
        let (zone, index) = (self.task.zones.of(node), shard.index());
        self.short[index] -= usize::from(self.in_zone[zone][index] < self.task.zones.fewest[zone]);
        self.in_zone[zone][index] += 1;
        self.missing[index] -= 1;
        self.loads[node] += self.task.weights.of(shard);
    }

    /// Takes `shard` from `node`, which is a replica of it.
    pub(super) fn take(&mut self, node: usize, shard: ShardId) {
        let was_held = self.held[node].remove(shard);
        debug_assert!(was_held, "node {node} does not hold shard {shard}");
        let (zone, index) = (self.task.zones.of(node), shard.index());
        self.in_zone[zone][index] -= 1;
        self.short[index] += usize::from(self.in_zone[zone][index] < self.task.zones.fewest[zone]);
        self.missing[index] += 1;
        self.loads[node] -= self.task.weights.of(shard);
    }

    /// Whether `shard` may go from one of its nodes, or from none where it lacks a replica, to
    /// another (P1, P2).
    pub(super) fn may_go(&self, shard: ShardId, from: Option<usize>, to: usize) -> bool {
        if self.held[to].contains(shard) {
            return false;
        }
        let zones = &self.task.zones;
        let count = |zone: usize| self.in_zone[zone][shard.index()];
        let joined = zones.of(to);
        let has_room = count(joined) < zones.most[joined];
        match from.map(|from| zones.of(from)) {
            Some(left) if left == joined => true,
            Some(left) => has_room && count(left) > zones.fewest[left],
            None if count(joined) < zones.fewest[joined] => true,
            None => has_room && self.short[shard.index()] < self.missing[shard.index()],
        }
    }

    /// How many more ranges a node has without one of its shards.
    pub(super) fn cuts_of_giver(&self, shard: ShardId, from: usize) -> i32 {
        self.neighbours(shard, from) - 1
    }

    /// How many more ranges a node has with one more shard.
    pub(super) fn cuts_of_receiver(&self, shard: ShardId, to: usize) -> i32 {
        1 - self.neighbours(shard, to)
    }

    /// How many of the shards before and after a shard a node has.
    fn neighbours(&self, shard: ShardId, node: usize) -> i32 {
        let holds = |shard: Option<ShardId>| shard.is_some_and(|s| self.held[node].contains(s));
        i32::from(holds(shard.before())) + i32::from(holds(shard.after()))
    }
}
