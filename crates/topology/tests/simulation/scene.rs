//! What a seed makes of the world: how many there are of each, and for how long there is trouble.

use fastrand::Rng;
use simshard_topology::ShardId;
use simshard_topology::replication::StoreId;

/// Documents of which the states are followed. Each is in two shards.
pub(crate) const ELEMENTS: usize = 6;

pub(crate) const SHARDS: u8 = 3;

/// In microseconds since the beginning.
pub(crate) type Time = u64;

pub(crate) const MILLISECOND: Time = 1_000;

pub(crate) const SECOND: Time = 1_000_000;

/// When trouble ends.
pub(crate) const CALM: Time = 12 * SECOND;

/// When two more faults come, in some scenes.
pub(crate) const LAST_FAULTS: Time = CALM + 10 * SECOND;

/// When every document is written once more.
pub(crate) const LAST_WRITES: Time = CALM + 20 * SECOND;

/// When all must be well.
pub(crate) const END: Time = LAST_WRITES + 4 * SECOND;

#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) nodes: usize,
    pub(crate) routers: usize,
    pub(crate) replicas: usize,
    /// How many of them are wished hot.
    pub(crate) hot: u8,
    /// Mean time between two faults.
    pub(crate) trouble: Time,
    /// How many of a thousand messages are lost.
    pub(crate) lost: u64,
    /// Whether there are two more faults after trouble has ended: a node ends, and the metadata does not reach another.
    pub(crate) cuts_off: bool,
    /// The node that an operator lets come to no shard, if there is one. The others are enough.
    pub(crate) drained: Option<usize>,
    /// Whether nodes compare the replicas of their shards, and repair them.
    pub(crate) repairs: bool,
    /// Whether nodes raise the floors of their shards, and drop tombstones.
    pub(crate) floors: bool,
}

impl Scene {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let replicas = [1, 2, 2, 2, 3, 3, 3, 3][rng.usize(..8)];
        let nodes = rng.usize(replicas.max(2) + 1..=4.max(replicas + 1));
        let routers = rng.usize(1..=3);
        let hot = rng.u8(1..=replicas as u8);
        let trouble = rng.u64(100..600);
        Self {
            nodes,
            routers,
            replicas,
            hot,
            trouble: trouble * MILLISECOND,
            lost: [0, 0, 5, 20][rng.usize(..4)],
            cuts_off: rng.u64(..4) == 0,
            drained: trouble
                .is_multiple_of(4)
                .then_some(trouble as usize / 4 % nodes),
            repairs: trouble % 3 == 1,
            floors: trouble % 5 < 2,
        }
    }
}

/// The store in a directory of a node: how many the node had before it.
pub(crate) fn store(node: usize, directory: u8) -> StoreId {
    let mut id = [0; 16];
    (id[0], id[1]) = (node as u8, directory);
    StoreId(id)
}

/// The node of a store.
pub(crate) const fn node_of(store: StoreId) -> usize {
    store.0[0] as usize
}

/// All shards.
pub(crate) fn shards() -> impl Iterator<Item = ShardId> {
    (0..SHARDS).map(ShardId)
}

/// The shards of a document.
pub(crate) fn shards_of(element: usize) -> [ShardId; 2] {
    let first = element as u8 % SHARDS;
    [ShardId(first), ShardId((first + 1) % SHARDS)]
}
