//! The target of a request: its corpus and shards, as the router knows them.

use simshard_cluster::CorpusUid;
use simshard_topology::MapDigest;

/// The corpus of a request and the map of shards that it was planned with. The node checks both before it does
/// anything: a router whose metadata is stale or damaged is told so, and misses nothing unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) corpus: CorpusUid,
    /// Number of blocks that the router takes the corpus to have.
    pub(crate) blocks: u32,
    /// Largest distance that the router takes the corpus to have.
    pub(crate) distance: u32,
    /// The router's map.
    pub(crate) map: MapDigest,
}
