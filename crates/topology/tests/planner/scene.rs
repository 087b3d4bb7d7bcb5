//! What a plan is drawn for, by example and at random.

use std::num::NonZeroU32;

use fastrand::Rng;
use simshard_topology::{Candidate, NodeId, Plan, ShardId, ShardMap, ShardWeights, plan};

/// What a plan is drawn for.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) previous: Option<ShardMap>,
    pub(crate) nodes: Vec<Candidate>,
    pub(crate) weights: ShardWeights,
    pub(crate) replicas: usize,
}

impl Scene {
    /// Nodes that are alike, from scratch.
    pub(crate) fn fresh(nodes: Vec<Candidate>, replicas: usize) -> Self {
        Self {
            previous: None,
            nodes,
            weights: ShardWeights::EQUAL,
            replicas,
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(
            self.previous.as_ref(),
            &self.nodes,
            &self.weights,
            self.replicas,
        )
        .unwrap()
    }

    /// What follows once a plan was carried out, and these are the nodes.
    pub(crate) fn after(&self, map: &ShardMap, nodes: Vec<Candidate>) -> Self {
        Self {
            previous: Some(map.clone()),
            nodes,
            ..self.clone()
        }
    }

    pub(crate) fn weight(&self, shards: impl IntoIterator<Item = ShardId>) -> f64 {
        self.weights.sum(shards) as f64
    }

    /// The weight of a node for its capacity.
    pub(crate) fn level(&self, map: &ShardMap, node: &Candidate) -> f64 {
        self.weight(map.shards_of(&node.id).iter()) / capacity(node)
    }

    pub(crate) fn mean(&self) -> f64 {
        let all = self.weight(ShardId::all()) * self.replicas as f64;
        all / self.nodes.iter().map(capacity).sum::<f64>()
    }
}

/// A replica that a plan adds.
pub(crate) struct Move {
    pub(crate) shard: ShardId,
    /// The node that it replaces, or nothing where the shard gains a replica.
    pub(crate) from: Option<NodeId>,
    pub(crate) to: NodeId,
}

/// What leads from one map to another, by shard. Without a map to come from, every replica is new.
pub(crate) fn moves(from: Option<&ShardMap>, to: &ShardMap) -> Vec<Move> {
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

pub(crate) fn capacity(node: &Candidate) -> f64 {
    f64::from(node.capacity.get())
}

/// Nodes `n1` to `n<count>`, all alike.
pub(crate) fn nodes(count: usize) -> Vec<Candidate> {
    let node = |i| Candidate::new(NodeId::new(&format!("n{i}")).unwrap());
    (1..=count).map(node).collect()
}

/// Weights as of real texts: one leading byte has eight times the mean, and the others differ.
pub(crate) fn text_weights() -> ShardWeights {
    let mut weights = std::array::from_fn(|i| 1000 + (i * i * 31 + i * 17) as u64 % 997 * 4);
    weights[0x20] = weights.iter().sum::<u64>() / 256 * 8;
    ShardWeights::new(weights)
}

/// How heavy shards are, at random: alike, different, as of real texts, or most of them empty.
pub(crate) fn random_weights(rng: &mut Rng) -> ShardWeights {
    let kind = rng.u8(..5);
    let mut weights = std::array::from_fn(|_| match kind {
        0 => 1,
        1 => rng.u64(1..1_000),
        2 => rng.u64(900_000..1_100_000),
        3 => (1_000.0 / (0.02 + rng.f64())) as u64,
        _ if rng.u8(..8) == 0 => rng.u64(..1_000_000),
        _ => 0,
    });
    if kind == 3 {
        weights[rng.usize(..256)] = weights.iter().sum::<u64>() / 256 * rng.u64(5..=10);
    }
    ShardWeights::new(weights)
}

/// Nodes at random, in no order: with the same zone and capacity each time, if of the same kind.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    zones: u64,
    capacities: u64,
}

impl Kind {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        Self {
            zones: [1, 1, 2, 3, 4, 7][rng.usize(..6)],
            capacities: [1, 1, 2, 8][rng.usize(..4)],
        }
    }

    pub(crate) fn node(self, number: u64) -> Candidate {
        let node = Candidate::new(NodeId::new(&format!("n{number:02}")).unwrap());
        let mixed = |salt: u64| (number + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let capacity = u32::try_from(mixed(7) % self.capacities + 1).unwrap();
        let node = node.with_capacity(NonZeroU32::new(capacity).unwrap());
        match (self.zones, mixed(3) % self.zones) {
            (1, _) | (7, 0) => node,
            (_, zone) => node.in_zone(&format!("z{zone}")),
        }
    }
}
