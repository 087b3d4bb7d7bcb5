//! Step 2: shards short of replicas go, in runs, to nodes with room.
//!
//! Nodes first fill up to a level, so that those who receive end up alike. If distinct replicas
//! stand in the way of that, they fill up to the cap. The best next step extends a range the node
//! has, then is long. A run is taken from its ends only, so it is cut only where a node is full.

use std::cmp::Reverse;

use crate::ids::ShardId;
use crate::planner::draft::Draft;
use crate::planner::ring::Ring;
use crate::shard_set::ShardRange;

/// Fills what holes it can without moving anything a node holds.
pub(super) fn in_runs(draft: &mut Draft, ring: &Ring) {
    let level = level(draft, ring);
    fill_up_to(draft, ring, &level);
    let cap = vec![draft.cap; draft.nodes().len()];
    fill_up_to(draft, ring, &cap);
}

/// The loads of all nodes if the holes went one by one to the node that holds least.
fn level(draft: &Draft, ring: &Ring) -> Vec<usize> {
    let mut loads: Vec<usize> = draft.nodes().map(|node| draft.load(node)).collect();
    let holes = draft.holes();
    let Some(first) = holes.first() else {
        return loads;
    };
    let count: usize = holes.iter().map(|shard| draft.missing(shard)).sum();
    for _ in 0..count {
        let lowest = draft
            .nodes()
            .min_by_key(|&node| (loads[node], ring.place(first, node)));
        if let Some(node) = lowest {
            loads[node] += 1;
        }
    }
    loads
}

/// How good a step is; the greatest is taken.
type Score = (usize, usize, Reverse<usize>, Reverse<ShardId>);

fn fill_up_to(draft: &mut Draft, ring: &Ring, limits: &[usize]) {
    loop {
        let mut best: Option<(Score, usize, ShardRange)> = None;
        let holes = draft.holes();
        for node in draft.nodes() {
            let room = limits[node].saturating_sub(draft.load(node));
            if room == 0 {
                continue;
            }
            for run in holes.difference(&draft.held[node]).ranges() {
                let (joins, part) = best_part(draft, node, run, room);
                let place = ring.place(run.first(), node);
                let score = (joins, part.len(), Reverse(place), Reverse(run.first()));
                if best.is_none_or(|(other, ..)| score > other) {
                    best = Some((score, node, part));
                }
            }
        }
        let Some((_, node, part)) = best else {
            return;
        };
        part.iter().for_each(|shard| draft.give(node, shard));
    }
}

/// The part of `run` that `node` would take, and how many of its ranges that joins.
fn best_part(draft: &Draft, node: usize, run: ShardRange, room: usize) -> (usize, ShardRange) {
    let holds = |shard: Option<ShardId>| shard.is_some_and(|s| draft.held[node].contains(s));
    let low = holds(run.first().before());
    let high = holds(run.last().after());
    if run.len() <= room {
        return (usize::from(low) + usize::from(high), run);
    }
    if high && !low {
        return (1, run.highest(room));
    }
    (usize::from(low), run.lowest(room))
}
