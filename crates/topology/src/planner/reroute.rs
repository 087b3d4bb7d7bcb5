//! Step 3: holes that no node with room may fill, filled at the least cost.
//!
//! A node with room may already be a replica of the shard that needs one. Then another node takes
//! that shard and passes one of its own on, and so on until a node with room takes the last one.
//!
//! ```text
//! hole 1f -> n2,   n2's 40 -> n5,   n5 has room
//! ```
//!
//! See this as a flow of replicas from shards to nodes, where a pair costs 0 if the previous map
//! has it and 1 if not. Then this is one augmenting path of a minimum-cost flow. Successive
//! shortest paths keep the cost minimal for what is placed so far (no cycle of hand-overs would
//! lower it). Hence P3 at the end, provided it held at the start. It does: a draft without new
//! pairs costs 0. One that [`Draft::keeps_all_it_could`] filled in any way costs one per pair
//! beyond the most that can be kept. A full plan exists ([`fresh`](super::fresh) is one), so there
//! always is a path.

use crate::ids::ShardId;
use crate::planner::draft::Draft;
use crate::planner::ring::Ring;
use crate::shard_set::ShardSet;

/// Gives every shard all its replicas.
pub(super) fn fill_the_rest(draft: &mut Draft, ring: &Ring) {
    while let Some(hole) = draft.holes().first() {
        let paths = cheapest_paths(draft, hole);
        let end = draft
            .nodes()
            .filter(|&node| draft.load(node) < draft.cap)
            .filter_map(|node| Some((paths[node]?, node)))
            .min_by_key(|&(path, node)| (path.cost, ring.place(hole, node)));
        let (_, end) = end.expect("a plan exists, so a path to a node with room does");
        apply(draft, hole, &paths, end);
    }
}

/// The last step of a cheapest path from a hole to a node.
#[derive(Clone, Copy)]
struct Path {
    /// New pairs less pairs no longer new, along the whole path.
    cost: i32,
    /// The node before, and the shard it passes on; nothing where the node takes the hole itself.
    via: Option<(usize, ShardId)>,
}

/// The cheapest path from `hole` to each node that can be reached (Bellman-Ford: costs may be
/// negative, but no cycle is).
fn cheapest_paths(draft: &Draft, hole: ShardId) -> Vec<Option<Path>> {
    let mut paths: Vec<Option<Path>> = draft
        .nodes()
        .map(|node| {
            let cost = i32::from(!draft.before[node].contains(hole));
            (!draft.held[node].contains(hole)).then_some(Path { cost, via: None })
        })
        .collect();
    for _round in 0..=draft.nodes().len() {
        let mut is_settled = true;
        for from in draft.nodes() {
            let Some(path) = paths[from] else {
                continue;
            };
            for to in draft.nodes() {
                let Some((cost, shard)) = cheapest_hand_over(draft, from, to) else {
                    continue;
                };
                let cost = path.cost + cost;
                if paths[to].is_none_or(|known| cost < known.cost) {
                    paths[to] = Some(Path {
                        cost,
                        via: Some((from, shard)),
                    });
                    is_settled = false;
                }
            }
        }
        if is_settled {
            return paths;
        }
    }
    unreachable!("P3: a cycle of hand-overs lowers the cost, so the draft had moves to spare")
}

/// The cheapest shard that `from` could pass on to `to`, and what that costs.
fn cheapest_hand_over(draft: &Draft, from: usize, to: usize) -> Option<(i32, ShardId)> {
    let offered = draft.held[from].difference(&draft.held[to]);
    let old_there = offered.intersection(&draft.before[to]);
    let new_there = offered.difference(&draft.before[to]);
    let old_here = &draft.before[from];
    let by_cost: [(i32, ShardSet); 3] = [
        (-1, old_there.difference(old_here)),
        (
            0,
            old_there
                .intersection(old_here)
                .union(&new_there.difference(old_here)),
        ),
        (1, new_there.intersection(old_here)),
    ];
    by_cost
        .iter()
        .find_map(|(cost, shards)| Some((*cost, shards.first()?)))
}

/// Hands shards over along the path to `end`, which frees a node to take `hole`.
fn apply(draft: &mut Draft, hole: ShardId, paths: &[Option<Path>], end: usize) {
    let mut node = end;
    while let Some((from, shard)) = paths[node].and_then(|path| path.via) {
        draft.take(from, shard);
        draft.give(node, shard);
        node = from;
    }
    draft.give(node, hole);
}
