//! What leads from one map to another: the replicas that must be copied.

use std::cmp::Reverse;

use crate::ids::{NodeId, ShardId};
use crate::planner::Task;
use crate::shard_map::ShardMap;

/// One replica to be copied: `to` becomes a replica of `shard`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The shard.
    pub shard: ShardId,
    /// The replica that `to` replaces, or nothing where the shard gains one.
    ///
    /// It may be gone already, so it is not necessarily the one to copy from.
    pub from: Option<NodeId>,
    /// The new replica.
    pub to: NodeId,
    /// The weight of the shard.
    pub weight: u64,
}

/// The moves that lead from one map to another (P7).
///
/// Without a map to come from, every replica is a move. A replica that is dropped and not replaced
/// is none, nor is a change of order.
pub(super) fn moves(task: &Task, from: Option<&ShardMap>, to: &ShardMap) -> Vec<Move> {
    let mut waiting = Vec::new();
    for shard in ShardId::all() {
        let old = from.map_or(&[][..], |map| map.replicas(shard));
        let new = to.replicas(shard);
        let mut leaving = old.iter().filter(|node| !new.contains(node));
        for node in new.iter().filter(|node| !old.contains(node)) {
            waiting.push(Move {
                shard,
                from: leaving.next().cloned(),
                to: node.clone(),
                weight: task.weights.of(shard),
            });
        }
    }
    let held = |node: &NodeId| from.map_or(0, |map| task.weights.sum(map.shards_of(node).iter()));
    let loads = task.nodes.iter().map(|node| held(&node.id)).collect();
    in_order(task, waiting, loads)
}

/// Each time the move from the node that is highest then, and the heaviest of several. Before these
/// are replicas that are missing, and those on nodes that are to hold nothing.
fn in_order(task: &Task, waiting: Vec<Move>, mut loads: Vec<u64>) -> Vec<Move> {
    let place = |node: &NodeId| task.nodes.binary_search_by(|other| other.id.cmp(node)).ok();
    let ends = |one: Move| (one.from.as_ref().and_then(place), place(&one.to), one);
    let mut waiting: Vec<_> = waiting.into_iter().map(ends).collect();
    waiting.sort_by_key(|(from, _, one)| (from.is_some(), one.from.clone(), Reverse(one.weight)));
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let level = |from: Option<usize>| {
            let capacity = |node: usize| f64::from(task.nodes[node].capacity.get());
            from.map_or(f64::INFINITY, |node| loads[node] as f64 / capacity(node))
        };
        let places = (0..waiting.len()).rev();
        let next = places.max_by(|&a, &b| level(waiting[a].0).total_cmp(&level(waiting[b].0)));
        let (from, to, one) = waiting.remove(next.unwrap_or_default());
        if let Some(from) = from {
            loads[from] -= one.weight;
        }
        if let Some(to) = to {
            loads[to] += one.weight;
        }
        ordered.push(one);
    }
    ordered
}
