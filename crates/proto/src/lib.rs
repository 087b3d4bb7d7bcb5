//! The gRPC interfaces of Simshard: generated stubs, and the conversions
//! between messages and domain types that more than one crate needs.

mod bits;
mod documents;
pub mod endpoint;
mod limits;
mod matches;
mod pairs;
mod reason;
mod search;
mod shards;
mod status;
mod work;

pub use bits::{bits_from, bits_into};
pub use documents::{Violations, check_batch, check_ids, documents_of_columns};
pub use limits::{MAX_BATCH, MAX_ID_BYTES, MAX_MESSAGE_BYTES, MAX_SHARD_REQUEST_BYTES};
pub use matches::{
    MalformedColumns, MatchColumns, QueryMatch, check_columns, matches_from_bytes, matches_into,
    matches_into_bytes, rows_of,
};
pub use pairs::{Group, GroupPair, pair_messages, pairs_into};
pub use reason::{DOMAIN, Reason};
pub use search::{SearchSpec, at_most, limit_from};
pub use shards::{epochs_from, epochs_into, shard_into, shards_from, shards_into};
pub use simshard_simhash::Documents;
pub use status::{status_from_bytes, status_into_bytes};

/// The public interface, `simshard.v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::needless_pass_by_value
)]
pub mod v1 {
    tonic::include_proto!("simshard.v1");
}

/// The interface of operators.
pub mod admin {
    /// `simshard.admin.v1`.
    #[allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::needless_pass_by_value
    )]
    pub mod v1 {
        tonic::include_proto!("simshard.admin.v1");
    }
}

/// The interface between routers and nodes.
pub mod shard {
    /// `simshard.shard.v1`.
    #[allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::needless_pass_by_value
    )]
    pub mod v1 {
        tonic::include_proto!("simshard.shard.v1");
    }
}

/// The encoded `google.protobuf.FileDescriptorSet` of `simshard.v1`.
pub const CORPUS_SERVICE_DESCRIPTORS: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/corpus_service.bin"));

/// The same of all that a router serves: `simshard.v1` and `simshard.admin.v1`.
pub const ROUTER_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/router.bin"));

/// The encoded `google.protobuf.FileDescriptorSet` of `simshard.shard.v1`.
pub const SHARD_SERVICE_DESCRIPTORS: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/shard_service.bin"));
