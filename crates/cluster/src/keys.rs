//! Every key of the metadata in a key-value store.
//!
//! | key | value |
//! |---|---|
//! | `cluster` | that there is a cluster, and its level, as JSON; written last |
//! | `registrations` | how many changes of stores there have been |
//! | `stores/UUID` | a store and where it answers, as JSON |
//! | `processes/UUID` | that a process runs, its version, and the levels that it knows, as JSON; ends with its lease. UUID is that of the store of a node, or of the start of a router |
//! | `process-starts` | how many times processes were shown so |
//! | `waiting/UUID` | that the process of a store runs, and waits for the cluster to begin; ends with its lease |
//! | `published/UUID` | the last start of a store, and how far its log is on disk, as JSON |
//! | `shards/SS` | who holds a shard, as JSON; SS are the two digits of its leading byte |
//! | `targets/SS` | the nodes that are to hold a shard, as JSON, where an operator has chosen some |
//! | `staged-plan` | which shards are to move where by a plan, and how far that is, as JSON |
//! | `paused` | that no shard begins to move, as JSON: since when |
//! | `nodes/NAME` | what an operator has set for a node, as JSON |
//! | `take-over` | that corpora are being copied from a corpora file, into a cluster that has not begun |
//! | `corpora/revision` | how many changes of corpora there have been |
//! | `corpora/by-name/NAME` | the record of a corpus, as JSON |
//! | `deleted-corpora/UID` | the name of a corpus that was deleted: nodes that were away drop it |

use std::fmt::Display;

use simshard_topology::replication::StoreId;
use simshard_topology::{CorpusUid, NodeId, ShardId};

use crate::corpus::CorpusName;

/// The cluster. It is there once all other records of a new cluster are.
pub(crate) const CLUSTER: &str = "cluster";

/// Counts the changes of stores. Each change compares and writes it.
pub(crate) const REGISTRATIONS: &str = "registrations";

/// Before the records of stores.
pub(crate) const STORES: &str = "stores/";

/// Before the records of shards.
pub(crate) const SHARDS: &str = "shards/";

/// The record of a store.
pub(crate) fn store(id: StoreId) -> String {
    format!("{STORES}{id}")
}

/// Before the stores that wait.
pub(crate) const WAITING: &str = "waiting/";

/// That a store waits.
pub(crate) fn waiting(id: StoreId) -> String {
    format!("{WAITING}{id}")
}

/// Before the processes that run.
pub(crate) const PROCESSES: &str = "processes/";

/// That a process runs: by the id of a node's store, or one of a router.
pub(crate) fn process(id: impl Display) -> String {
    format!("{PROCESSES}{id}")
}

/// Counts the times that processes were shown. Each writes it.
pub(crate) const PROCESS_STARTS: &str = "process-starts";

/// Before what stores publish.
pub(crate) const PUBLISHED: &str = "published/";

/// What a store publishes of itself.
pub(crate) fn published(id: StoreId) -> String {
    format!("{PUBLISHED}{id}")
}

/// The record of a shard.
pub(crate) fn shard(id: ShardId) -> String {
    format!("{SHARDS}{id}")
}

/// Before the targets of shards.
pub(crate) const TARGETS: &str = "targets/";

/// The target of a shard.
pub(crate) fn target(id: ShardId) -> String {
    format!("{TARGETS}{id}")
}

/// The shard of which a key is the target.
pub(crate) fn shard_of_target(key: &str) -> Option<ShardId> {
    ShardId::all().find(|shard| target(*shard) == key)
}

/// The plan that an operator has staged.
pub(crate) const STAGED_PLAN: &str = "staged-plan";

/// That no shard begins to move.
pub(crate) const PAUSED: &str = "paused";

/// Before what is set for nodes.
pub(crate) const NODES: &str = "nodes/";

/// What is set for a node.
pub(crate) fn node(id: &NodeId) -> String {
    format!("{NODES}{id}")
}

/// Whether a key holds the record of a store.
pub(crate) fn is_store(key: &str) -> bool {
    key.starts_with(STORES)
}

/// Marks that the keys about corpora are copies, and may be replaced until the cluster begins.
pub(crate) const TAKE_OVER: &str = "take-over";

/// Before all keys about corpora.
pub(crate) const CORPORA: &str = "corpora/";

/// Counts the changes of corpora. Each change compares and writes it.
pub(crate) const CORPORA_REVISION: &str = "corpora/revision";

/// Before the records of corpora.
const CORPUS_BY_NAME: &str = "corpora/by-name/";

/// The record of a corpus.
pub(crate) fn corpus(name: &CorpusName) -> String {
    format!("{CORPUS_BY_NAME}{name}")
}

/// Whether a key holds the record of a corpus.
pub(crate) fn is_corpus(key: &str) -> bool {
    key.starts_with(CORPUS_BY_NAME)
}

/// Before the uids of corpora that were deleted.
pub(crate) const DELETED: &str = "deleted-corpora/";

/// That a corpus was deleted.
pub(crate) fn deleted(uid: CorpusUid) -> String {
    format!("{DELETED}{uid}")
}
