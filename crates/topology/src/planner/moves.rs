//! The difference between two maps: the replicas that must be copied.

use crate::ids::{NodeId, ShardId};
use crate::shard_map::ShardMap;

/// One replica to be copied: `to` becomes a replica of `shard`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Move {
    /// The shard.
    pub shard: ShardId,
    /// The replica that `to` stands in for, or nothing where the shard gains one.
    ///
    /// It may be gone already, so it is not necessarily the one to copy from.
    pub from: Option<NodeId>,
    /// The new replica.
    pub to: NodeId,
}

/// The moves that lead from one map to another, in order of shards.
///
/// Without a map to come from, every replica is a move. A replica that is dropped and not replaced
/// is none, nor is a change of order.
pub fn moves(from: Option<&ShardMap>, to: &ShardMap) -> Vec<Move> {
    let mut moves = Vec::new();
    for shard in ShardId::all() {
        let old = from.map_or(&[][..], |map| map.replicas(shard));
        let new = to.replicas(shard);
        let mut leaving = old.iter().filter(|node| !new.contains(node));
        for node in new.iter().filter(|node| !old.contains(node)) {
            moves.push(Move {
                shard,
                from: leaving.next().cloned(),
                to: node.clone(),
            });
        }
    }
    moves
}
