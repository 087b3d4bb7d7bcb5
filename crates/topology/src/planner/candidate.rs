//! What a plan is drawn for: the nodes that may hold shards, and how heavy each shard is.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::ids::{NodeId, ShardId};

/// A node that may hold shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub id: NodeId,
    /// What it shares with nodes that fail together with it, such as a rack. All nodes without a
    /// zone count as one zone.
    pub zone: Option<Arc<str>>,
    /// Its share of the weight, in proportion to the shares of the other nodes.
    pub capacity: NonZeroU32,
}

impl Candidate {
    /// A node without a zone, of capacity 1.
    pub fn new(id: NodeId) -> Self {
        Self {
            id,
            zone: None,
            capacity: NonZeroU32::MIN,
        }
    }

    /// The node in a zone.
    #[must_use]
    pub fn in_zone(self, zone: &str) -> Self {
        Self {
            zone: Some(zone.into()),
            ..self
        }
    }

    /// The node with another capacity.
    #[must_use]
    pub fn with_capacity(self, capacity: NonZeroU32) -> Self {
        Self { capacity, ..self }
    }
}

/// How heavy each shard is, in documents or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardWeights([u64; ShardId::COUNT]);

impl ShardWeights {
    /// All shards weigh the same.
    pub const EQUAL: Self = Self([1; ShardId::COUNT]);

    /// The heaviest that a shard is taken for. The sum of 256 such weights has 53 bits, so that it
    /// is exact as a float, too.
    const HEAVIEST: u64 = 1 << 44;

    /// The weights of all shards in order. An empty shard counts as 1, so that empty shards are
    /// spread as well, and one above 2⁴⁴ as that.
    pub fn new(weights: [u64; ShardId::COUNT]) -> Self {
        Self(weights.map(|weight| weight.clamp(1, Self::HEAVIEST)))
    }

    /// The weight of one shard.
    pub fn of(&self, shard: ShardId) -> u64 {
        self.0[shard.index()]
    }

    /// The weight of some shards together.
    pub fn sum(&self, shards: impl IntoIterator<Item = ShardId>) -> u64 {
        shards.into_iter().map(|shard| self.of(shard)).sum()
    }
}
