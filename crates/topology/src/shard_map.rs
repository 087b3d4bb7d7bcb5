//! The shard map: for each of the 256 shards, the nodes that hold it.
//!
//! The map is explicit, never computed on the fly, so that every reader of one version agrees. Few shards differ in
//! their replicas (whole ranges share them). So the distinct lists are kept once, and each shard has one byte that says
//! which of them is its own.
//!
//! # Invariants
//! - M1: every shard has at least one replica (`shards_without_replicas_are_refused`).
//! - M2: the replicas of a shard are distinct nodes (`a_node_listed_twice_is_refused`).
//! - M3: equal assignments are equal maps: lists are numbered by first use
//!   (`equal_assignments_are_equal_maps`).
//! - M4: maps have equal digests if every shard has the same replicas in both, and only then, as far
//!   as 64 bits can tell (`the_digest_tells_assignments_apart`).

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::ids::{NodeId, ShardId};
use crate::shard_set::ShardSet;

/// A version of the assignment of shards to nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    version: u64,
    /// Every node that holds a shard, in name order.
    nodes: Vec<NodeId>,
    /// The distinct replica lists, by first use.
    lists: Vec<Box<[NodeId]>>,
    /// The same lists, by the places of their nodes in `nodes`.
    places: Vec<Box<[usize]>>,
    /// Which of `lists` each shard has: at most 256 shards, so at most 256 lists.
    list_of: [u8; ShardId::COUNT],
    digest: MapDigest,
}

/// The digest of an assignment: a hash of the names of every shard's replicas, in order.
///
/// Processes compare it to learn whether they work with the same map. It leaves out the version, which
/// each process counts for itself, and the addresses of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapDigest(pub u64);

/// 16 hexadecimal digits.
impl fmt::Display for MapDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Why an assignment is not a shard map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum ShardMapError {
    #[error("shard map has {found} entries, give one for each of the 256 shards")]
    EntryCount { found: usize },
    #[error("shard {shard} has no replica, give it at least one node")]
    NoReplica { shard: ShardId },
    #[error("shard {shard} lists node {node} twice, name distinct nodes")]
    RepeatedNode { shard: ShardId, node: NodeId },
}

impl ShardMap {
    /// A map from `entries`: for each shard in order, its replicas, the preferred owner first.
    pub fn new(version: u64, entries: &[Vec<NodeId>]) -> Result<ShardMap, ShardMapError> {
        if entries.len() != ShardId::COUNT {
            return Err(ShardMapError::EntryCount {
                found: entries.len(),
            });
        }
        let mut nodes = BTreeSet::new();
        let mut lists: Vec<Box<[NodeId]>> = Vec::new();
        let mut number_of: HashMap<&[NodeId], u8> = HashMap::new();
        let mut list_of = [0; ShardId::COUNT];
        for (shard, replicas) in ShardId::all().zip(entries) {
            check_replicas(shard, replicas)?;
            list_of[shard.index()] = *number_of.entry(replicas).or_insert_with(|| {
                nodes.extend(replicas.iter().cloned());
                lists.push(replicas.as_slice().into());
                (lists.len() - 1) as u8
            });
        }
        let nodes = Vec::from_iter(nodes);
        let place = |node: &NodeId| nodes.partition_point(|before| before < node);
        let places = lists.iter().map(|list| list.iter().map(place).collect());
        Ok(ShardMap {
            version,
            places: places.collect(),
            nodes,
            digest: digest(entries),
            lists,
            list_of,
        })
    }

    /// The version of this map; a later assignment has a higher one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The nodes that hold `shard`, the preferred owner first; never empty.
    pub fn replicas(&self, shard: ShardId) -> &[NodeId] {
        &self.lists[usize::from(self.list_of[shard.index()])]
    }

    /// The preferred owner of `shard`: its first replica.
    pub fn owner(&self, shard: ShardId) -> &NodeId {
        &self.replicas(shard)[0]
    }

    /// The places of these nodes in [`Self::nodes`].
    pub fn replica_places(&self, shard: ShardId) -> &[usize] {
        &self.places[usize::from(self.list_of[shard.index()])]
    }

    /// Whether a shard has more than one replica.
    pub fn is_replicated(&self) -> bool {
        self.lists.iter().any(|list| list.len() > 1)
    }

    /// The shards of which `node` holds a replica.
    pub fn shards_of(&self, node: &NodeId) -> ShardSet {
        ShardId::all()
            .filter(|&shard| self.replicas(shard).contains(node))
            .collect()
    }

    /// The shards of which `node` is the preferred owner.
    pub fn owned_by(&self, node: &NodeId) -> ShardSet {
        ShardId::all()
            .filter(|&shard| self.owner(shard) == node)
            .collect()
    }

    /// Every node that holds a shard, in name order.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The digest of the assignment.
    pub const fn digest(&self) -> MapDigest {
        self.digest
    }
}

/// XXH3-64 over the replicas of each shard in order. A length in 8 bytes precedes each list and each name.
fn digest(entries: &[Vec<NodeId>]) -> MapDigest {
    let mut hash = Xxh3::new();
    let length = |hash: &mut Xxh3, length: usize| hash.update(&(length as u64).to_le_bytes());
    for replicas in entries {
        length(&mut hash, replicas.len());
        for node in replicas {
            length(&mut hash, node.as_str().len());
            hash.update(node.as_str().as_bytes());
        }
    }
    MapDigest(hash.digest())
}

