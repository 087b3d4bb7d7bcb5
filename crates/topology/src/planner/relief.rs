//! The way to a plan: replicas that are missing are placed, the highest nodes are relieved, and nodes
//! that hold too little are filled.
//!
//! A step takes one shard from the highest node that can give any. If no node has room for one, a step may also
//! exchange a shard for a lighter one. The best step moves least weight for what it relieves:
//!
//! - A node above its limit gives up shards that are no more than its excess. Only the last one may be
//!   more than that, and is as light as can be.
//! - A replica that is new on a node goes on to another for nothing. So does one that goes back.
//! - Of steps that move the same, one that cuts no range is best, and then one that relieves most.
//!
//! Each step lowers the higher of two nodes, or the excess of one node without giving another one any. So it
//! ends: once no node is above its limit, or no step lowers one that is by a hundredth of the mean.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::ids::ShardId;
use crate::planner::draft::Draft;
use crate::planner::ring::Ring;
use crate::planner::{Task, level};
use crate::shard_set::ShardSet;

/// An exchange, or a step that takes the receiver above its limit, lowers the highest node by this
/// part of the mean.
const WORTH_A_STEP: f64 = 0.01;

/// A draft on its way to a level.
pub(super) struct Relief<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) draft: Draft<'a>,
    /// The shards that each node has already.
    before: &'a [ShardSet],
    ring: &'a Ring,
    /// The most weight of each node.
    pub(super) limits: Vec<u64>,
    /// The weight of each node if all were as alike as zones let them be.
    pub(super) fair: Vec<f64>,
    /// The weight up to which nodes take shards first, so that those that do become alike.
    pub(super) marks: Vec<u64>,
    /// By how much an exchange lowers the highest node, and a step to a node that gets above its limit.
    least_gain: f64,
}

/// A change of the draft, and how good it is.
struct Step {
    shard: ShardId,
    /// Where it is; nothing where it lacks a replica.
    from: Option<usize>,
    to: usize,
    /// The lighter shard that goes the other way.
    back: Option<ShardId>,
    /// The level of the higher of both nodes after the step; 0 if the receiver keeps its limit.
    peak: f64,
    /// What the step moves for what it relieves.
    price: f64,
    relief: u64,
    is_above_mark: bool,
    /// How many more ranges the giver has, and the receiver.
    cuts: [i32; 2],
    /// The level of the receiver after the step.
    level: f64,
    place: usize,
}

impl Step {
    /// Better steps come first.
    fn compare(&self, other: &Self) -> Ordering {
        self.peak
            .total_cmp(&other.peak)
            .then(self.price.total_cmp(&other.price))
            .then(self.is_above_mark.cmp(&other.is_above_mark))
            .then(self.cuts.cmp(&other.cuts))
            .then(other.relief.cmp(&self.relief))
            .then(self.level.total_cmp(&other.level))
            .then(self.place.cmp(&other.place))
            .then(self.shard.cmp(&other.shard))
            .then(self.back.cmp(&other.back))
    }
}

impl<'a> Relief<'a> {
    /// The way of a draft to a level, the highest that nodes may have.
    pub(super) fn new(
        task: &'a Task<'a>,
        draft: Draft<'a>,
        before: &'a [ShardSet],
        ring: &'a Ring,
        highest: f64,
    ) -> Self {
        let at = |level: f64| move |capacity: f64| weight_at(level, capacity);
        let capacities = || task.nodes.iter().map(|node| f64::from(node.capacity.get()));
        let limits: Vec<u64> = capacities().map(at(highest)).collect();
        let excess = draft.loads.iter().zip(&limits);
        let excess: u64 = excess
            .map(|(load, limit)| load.saturating_sub(*limit))
            .sum();
        let to_place = draft.missing_weight() + excess;
        let has_room = |level: f64| {
            let room = capacities().map(at(level)).zip(&draft.loads);
            room.map(|(mark, load)| mark.saturating_sub(*load))
                .sum::<u64>()
                >= to_place
        };
        let mark = level::lowest(0.0, highest, has_room);
        Self {
            marks: capacities().map(at(mark)).collect(),
            fair: level::fair_loads(task),
            least_gain: WORTH_A_STEP * level::mean(task),
            task,
            draft,
            before,
            ring,
            limits,
        }
    }

