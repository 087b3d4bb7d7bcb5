//! The target of a request: its corpus and shards, as the router knows them.

use std::sync::Arc;

use simshard_cluster::CorpusUid;
use simshard_topology::replication::Epoch;
use simshard_topology::{MapDigest, ShardId};

/// The corpus of a request, and what the request was planned by. The node checks both before it does anything: a router
/// whose metadata is stale or damaged is told so, and misses nothing unnoticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) corpus: CorpusUid,
    /// Number of blocks that the router takes the corpus to have.
    pub(crate) blocks: u32,
    /// Largest distance that the router takes the corpus to have.
    pub(crate) distance: u32,
    pub(crate) planned_by: PlannedBy,
}

/// How the router knew which node has the shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlannedBy {
    /// By its map of shards.
    Map(MapDigest),
    /// By the records of the shards meant, ascending.
    Records(Arc<[(ShardId, Epoch)]>),
}