fn check_replicas(shard: ShardId, replicas: &[NodeId]) -> Result<(), ShardMapError> {
    if replicas.is_empty() {
        return Err(ShardMapError::NoReplica { shard });
    }
    for (i, node) in replicas.iter().enumerate() {
        if replicas[..i].contains(node) {
            return Err(ShardMapError::RepeatedNode {
                shard,
                node: node.clone(),
            });
        }
    }
    Ok(())
}

/// One line per run of shards with the same replicas: `00-55 n1 n2`.
impl fmt::Display for ShardMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "version {}", self.version)?;
        let mut first = ShardId(0);
        for shard in ShardId::all() {
            let next = shard.after();
            if next.is_some_and(|next| self.replicas(next) == self.replicas(shard)) {
                continue;
            }
            let range: ShardSet = (first.0..=shard.0).map(ShardId).collect();
            write!(f, "{range}")?;
            for node in self.replicas(shard) {
                write!(f, " {node}")?;
            }
            writeln!(f)?;
            first = next.unwrap_or(shard);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    /// Two nodes, the lower half owned by `a` and the upper by `b`, `c` a replica of all.
    fn halves() -> Vec<Vec<NodeId>> {
        let owner = |shard: ShardId| if shard.0 < 128 { "a" } else { "b" };
        ShardId::all()
            .map(|shard| vec![node(owner(shard)), node("c")])
            .collect()
    }

    #[test]
    fn a_map_answers_for_shards_and_for_nodes() {
        let map = ShardMap::new(7, &halves()).unwrap();
        assert_eq!(map.version(), 7);
        assert_eq!(map.replicas(ShardId(127)), [node("a"), node("c")]);
        assert_eq!(map.owner(ShardId(128)), &node("b"));
        for shard in ShardId::all() {
            let places = map.replica_places(shard).iter();
            let nodes: Vec<_> = places.map(|&place| map.nodes()[place].clone()).collect();
            assert_eq!(nodes, map.replicas(shard));
        }
        assert_eq!(map.nodes(), [node("a"), node("b"), node("c")]);
        assert_eq!(map.shards_of(&node("a")).to_string(), "00-7f");
        assert_eq!(map.shards_of(&node("c")).to_string(), "00-ff");
        assert_eq!(map.owned_by(&node("c")), ShardSet::EMPTY);
        assert_eq!(map.shards_of(&node("stranger")), ShardSet::EMPTY);
    }

    #[test]
    fn a_map_is_shown_as_runs_of_shards() {
        let map = ShardMap::new(7, &halves()).unwrap();
        assert_eq!(map.to_string(), "version 7\n00-7f a c\n80-ff b c\n");
    }

    /// M4.
    #[test]
    fn the_digest_tells_assignments_apart() {
        let digest = |entries: &[Vec<NodeId>]| ShardMap::new(7, entries).unwrap().digest();
        let map = digest(&halves());
        assert_eq!(map, ShardMap::new(8, &halves()).unwrap().digest());
        assert_eq!(map.to_string().len(), 16);
        let mut moved = halves();
        moved[127][0] = node("b");
        assert_ne!(digest(&moved), map);
        let mut reversed = halves();
        reversed[3].reverse();
        assert_ne!(digest(&reversed), map);
        let mut shifted = halves();
        shifted[0] = vec![node("ac")];
        let mut other = halves();
        other[0] = vec![node("a"), node("c")];
        assert_ne!(digest(&shifted), digest(&other));
    }

    /// M3.
    #[test]
    fn equal_assignments_are_equal_maps() {
        assert_eq!(ShardMap::new(7, &halves()), ShardMap::new(7, &halves()));
        let every_list_distinct: Vec<Vec<NodeId>> = ShardId::all()
            .map(|shard| vec![node(&format!("n{shard}"))])
            .collect();
        let map = ShardMap::new(1, &every_list_distinct).unwrap();
        for shard in ShardId::all() {
            assert_eq!(map.replicas(shard), every_list_distinct[shard.index()]);
        }
    }

    /// M1.
    #[test]
    fn shards_without_replicas_are_refused() {
        let mut entries = halves();
        entries[0x80].clear();
        let error = ShardMap::new(1, &entries).unwrap_err();
        assert_eq!(
            error.to_string(),
            "shard 80 has no replica, give it at least one node"
        );
    }

    /// M2.
    #[test]
    fn a_node_listed_twice_is_refused() {
        let mut entries = halves();
        entries[1] = vec![node("c"), node("a"), node("c")];
        let error = ShardMap::new(1, &entries).unwrap_err();
        assert_eq!(
            error.to_string(),
            "shard 01 lists node c twice, name distinct nodes"
        );
    }

    #[test]
    fn a_map_has_an_entry_for_each_shard() {
        let error = ShardMap::new(1, &halves()[1..]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "shard map has 255 entries, give one for each of the 256 shards"
        );
    }
}