    /// Goes the whole way.
    pub(super) fn run(&mut self) {
        while let Some(step) = self.best_placement() {
            self.take(&step);
        }
        self.spread_for_nothing();
        // It ends. Each filling gives nodes below their fair loads more than it takes from them. It puts none above its
        // limit, as no limit is below a fair load. Between two of them, nodes above their limits get lower.
        loop {
            self.relieve();
            let loads = self.draft.loads.clone();
            self.fill();
            if self.draft.loads == loads {
                return;
            }
        }
    }

    /// Relieves the nodes that are above their limits, the highest first, until no step lowers any of them. What
    /// one gives up makes room for what a higher one found no room for.
    fn relieve(&mut self) {
        let mut stuck = BTreeSet::new();
        while let Some(node) = self.highest(&stuck) {
            if self.relieve_node(node) {
                stuck.clear();
            } else {
                stuck.insert(node);
            }
        }
    }

    /// Takes something from a node above its limit, and answers whether anything can be taken.
    fn relieve_node(&mut self, node: usize) -> bool {
        let load = self.draft.loads[node];
        self.relieve_within_limits(node, f64::INFINITY, 0);
        if self.draft.loads[node] < load {
            return true;
        }
        let step = self.best_step(node);
        if let Some(step) = &step {
            self.take(step);
        }
        step.is_some()
    }

    /// Makes nodes more alike by what moves in any case, up to a hundredth.
    fn spread_for_nothing(&mut self) {
        let near_marks = self.marks.iter().map(|mark| mark + mark / 100).collect();
        let limits = std::mem::replace(&mut self.limits, near_marks);
        for node in 0..self.task.nodes.len() {
            self.relieve_within_limits(node, 0.0, 0);
        }
        self.limits = limits;
    }

    fn capacity(&self, node: usize) -> f64 {
        f64::from(self.task.nodes[node].capacity.get())
    }

    /// Takes from a node what has room elsewhere, at most at a price, until it keeps its limit: so
    /// ranges go whole. It keeps at least some weight.
    pub(super) fn relieve_within_limits(&mut self, node: usize, price: f64, kept: u64) {
        while self.draft.loads[node] > self.limits[node] {
            let spare = self.draft.loads[node].saturating_sub(kept);
            let shards = self.draft.held[node].iter();
            let shards = shards.filter(|&shard| self.task.weights.of(shard) <= spare);
            let step = self.best_move(shards, Some(node));
            let Some(step) = step.filter(|step| step.peak == 0.0 && step.price <= price) else {
                return;
            };
            self.take(&step);
        }
    }

    /// The node of the highest level of those above their limits, but for some.
    fn highest(&self, but: &BTreeSet<usize>) -> Option<usize> {
        let level = |&node: &usize| self.level(node, self.draft.loads[node]);
        let is_above = |&node: &usize| self.draft.loads[node] > self.limits[node];
        let nodes = (0..self.task.nodes.len()).filter(|node| !but.contains(node));
        let nodes = nodes.filter(is_above);
        nodes.rev().max_by(|a, b| level(a).total_cmp(&level(b)))
    }

    fn level(&self, node: usize, load: u64) -> f64 {
        load as f64 / self.capacity(node)
    }

    fn take(&mut self, step: &Step) {
        if let Some(from) = step.from {
            self.draft.take(from, step.shard);
            if let Some(back) = step.back {
                self.draft.take(step.to, back);
                self.draft.give(from, back);
            }
        }
        self.draft.give(step.to, step.shard);
    }

    /// The best way to place one of the missing replicas, of those at the ends of runs.
    fn best_placement(&self) -> Option<Step> {
        let runs = self.draft.holes().ranges();
        let ends = runs.flat_map(|run| [run.first(), run.last()]);
        self.best_move(ends, None)
    }

    /// The best way to take one of these shards from a node, or from none.
    fn best_move(
        &self,
        shards: impl Iterator<Item = ShardId>,
        from: Option<usize>,
    ) -> Option<Step> {
        let mut best: Option<Step> = None;
        for shard in shards {
            let is_beaten = best
                .as_ref()
                .is_some_and(|best| self.beats(best, shard, from));
            for to in 0..self.task.nodes.len() {
                if is_beaten && !self.before[to].contains(shard) {
                    continue;
                }
                if self.draft.may_go(shard, from, to) {
                    best = better(best, self.step(shard, from, to, None));
                }
            }
        }
        best
    }

