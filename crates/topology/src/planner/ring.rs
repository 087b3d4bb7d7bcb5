//! A consistent-hash ring: which of several equally good nodes comes first for a shard.
//!
//! The ring only breaks ties. It spreads 256 shards unevenly and knows nothing of distinct
//! replicas, so it never decides an assignment.

use std::hash::{Hash, Hasher};

use hashring::HashRing;

use crate::ids::{NodeId, ShardId};

/// Points on the ring per node.
const POINTS: u32 = 8;

/// The order of the nodes around the ring, seen from each shard.
pub(super) struct Ring {
    /// For each shard, the place of each node.
    places: Vec<Vec<usize>>,
}

/// One point of a node on the ring.
#[derive(Clone, Debug)]
struct Point {
    node: usize,
    name: [u8; NodeId::MAX_LEN],
    number: u32,
}

/// Fixed-width bytes only, so that every platform and version places a point alike.
impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.name);
        state.write(&self.number.to_le_bytes());
    }
}

/// The place of a shard on the ring.
struct Key(ShardId);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&[self.0.0]);
    }
}

impl Ring {
    /// A ring of distinct `nodes`.
    pub(super) fn new<'a>(nodes: impl ExactSizeIterator<Item = &'a NodeId>) -> Ring {
        let count = nodes.len();
        let mut points = Vec::with_capacity(count * POINTS as usize);
        for (node, id) in nodes.enumerate() {
            let mut name = [0; NodeId::MAX_LEN];
            name[..id.as_str().len()].copy_from_slice(id.as_str().as_bytes());
            points.extend((0..POINTS).map(|number| Point { node, name, number }));
        }
        let mut ring = HashRing::new();
        ring.batch_add(points);
        let places = ShardId::all()
            .map(|shard| places_from(&ring, shard, count))
            .collect();
        Ring { places }
    }

    /// The place of `node` among all nodes as seen from `shard`; 0 comes first.
    pub(super) fn place(&self, shard: ShardId, node: usize) -> usize {
        self.places[shard.index()][node]
    }
}

/// The place of each node by its first point at or after `shard`, around the ring.
fn places_from(ring: &HashRing<Point>, shard: ShardId, nodes: usize) -> Vec<usize> {
    // The ring returns one point more than it is asked for.
    let walk = ring
        .get_with_replicas(&Key(shard), ring.len() - 1)
        .unwrap_or_default();
    let mut places = vec![usize::MAX; nodes];
    let mut next = 0;
    for point in walk {
        if places[point.node] == usize::MAX {
            places[point.node] = next;
            next += 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<NodeId> {
        names
            .iter()
            .map(|name| NodeId::new(name).unwrap())
            .collect()
    }

    #[test]
    fn every_node_has_one_place_for_each_shard() {
        for count in [1, 2, 3, 20] {
            let names: Vec<String> = (0..count).map(|i| format!("n{i}")).collect();
            let nodes = named(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let ring = Ring::new(nodes.iter());
            for shard in ShardId::all() {
                let mut places: Vec<usize> =
                    (0..count).map(|node| ring.place(shard, node)).collect();
                places.sort_unstable();
                assert!(
                    places.into_iter().eq(0..count),
                    "{count} nodes, shard {shard}"
                );
            }
        }
    }

    /// A plan must be the same wherever and whenever it is made.
    #[test]
    fn places_on_the_ring_never_change() {
        let ring = Ring::new(named(&["n1", "n2", "n3", "n4", "n5"]).iter());
        let places = |byte| {
            (0..5)
                .map(|node| ring.place(ShardId(byte), node))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            [places(0x00), places(0x80)],
            [[3, 1, 4, 2, 0], [1, 0, 4, 3, 2]]
        );
    }

    #[test]
    fn a_new_node_leaves_the_order_of_the_others() {
        let few = Ring::new(named(&["n1", "n2", "n3"]).iter());
        let more = Ring::new(named(&["n1", "n2", "n3", "n4"]).iter());
        for shard in ShardId::all() {
            let order = |ring: &Ring| {
                let mut nodes = [0, 1, 2];
                nodes.sort_by_key(|&node| ring.place(shard, node));
                nodes
            };
            assert_eq!(order(&few), order(&more), "shard {shard}");
        }
    }
}
