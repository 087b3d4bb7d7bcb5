//! Why a node refuses or fails an operation.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{CorpusUid, MetadataError};
use simshard_proto::Reason;
use simshard_simhash::{Layout, LayoutError};
use simshard_storage::{Failure, ReadError, Refusal, Shortage};
use simshard_topology::{MapDigest, NodeId, ShardSet, Version};

/// Why a node refused or failed an operation.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error(
        "this node does not own the shards {0}, though it has the router's map: an address of the layout file leads to \
         another node"
    )]
    NotOwner(ShardSet),
    #[error("this node has other records of the shards {0} than the caller, or is not in sync")]
    WrongEpoch(ShardSet),
    #[error("this node has no tables of the shards {0}, or not yet")]
    Cold(ShardSet),
    #[error(
        "the router's map of shards is {router}, this node's is {node}: they read different layout files, or one \
         that changed in between; restart both with the same file"
    )]
    OtherMap { router: MapDigest, node: MapDigest },
    #[error(
        "this is node {node}, and the request is for {meant:?}: an address of the router's layout file leads to the \
         wrong node"
    )]
    OtherNode {
        /// The node that the router means.
        meant: String,
        node: NodeId,
    },
    #[error("this node does not hold corpus {0}")]
    CorpusNotLoaded(CorpusUid),
    /// The metadata, which would tell of a corpus that the node does not hold, cannot be read.
    #[error("metadata: {0}")]
    Metadata(Arc<MetadataError>),
    /// It does not answer.
    #[error(
        "metadata: the store did not answer within {0:?}: look whether etcd is away, then repeat"
    )]
    MetadataLate(Duration),
    #[error(
        "corpus {uid} has {} blocks and distance {} on this node, and {blocks} and {distance} by the metadata: \
         restore the file of corpora",
        held.blocks(), held.distance()
    )]
    CorpusDiffers {
        uid: CorpusUid,
        /// Its layout on this node.
        held: Layout,
        /// Blocks that the request gives.
        blocks: u32,
        /// Distance that the request gives.
        distance: u32,
    },
    /// Blocks and distance make no corpus.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("the lead groups or the distance are not those of the corpus: its layout differs")]
    OutsideLayout,
    /// Near fingerprints can be in different shards, so no node can find all pairs of its own.
    #[error("the prefixes of the corpus are shorter than a byte: its pairs span shards")]
    PairsSpanShards,
    #[error("{most} joins are in flight on this node: retry once one of them has ended")]
    TooManyJoins { most: usize },
    #[error("the answer is over {limit} bytes: ask fewer queries at once, or set limit or max_ids")]
    AnswerTooLarge {
        /// Most bytes of an answer.
        limit: usize,
    },
    #[error(
        "version {0} is over a minute ahead of this node's clock: set the clocks of the machines right"
    )]
    ClockAhead(Version),
    #[error("{0}: retry later")]
    Refused(#[from] Refusal),
    /// The store cannot be read.
    #[error("{0}")]
    Read(Arc<ReadError>),
    /// The storage has failed for good.
    #[error("{0}")]
    StorageFailed(Failure),
    /// The deadline has passed, or the request was cancelled. In the second case this error is never sent.
    #[error("the node was not done at the deadline: allow more time")]
    Abandoned,
    #[error("the node is shutting down")]
    Stopping,
}

impl From<ReadError> for NodeError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ShardAbsent(id) => Self::NotOwner([id].into_iter().collect()),
            ReadError::Io { .. }
            | ReadError::Foreign { .. }
            | ReadError::Newer { .. }
            | ReadError::OtherStore { .. }
            | ReadError::Corrupt { .. } => Self::Read(Arc::new(error)),
        }
    }
}

impl NodeError {
    /// The only mapping to what clients see.
    pub(crate) const fn reason(&self) -> Reason {
        match self {
            Self::NotOwner(_) | Self::OtherMap { .. } | Self::OtherNode { .. } => Reason::NotOwner,
            Self::WrongEpoch(_) => Reason::WrongEpoch,
            Self::Cold(_) => Reason::Cold,
            Self::CorpusNotLoaded(_) => Reason::CorpusNotLoaded,
            Self::Metadata(_) | Self::MetadataLate(_) => Reason::MetadataFailed,
            Self::CorpusDiffers { .. } => Reason::CorpusDiffers,
            Self::Layout(_) | Self::OutsideLayout | Self::PairsSpanShards => Reason::InvalidRequest,
            Self::TooManyJoins { .. } => Reason::Overloaded,
            Self::AnswerTooLarge { .. } => Reason::AnswerTooLarge,
            Self::ClockAhead(_) => Reason::ClockAhead,
            Self::Refused(Refusal::Shortage(Shortage::Space)) => Reason::DiskFull,
            Self::Refused(
                Refusal::Shortage(Shortage::Files | Shortage::Memory) | Refusal::QueueFull,
            ) => Reason::Overloaded,
            Self::Refused(Refusal::TooLarge) => Reason::InvalidRequest,
            Self::Refused(Refusal::Closed) => Reason::Stopping,
            Self::Read(_) | Self::StorageFailed(_) => Reason::StorageFailed,
            Self::Abandoned => Reason::DeadlineTooShort,
            Self::Stopping => Reason::Stopping,
        }
    }
}
