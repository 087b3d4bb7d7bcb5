//! A beginning from scratch: one range of leading bytes per node, replicas on the nodes that follow.
//!
//! The shards are cut into as many ranges as there are nodes, as heavy as the nodes have capacity.
//! Replica `i` of a range is the node `i` places after the range's owner, around a circle on which
//! zones take turns. So each node holds neighbouring ranges, and its load, should it fail, is spread
//! over its neighbours.
//!
//! If all are equal, range `j` ends at ⌈256·(j+1)/n⌉. Any `r` neighbouring ranges on the circle then
//! hold ⌊256·r/n⌋ or ⌈256·r/n⌉ shards together, for any number of replicas: hence P6.

use crate::ids::ShardId;
use crate::planner::Task;

/// The replicas of each shard, as places in the list of nodes.
pub(super) fn entries(task: &Task) -> Vec<Vec<usize>> {
    let circle = task.zones.in_turn();
    let capacity = |node: usize| u128::from(task.nodes[node].capacity.get());
    let all_capacity: u128 = circle.iter().map(|&node| capacity(node)).sum();
    let all_weight = u128::from(task.weights.sum(ShardId::all()));
    let mut owner = 0;
    let mut weight_before = 0;
    let mut capacity_up_to_owner = capacity(circle[0]);
    let mut entries = Vec::with_capacity(ShardId::COUNT);
    for shard in ShardId::all() {
        while weight_before * all_capacity >= all_weight * capacity_up_to_owner {
            owner += 1;
            capacity_up_to_owner += capacity(circle[owner]);
        }
        let chain = (owner..owner + task.replicas).map(|place| circle[place % circle.len()]);
        entries.push(chain.collect());
        weight_before += u128::from(task.weights.of(shard));
    }
    entries
}
