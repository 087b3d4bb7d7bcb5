//! Which replica of each shard is read.

use std::collections::BTreeSet;
use std::sync::Arc;

use simshard_cluster::ClusterLayout;
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet};

/// The node that each shard is read from, in one round of a request.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    layout: Arc<ClusterLayout>,
    /// The places of the nodes in the map.
    places: [usize; ShardId::COUNT],
}

impl Readers {
    /// Of each shard a replica in sync that is not down; if all are, the first. The replicas have equal shares of
    /// neighbours, whatever their order in the records is.
    pub(crate) fn new(layout: Arc<ClusterLayout>, down: &BTreeSet<NodeId>) -> Self {
        let map = layout.map();
        let reader = |shard: usize| {
            let shard = ShardId(shard as u8);
            let replicas = map.replica_places(shard);
            if replicas.len() == 1 {
                return replicas[0];
            }
            let in_sync = replicas[..layout.in_sync(shard)].iter().copied();
            let mut up: Vec<usize> = in_sync
                .filter(|&place| !down.contains(&map.nodes()[place]))
                .collect();
            up.sort_unstable();
            let share = usize::from(shard.0) * up.len() / ShardId::COUNT;
            up.get(share).copied().unwrap_or(replicas[0])
        };
        let places = std::array::from_fn(reader);
        Self { layout, places }
    }

    pub(crate) fn map(&self) -> &ShardMap {
        self.layout.map()
    }

    /// The place in the map of the node that a shard is read from.
    pub(crate) const fn place(&self, shard: ShardId) -> usize {
        self.places[shard.0 as usize]
    }

    /// The node that a shard is read from.
    pub(crate) fn of(&self, shard: ShardId) -> &NodeId {
        &self.map().nodes()[self.place(shard)]
    }

    /// The shards that are read from a node.
    pub(crate) fn shards_of(&self, node: &NodeId) -> ShardSet {
        ShardId::all()
            .filter(|&shard| self.of(shard) == node)
            .collect()
    }
}
