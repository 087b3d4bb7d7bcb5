//! The way to a plan: replicas that are missing are placed, the highest node is relieved, and nodes
//! that hold too little are filled.
//!
//! A step takes one shard from the highest node. If no node has room for one, a step may also
//! exchange a shard for a lighter one. The best step moves least weight for what it relieves:
//!
//! - A node above its limit gives up shards that are no more than its excess. Only the last one may be
//!   more than that, and is as light as can be.
//! - A replica that is new on a node goes on to another for nothing. So does one that goes back.
//! - Of steps that move the same, one that cuts no range is best, and then one that relieves most.
//!
//! Each step lowers the highest node, or the excess of one node without giving another one any. So it
//! ends: once no node is above its limit, or no step lowers the highest one by a hundredth of the mean.

use std::cmp::Ordering;

use crate::ids::ShardId;
use crate::planner::draft::Draft;
use crate::planner::ring::Ring;
use crate::planner::{Task, level};
use crate::shard_set::ShardSet;

/// An exchange, or a step that takes the receiver above its limit, lowers the highest node by this
/// part of the mean.
const WORTH_A_STEP: f64 = 0.01;

/// A node below this part of the mean level is short, as one that has joined many others is.
const SHORT: f64 = 0.8;

/// Short nodes are filled to this part of the mean level. No node gives them more than what it has
/// above that part.
const FILLED: f64 = 0.9;

/// A draft on its way to a level.
pub(super) struct Relief<'a> {
    task: &'a Task<'a>,
    pub(super) draft: Draft<'a>,
    /// The shards that each node has already.
    before: &'a [ShardSet],
    ring: &'a Ring,
    /// The most weight of each node.
    limits: Vec<u64>,
    /// The weight up to which nodes take shards first, so that those that do become alike.
    marks: Vec<u64>,
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
        self.relieve();
        if self.highest().is_none() {
            self.fill();
        }
    }

    /// Relieves the highest node until none is above its limit, or no step lowers it.
    fn relieve(&mut self) {
        while let Some(node) = self.highest() {
            let load = self.draft.loads[node];
            self.relieve_within_limits(node, f64::INFINITY, 0);
            if self.draft.loads[node] < load {
                continue;
            }
            let Some(step) = self.best_step(node) else {
                return;
            };
            self.take(&step);
        }
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

    /// Fills short nodes. Each round starts from the state that the last one left. Only nodes that
    /// were short before the first one receive. So a plan that follows finds nothing to fill.
    fn fill(&mut self) {
        let mean = level::mean(self.task);
        let mut short = self.nodes_below(SHORT * mean);
        while !short.is_empty() {
            let loads = self.draft.loads.clone();
            self.fill_once(&short, mean);
            if self.draft.loads == loads {
                return;
            }
            let below = self.nodes_below(FILLED * mean);
            short.retain(|node| below.contains(node));
        }
    }

    /// Gives short nodes, up to the mean level, what the others have above the highest level that
    /// leaves enough.
    fn fill_once(&mut self, short: &[usize], mean: f64) {
        let nodes = 0..self.task.nodes.len();
        let giving = self.level_of_giving(short, mean);
        let limit = |node: usize| {
            if short.contains(&node) {
                weight_at(mean, self.capacity(node))
            } else {
                weight_at(giving, self.capacity(node)).min(self.draft.loads[node])
            }
        };
        self.limits = nodes.clone().map(limit).collect();
        let kept = |node: usize| (FILLED * mean * self.capacity(node)).ceil() as u64;
        let kept: Vec<u64> = nodes.clone().map(kept).collect();
        self.marks.clone_from(&kept);
        for node in nodes {
            self.relieve_within_limits(node, f64::INFINITY, kept[node]);
        }
    }

    /// The highest level above which nodes hold as much as short ones lack.
    fn level_of_giving(&self, short: &[usize], mean: f64) -> f64 {
        let over =
            |node: usize, level: f64| self.draft.loads[node] as f64 - level * self.capacity(node);
        let lack: f64 = short.iter().map(|&node| -over(node, FILLED * mean)).sum();
        let nodes = || 0..self.task.nodes.len();
        let levels = nodes().map(|node| self.level(node, self.draft.loads[node]));
        let highest = levels.fold(mean, f64::max);
        let is_enough = |depth: f64| {
            let excess = nodes().map(|node| over(node, highest - depth).max(0.0));
            excess.sum::<f64>() >= lack
        };
        highest - level::lowest(0.0, highest - mean, is_enough)
    }

    fn nodes_below(&self, level: f64) -> Vec<usize> {
        let is_below = |&node: &usize| self.level(node, self.draft.loads[node]) < level;
        (0..self.task.nodes.len()).filter(is_below).collect()
    }

    fn capacity(&self, node: usize) -> f64 {
        f64::from(self.task.nodes[node].capacity.get())
    }

    /// Takes from a node what has room elsewhere, at most at a price, until it keeps its limit: so
    /// ranges go whole. It keeps at least some weight.
    fn relieve_within_limits(&mut self, node: usize, price: f64, kept: u64) {
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

    /// The node of the highest level, if it is above its limit.
    fn highest(&self) -> Option<usize> {
        let level = |&node: &usize| self.level(node, self.draft.loads[node]);
        let nodes = 0..self.task.nodes.len();
        let highest = nodes.rev().max_by(|a, b| level(a).total_cmp(&level(b)));
        highest.filter(|&node| self.draft.loads[node] > self.limits[node])
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
fn weight_at(level: f64, capacity: f64) -> u64 {
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
