//! A node: the shards it owns of every corpus, and the gRPC edge that routers
//! talk to.
//!
//! Documents are in `simshard_storage`; here are the tables derived from them. `shard` is pure; `engine` adds
//! threads and locks; `grpc` decodes, delegates and converts; `server` binds it to a listener.

mod behind;
mod collector;
mod corpora;
mod engine;
mod error;
mod floors;
mod fresh_start;
mod grpc;
mod installing;
mod membership;
mod metrics;
mod patience;
mod peers;
mod reconcile;
mod registration;
mod server;
mod shard;
mod target;
mod work_watch;

pub use simshard_storage::Options as StorageOptions;

pub use engine::pace::COPY_RATE_BESIDE_REQUESTS;
pub use floors::Goal;
pub use fresh_start::{Obstacle, set_aside};
pub use peers::{
    Asked, MOST_DIFFERENCES, ReplicaState, ScrubDifference, ScrubError, ScrubOptions, ScrubSummary,
    compare_shard, scrub_shard, settle_shards, sum_cells_of,
};
pub use peers::{PAUSE_BETWEEN_STEPS, Takeover};
pub use peers::{StoreAnswer, StoreNews, answers, ask_store, ask_store_to_count, heard_of};
pub use registration::{
    Registration, RegistrationError, check_directory, check_heard, check_runs_nowhere,
};
pub use server::{Node, NodeConfig, ServeError};
pub use simshard_transport::Dialer;
