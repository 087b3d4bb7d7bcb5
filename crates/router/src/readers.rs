//! Which replica of each shard is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::ClusterLayout;
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet};

/// The shards that nodes have no tables of.
pub(crate) type Cold = BTreeMap<NodeId, ShardSet>;

/// The node that each shard is read from, in one round of a request.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    layout: Arc<ClusterLayout>,
    /// The places of the nodes in the map.
    places: [usize; ShardId::COUNT],
}

impl Readers {
    /// Of each shard a hot replica in sync that is not down, nor cold as far as is known; if all are, any that is not
    /// down, or the first. The replicas have equal shares of neighbours, whatever their order in the records is.
    pub(crate) fn new(layout: Arc<ClusterLayout>, down: &BTreeSet<NodeId>, cold: &Cold) -> Self {
        let map = layout.map();
        let reader = |shard: usize| {
            let shard = ShardId(shard as u8);
            let replicas = map.replica_places(shard);
            if replicas.len() == 1 {
                return replicas[0];
            }
            let mut up: Vec<usize> = layout.hot(shard).iter().map(|&hot| replicas[hot]).collect();
            up.retain(|&place| !down.contains(&map.nodes()[place]));
            let is_cold = |place: usize| {
                let cold = cold.get(&map.nodes()[place]);
                cold.is_some_and(|cold| cold.contains(shard))
            };
            if up.iter().any(|&place| !is_cold(place)) {
                up.retain(|&place| !is_cold(place));
            }
            up.sort_unstable();
            let share = usize::from(shard.0) * up.len() / ShardId::COUNT;
            // A cold one that is up gets hot soon.
            let any = || {
                let mut any = replicas.iter();
                any.find(|&&place| !down.contains(&map.nodes()[place]))
            };
            let reader = up.get(share).or_else(any);
            reader.copied().unwrap_or(replicas[0])
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
