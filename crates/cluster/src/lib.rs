//! Cluster metadata: the layout of nodes and shards, and the corpora.
//!
//! All processes of a cluster agree through one [`MetadataStore`]. [`MemoryStore`]
//! serves a single process; [`FileStore`] serves processes on one machine, from a
//! layout file that the operator writes. [`KeyValueMetadata`] serves processes
//! that share a [`KeyValueStore`]: etcd, or a file on one machine. Nodes register
//! themselves there ([`register`]), and the records of shards change step by step
//! ([`take_steps`]). What the stores share is the contract in `store.rs`, and one
//! test suite that runs against each of them.

mod corpora;
mod corpus;
#[cfg(test)]
mod disturbed;
mod durable_file;
mod file;
mod followed_each;
mod followed_layout;
mod holders;
mod key_value;
mod key_value_metadata;
mod keys;
mod layout;
mod levels;
mod membership;
mod memory;
mod metrics;
mod node_settings;
mod paused;
mod processes;
mod published;
mod raw_corpus;
mod records;
mod registered;
mod replacement;
mod shared_reading;
mod staged_plan;
mod steps;
mod store;
mod targets;
mod upgrade;
mod waiting;

pub use corpora::Corpora;
pub use corpus::{CorpusName, CorpusRecord, CorpusState, InvalidCorpusName, random_corpus_uid};
pub use file::FileStore;
pub use followed_layout::{OnTurn, wait_for_stores};
pub use key_value::{
    Changes, EtcdAccess, EtcdKeyValues, EtcdTls, EtcdUser, FileKeyValues, KeyValue, KeyValueError,
    KeyValueStore, LeaseId, MAX_OPERATIONS, MemoryKeyValues, Outcome, Revision, Snapshot,
    Transaction, follow, key_values_at, key_values_with,
};
pub use key_value_metadata::{KeyValueMetadata, deleted_corpora, recorded_corpora, without_record};
pub use layout::{ClusterLayout, ClusterLayoutError, Node};
pub use levels::{Feature, require};
pub use membership::{
    check_registered, has_cluster, has_records_without_cluster, initialize, random_nonce, register,
    register_start, shard_records,
};
pub use memory::MemoryStore;
pub use metrics::MetadataAway;
pub use node_settings::{
    NodeSettings, SettingsOfNodes, change_node_settings, change_node_settings_since,
    check_node_settings, follow_node_settings, forget_bad_settings, node_settings,
};
pub use paused::{Paused, follow_paused, paused, set_paused};
pub use processes::{RunningProcess, ShownProcess, show_node, show_router};
pub use published::{Published, publish, published, published_in, published_key};
pub use records::{RegisteredStore, is_store_id};
pub use registered::{check_holds_nothing, check_name, clashes, registered_stores, unregister};
pub use replacement::end_replacement;
pub use shared_reading::{METADATA_PATIENCE, ReadingError, SharedReading};
pub use simshard_topology::CorpusUid;
pub use staged_plan::{
    PlanState, PlannedMove, StagedPlan, carry_on, follow_staged_plan, remove_bad_plan, remove_plan,
    stage_plan, staged_plan, unreached,
};
pub use steps::{Changed, Forced, Steps, force, rebuild, take_steps, wish};
pub use store::{MetadataError, MetadataErrorKind, MetadataStore};
pub use targets::{
    Targets, check_targets, follow_targets, is_placed, set_targets, targets, targets_of,
};
pub use upgrade::Upgrade;
pub use waiting::{Waiting, show_waiting, waiting_stores};
