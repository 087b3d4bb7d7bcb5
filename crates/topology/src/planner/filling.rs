//! How nodes that hold too little are filled, as one that has joined many others.

use crate::planner::level;
use crate::planner::relief::{Relief, weight_at};

/// A node below this part of its fair load is short, as one that has joined many others is.
const SHORT: f64 = 0.8;

/// Short nodes are filled to this part of their fair loads. No node gives them more than what it has
/// above that part.
const FILLED: f64 = 0.9;

impl Relief<'_> {
    /// Fills short nodes. Each round starts from the state that the last one left. Only nodes that
    /// were short before the first one receive. So a plan that follows finds nothing to fill.
    pub(super) fn fill(&mut self) {
        let (limits, marks) = (self.limits.clone(), self.marks.clone());
        let mut short = self.nodes_below(SHORT);
        while !short.is_empty() {
            let loads = self.draft.loads.clone();
            self.fill_once(&short);
            if self.draft.loads == loads {
                break;
            }
            let below = self.nodes_below(FILLED);
            short.retain(|node| below.contains(node));
        }
        (self.limits, self.marks) = (limits, marks);
    }

    /// Gives short nodes, up to their fair loads, what the others have above the highest part of theirs that
    /// leaves enough.
    fn fill_once(&mut self, short: &[usize]) {
        let nodes = 0..self.task.nodes.len();
        let giving = self.part_of_giving(short);
        let limit = |node: usize| {
            if short.contains(&node) {
                weight_at(1.0, self.fair[node])
            } else {
                weight_at(giving, self.fair[node]).min(self.draft.loads[node])
            }
        };
        self.limits = nodes.clone().map(limit).collect();
        let kept = |node: usize| (FILLED * self.fair[node]).ceil() as u64;
        let kept: Vec<u64> = nodes.clone().map(kept).collect();
        self.marks.clone_from(&kept);
        for node in nodes {
            self.relieve_within_limits(node, f64::INFINITY, kept[node]);
        }
    }

    /// The highest part of their fair loads above which nodes hold as much as short ones lack.
    fn part_of_giving(&self, short: &[usize]) -> f64 {
        let over = |node: usize, part: f64| self.draft.loads[node] as f64 - part * self.fair[node];
        let lack: f64 = short.iter().map(|&node| -over(node, FILLED)).sum();
        let nodes = || 0..self.task.nodes.len();
        let parts = nodes().map(|node| self.draft.loads[node] as f64 / self.fair[node]);
        let highest = parts.fold(1.0, f64::max);
        let is_enough = |depth: f64| {
            let excess = nodes().map(|node| over(node, highest - depth).max(0.0));
            excess.sum::<f64>() >= lack
        };
        highest - level::lowest(0.0, highest - 1.0, is_enough)
    }

    fn nodes_below(&self, part: f64) -> Vec<usize> {
        let is_below = |&node: &usize| (self.draft.loads[node] as f64) < part * self.fair[node];
        (0..self.task.nodes.len()).filter(is_below).collect()
    }
}