    /// Whether a step is better than all that take a shard from a node to one that never had it. This
    /// only saves time.
    fn beats(&self, step: &Step, shard: ShardId, from: Option<usize>) -> bool {
        let Some(from) = from.filter(|&from| self.before[from].contains(shard)) else {
            return false;
        };
        let weight = self.task.weights.of(shard);
        let excess = self.draft.loads[from] - self.limits[from];
        let price = weight as f64 / weight.min(excess) as f64;
        step.peak == 0.0
            && step.price <= price
            && !step.is_above_mark
            && step.cuts[0] < self.draft.cuts_of_giver(shard, from)
    }

    /// The best move or exchange that takes weight from a node.
    fn best_step(&self, from: usize) -> Option<Step> {
        let mut best = self.best_move(self.draft.held[from].iter(), Some(from));
        let (draft, weights) = (&self.draft, self.task.weights);
        for shard in draft.held[from].iter() {
            for to in 0..self.task.nodes.len() {
                if !draft.may_go(shard, Some(from), to) {
                    continue;
                }
                for back in draft.held[to].iter() {
                    let is_lighter = weights.of(back) < weights.of(shard);
                    if is_lighter && draft.may_go(back, Some(to), from) {
                        best = better(best, self.step(shard, Some(from), to, Some(back)));
                    }
                }
            }
        }
        best
    }

    /// A step and how good it is, if it is one.
    fn step(
        &self,
        shard: ShardId,
        from: Option<usize>,
        to: usize,
        back: Option<ShardId>,
    ) -> Option<Step> {
        let draft = &self.draft;
        let weight = |shard: ShardId| self.task.weights.of(shard);
        let gain = weight(shard) - back.map_or(0, weight);
        let load = draft.loads[to] + gain;
        let level = self.level(to, load);
        let is_within_limit = load <= self.limits[to];
        let (mut peak, mut relief) = (level, gain);
        if let Some(from) = from {
            let load = draft.loads[from];
            relief = gain.min(load - self.limits[from]);
            peak = peak.max(self.level(from, load - gain));
            let is_worth_it = peak + self.least_gain <= self.level(from, load);
            if !is_worth_it && (back.is_some() || !is_within_limit) {
                return None;
            }
        }
        if is_within_limit {
            peak = 0.0;
        }
        let mut moved = self.moved(shard, from, to);
        if let (Some(back), Some(from)) = (back, from) {
            moved += self.moved(back, Some(to), from);
        }
        Some(Step {
            shard,
            from,
            to,
            back,
            peak,
            price: moved / relief as f64,
            relief,
            is_above_mark: load > self.marks[to],
            cuts: [
                from.map_or(0, |from| draft.cuts_of_giver(shard, from)),
                draft.cuts_of_receiver(shard, to),
            ],
            level,
            place: self.ring.place(shard, to),
        })
    }

    /// The weight that is moved if a shard goes from one node to another. It is less than nothing if
    /// the shard goes back.
    fn moved(&self, shard: ShardId, from: Option<usize>, to: usize) -> f64 {
        let is_new = |node: usize| !self.before[node].contains(shard);
        let weight = self.task.weights.of(shard) as f64;
        let saved = from.is_some_and(is_new);
        f64::from(i8::from(is_new(to)) - i8::from(saved)) * weight
    }
}

/// The weight of a node of some capacity at a level, and no less for what a float is off by.
pub(super) fn weight_at(level: f64, capacity: f64) -> u64 {
    /// More than what a float is off by, and less than any weight that matters.
    const ROUNDING: f64 = 1e-9;
    (level * capacity * (1.0 + ROUNDING)) as u64
}

fn better(best: Option<Step>, step: Option<Step>) -> Option<Step> {
    match (best, step) {
        (Some(best), Some(step)) if best.compare(&step).is_le() => Some(best),
        (best, None) => best,
        (_, step) => step,
    }
}
