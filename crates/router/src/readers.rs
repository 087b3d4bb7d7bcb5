//! Which replica of each shard is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::ClusterLayout;
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet};

/// Shards of nodes.
pub(crate) type ShardsOfNodes = BTreeMap<NodeId, ShardSet>;

/// What a request knows against replicas.
#[derive(Clone, Debug, Default)]
pub(crate) struct Avoided {
    /// Nodes that are not asked.
    pub(crate) down: BTreeSet<NodeId>,
    /// The shards that nodes cannot read.
    pub(crate) damaged: ShardsOfNodes,
    /// The shards that nodes have no tables of.
    pub(crate) cold: ShardsOfNodes,
    /// Nodes that gave no sign of life a moment ago.
    pub(crate) silent: BTreeSet<NodeId>,
    /// The shards of which nodes had other records a moment ago.
    pub(crate) stale: ShardsOfNodes,
}

impl Avoided {
    pub(crate) fn is_empty(&self) -> bool {
        self.down.is_empty()
            && self.damaged.is_empty()
            && self.cold.is_empty()
            && self.silent.is_empty()
            && self.stale.is_empty()
    }

    /// Whether a hot replica is sure to refuse.
    fn refuses(&self, node: &NodeId, shard: ShardId) -> bool {
        self.down.contains(node) || has(&self.damaged, node, shard) || has(&self.cold, node, shard)
    }
}

fn has(shards: &ShardsOfNodes, node: &NodeId, shard: ShardId) -> bool {
    let shards = shards.get(node);
    shards.is_some_and(|shards| shards.contains(shard))
}

/// The other replicas that may answer for a shard.
pub(crate) fn others<'a>(
    layout: &'a ClusterLayout,
    node: &'a NodeId,
    shard: ShardId,
    avoided: &'a Avoided,
) -> impl Iterator<Item = &'a NodeId> {
    let replicas = layout.map().replicas(shard);
    let hot = layout.hot(shard).into_iter();
    let hot = hot.filter_map(move |place| replicas.get(place));
    hot.filter(move |other| *other != node && !avoided.refuses(other, shard))
}

/// The node that each shard is read from, in one round of a request.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    layout: Arc<ClusterLayout>,
    /// The places of the nodes in the map.
    places: [usize; ShardId::COUNT],
}

impl Readers {
    /// Of each shard a replica in sync that is not down, of those that have least against them. A silent one may wake
    /// up and a stale one catch up, but a cold one refuses for a while. The replicas have equal shares of neighbours,
    /// whatever their order in the records is.
    pub(crate) fn new(layout: Arc<ClusterLayout>, avoided: &Avoided) -> Self {
        let places = std::array::from_fn(|shard| reader(&layout, ShardId(shard as u8), avoided));
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

/// The place in the map of the node that a shard is read from.
fn reader(layout: &ClusterLayout, shard: ShardId, avoided: &Avoided) -> usize {
    let map = layout.map();
    let replicas = map.replica_places(shard);
    if replicas.len() == 1 {
        return replicas[0];
    }
    let record = layout.records().and_then(|records| records.get(&shard));
    let in_sync = record.map_or(replicas.len(), |record| record.in_sync.len());
    let hot = layout.hot(shard);
    let against = |place: usize| {
        let node = &map.nodes()[replicas[place]];
        // By how long it is likely to refuse, or to say nothing.
        [
            has(&avoided.damaged, node, shard),
            has(&avoided.cold, node, shard),
            // It gets hot soon, if it is needed.
            !hot.contains(&place),
            avoided.silent.contains(node),
            has(&avoided.stale, node, shard),
        ]
    };
    let is_up = |&place: &usize| !avoided.down.contains(&map.nodes()[replicas[place]]);
    let up = (0..in_sync.min(replicas.len())).filter(is_up);
    let up: Vec<_> = up.map(|place| (against(place), replicas[place])).collect();
    let Some(least) = up.iter().map(|(against, _)| *against).min() else {
        return replicas[0];
    };
    let best = up.into_iter().filter(|(against, _)| *against == least);
    let mut best: Vec<usize> = best.map(|(_, replica)| replica).collect();
    best.sort_unstable();
    best[usize::from(shard.0) * best.len() / ShardId::COUNT]
}

#[cfg(test)]
mod tests {
    use simshard_cluster::Node;

    use super::*;

    fn node(number: usize) -> NodeId {
        NodeId::new(&format!("n{number}")).unwrap()
    }

    /// Three nodes, each of which has all shards.
    fn layout() -> Arc<ClusterLayout> {
        let nodes = (1..=3).map(|number| Node {
            id: node(number),
            address: format!("http://127.0.0.1:{}", 7000 + number),
        });
        Arc::new(ClusterLayout::planned(nodes.collect(), 3).unwrap())
    }

    fn all_of(numbers: &[usize]) -> ShardsOfNodes {
        let shards = |&number| (node(number), ShardSet::ALL);
        numbers.iter().map(shards).collect()
    }

    fn nodes(numbers: &[usize]) -> BTreeSet<NodeId> {
        numbers.iter().copied().map(node).collect()
    }

    /// The nodes that are read.
    fn read(avoided: &Avoided) -> BTreeSet<NodeId> {
        let readers = Readers::new(layout(), avoided);
        let readers = ShardId::all().map(|shard| readers.of(shard).clone());
        readers.collect()
    }

    #[test]
    fn a_replica_with_less_against_it_is_read() {
        assert_eq!(read(&Avoided::default()), nodes(&[1, 2, 3]));
        let mut avoided = Avoided {
            stale: all_of(&[1]),
            ..Avoided::default()
        };
        assert_eq!(read(&avoided), nodes(&[2, 3]));
        avoided.silent = nodes(&[2, 3]);
        assert_eq!(read(&avoided), nodes(&[1]));
        avoided.cold = all_of(&[1]);
        assert_eq!(read(&avoided), nodes(&[2, 3]));
        avoided.cold.insert(node(2), ShardSet::ALL);
        assert_eq!(read(&avoided), nodes(&[3]));
        avoided.down = nodes(&[3]);
        avoided.damaged = all_of(&[1]);
        assert_eq!(read(&avoided), nodes(&[2]));
        // If there is something against all of them, the best are read.
        avoided = Avoided {
            stale: all_of(&[1, 2, 3]),
            ..Avoided::default()
        };
        assert_eq!(read(&avoided), nodes(&[1, 2, 3]));
    }

    /// Those that may answer for the first node.
    fn others_of(avoided: &Avoided) -> BTreeSet<NodeId> {
        let (layout, first) = (layout(), node(1));
        let others = others(&layout, &first, ShardId(7), avoided);
        others.cloned().collect()
    }

    #[test]
    fn others_may_answer_unless_they_are_sure_to_refuse() {
        let avoided = Avoided {
            down: nodes(&[2]),
            silent: nodes(&[3]),
            stale: all_of(&[3]),
            ..Avoided::default()
        };
        assert_eq!(others_of(&Avoided::default()), nodes(&[2, 3]));
        assert_eq!(others_of(&avoided), nodes(&[3]));
        for refuses in [
            Avoided {
                cold: all_of(&[3]),
                ..avoided.clone()
            },
            Avoided {
                damaged: all_of(&[3]),
                ..avoided
            },
        ] {
            assert_eq!(others_of(&refuses), nodes(&[]));
        }
    }
}
