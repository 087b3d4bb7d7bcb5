//! The way to a plan: replicas that are missing are placed, then the highest node is relieved.
//!
//! A step takes one shard from the highest node. If no node has room for
//! one, a step may also exchange a shard for a lighter one. The best step moves least weight for what it relieves:
//!
//! - A node above its limit first gives up the heaviest shards that are no more than its excess. Only
//!   the last one may be more than that, and is as light as can be.
//! - A replica that is new on a node goes on to another for nothing. So does one that goes back.
//! - Of steps that are equally good, one that cuts no range is best.
//!
//! With each step the highest node gets lower, and the receiver stays below what it was. So it ends:
//! once no node is above its limit, or no step lowers the highest one by a hundredth of the mean.

use std::cmp::Ordering;

use crate::ids::ShardId;
use crate::planner::draft::Draft;
use crate::planner::ring::Ring;
use crate::planner::{Task, level};
use crate::shard_set::ShardSet;

/// Where the receiver goes above its limit, a step lowers the highest node by this part of the mean.
const WORTH_A_STEP: f64 = 0.01;

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
    /// By how much a step lowers the highest node where the receiver goes above its limit.
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
    cuts: i32,
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
            .then(other.relief.cmp(&self.relief))
            .then(self.is_above_mark.cmp(&other.is_above_mark))
            .then(self.cuts.cmp(&other.cuts))
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
        /// More than what a float is off by, and less than any weight that matters.
        const ROUNDING: f64 = 1e-9;
        let at = |level: f64| move |capacity: f64| (level * capacity * (1.0 + ROUNDING)) as u64;
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
        while let Some(step) = self.best_move(None) {
            self.take(&step);
        }
        while let Some(highest) = self.highest() {
            let step = self.best_move(Some(highest));
            let step = match step.filter(|step| step.peak == 0.0) {
                Some(step) => Some(step),
                None => self.best_step(highest),
            };
            let Some(step) = step else {
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
        load as f64 / f64::from(self.task.nodes[node].capacity.get())
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

    /// The best way to place one of the missing replicas, or to take a shard from a node.
    fn best_move(&self, from: Option<usize>) -> Option<Step> {
        let shards = from.map_or_else(|| self.draft.holes(), |from| self.draft.held[from]);
        let mut best: Option<Step> = None;
        for shard in shards.iter() {
            for to in 0..self.task.nodes.len() {
                if self.draft.may_go(shard, from, to) {
                    best = better(best, self.step(shard, from, to, None));
                }
            }
        }
        best
    }

    /// The best move or exchange that takes weight from a node.
    fn best_step(&self, from: usize) -> Option<Step> {
        let mut best = self.best_move(Some(from));
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
        let (mut peak, mut relief) = (0.0, gain);
        if load > self.limits[to] {
            peak = level;
        }
        if let Some(from) = from {
            let load = draft.loads[from];
            relief = gain.min(load - self.limits[from]);
            if peak > 0.0 {
                peak = peak.max(self.level(from, load - gain));
                if peak + self.least_gain > self.level(from, load) {
                    return None;
                }
            }
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
            cuts: draft.cuts(shard, from, to),
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

fn better(best: Option<Step>, step: Option<Step>) -> Option<Step> {
    match (best, step) {
        (Some(best), Some(step)) if best.compare(&step).is_le() => Some(best),
        (best, None) => best,
        (_, step) => step,
    }
}
