//! A plan from scratch: one range of leading bytes per node, replicas on the nodes that follow.
//!
//! The 256 shards are cut into as many ranges as there are nodes. Replica `i` of a range is the
//! node `i` places after the range's owner, around the circle. So each node holds neighbouring
//! ranges and its load, should it fail, is spread over its neighbours.
//!
//! Range `j` ends at ⌈256·(j+1)/n⌉. Any `r` neighbouring ranges on the circle then hold ⌊256·r/n⌋
//! or ⌈256·r/n⌉ shards together, which gives P2 and P6 for any number of replicas.

use crate::ids::ShardId;

/// The replicas of each shard, as positions in the list of `nodes` nodes.
pub(super) fn entries(nodes: usize, replicas: usize) -> Vec<Vec<usize>> {
    let mut entries = Vec::with_capacity(ShardId::COUNT);
    for owner in 0..nodes {
        let chain: Vec<usize> = (owner..owner + replicas).map(|node| node % nodes).collect();
        let end = (ShardId::COUNT * (owner + 1)).div_ceil(nodes);
        entries.resize(end, chain);
    }
    entries
}
