//! The topology of a cluster: shards, nodes, the identity of a corpus, versions, replication, the shard map, and
//! the planner that draws it.
//!
//! Everything here is a pure function of its arguments. The crate reads no clock, no file and no
//! network, so that a plan can be shown, reviewed and tested before anything moves.

mod corpus_uid;
mod ids;
mod planner;
pub mod replication;
mod shard_map;
mod shard_set;
mod version;

pub use corpus_uid::{CorpusUid, ParseCorpusUidError};
pub use ids::{NodeId, NodeIdError, ShardId};
pub use planner::{
    Balance, Candidate, Plan, PlanError, ShardWeights, Unmet, ZoneName, plan, plan_evenly,
};
pub use shard_map::{MapDigest, ShardMap, ShardMapError};
pub use shard_set::{ParseShardsError, ShardRange, ShardSet};
pub use version::{Clock, Version};
