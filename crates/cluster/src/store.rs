//! The contract every metadata backend keeps, and the ways it can fail.
//!
//! The trait is what etcd can promise and a file or memory can imitate. A read gives whole values, a write happens only
//! if what it was decided on still holds, and a watch announces changes.
//!
//! # Invariants
//! Every backend keeps them; the suite in `tests/tests/metadata/corpora.rs` checks them under
//! the same ids.
//! - MS1: `corpora` is sorted by name, and holds at most one record a name and one a uid.
//! - MS2: of concurrent creations of one name exactly one succeeds, whichever
//!   handles of the store they came through.
//! - MS3: a deletion that names another uid than the stored one changes nothing.
//! - MS4: what one call has confirmed, every later read through any handle sees.
//! - MS5: a layout is internally consistent ([`crate::ClusterLayout`] cannot be built
//!   otherwise), and `watch_layout` starts from the current one.
//! - MS6: the revision is 0 in a store that was never written. Each change raises it by one, and nothing else does.
//! - MS7: a name is taken from the beginning of a creation to the end of a deletion. Only what has begun can be
//!   finished, and of several calls that finish a creation exactly one succeeds.
//! - MS8: no creation leaves more corpora than its limit, however many there are at once.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use simshard_runtime::toml_mistake::TomlMistake;
use simshard_topology::replication::StoreId;
use simshard_topology::{CorpusUid, NodeId, ShardId, ShardSet};
use tokio::sync::watch;

use crate::corpora::Corpora;
use crate::corpus::{CorpusName, CorpusRecord, CorpusState};
use crate::key_value::{KeyValueError, KeyValueStore};
use crate::layout::{ClusterLayout, ClusterLayoutError};
use crate::levels::{NEWEST_LEVEL, OLDEST_LEVEL, VERSION};
use crate::{keys, records};

/// Where a cluster keeps what all its processes must agree on: which nodes there
/// are, who owns which shard, and which corpora exist.
#[async_trait]
pub trait MetadataStore: Send + Sync + std::fmt::Debug {
    /// Reads the current layout from the source of truth.
    async fn layout(&self) -> Result<Arc<ClusterLayout>, MetadataError> {
        Ok(Arc::clone(&self.watch_layout().borrow()))
    }

    /// Follows the layout. The value is the newest that this process has heard of,
    /// which may be older than what [`MetadataStore::layout`] reads. The receiver
    /// ends when the store is dropped. Routers follow it with every round of a request.
    /// A layout file is read once. Where nodes register themselves, the layout changes with their records and addresses.
    fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>>;

    /// Whether the records name the data directory of each node. If so, a node that lacks a corpus of the metadata never
    /// held it, and can make it empty. Else its directory may have been lost, and only a creation may make corpora.
    fn names_stores(&self) -> bool {
        self.watch_layout().borrow().records().is_some()
    }

    /// The keys in which nodes register themselves, if they do: operators change the cluster there.
    fn registry(&self) -> Option<Arc<dyn KeyValueStore>> {
        None
    }

    /// Reads all corpora, as they are at one moment.
    async fn corpora(&self) -> Result<Arc<Corpora>, MetadataError>;

    /// Reads the corpora that were deleted while a node was away, as far as that is kept: a node that holds one drops it.
    async fn deleted_corpora(&self) -> Result<BTreeSet<CorpusUid>, MetadataError> {
        Ok(BTreeSet::new())
    }

    /// Reads one corpus, in whatever state; `None` if there is none of that name.
    async fn corpus(&self, name: &CorpusName) -> Result<Option<CorpusRecord>, MetadataError> {
        Ok(self.corpora().await?.get(name).cloned())
    }

    /// Adds a corpus, in the state that its record says, if its name is free, and there are fewer than `max_corpora`,
    /// in one step. Answers its record. If the corpus is being created, with the configuration of `record`, in the
    /// state `Creating` as well, this changes nothing. It answers the record that is there, which survives a power cut.
    ///
    /// # Errors
    /// [`MetadataError::AlreadyExists`] if the name is taken otherwise, [`MetadataError::UidTaken`] if another
    /// corpus has the uid, and [`MetadataError::TooMany`] if there are `max_corpora`. Else an error when the store
    /// cannot be read or written.
    async fn create_corpus(
        &self,
        record: CorpusRecord,
        max_corpora: usize,
    ) -> Result<CorpusRecord, MetadataError>;

    /// Turns a corpus that is being created into a live one, if the name still belongs to this uid, in one step. Unless
    /// the records name stores, call it when every node holds the corpus.
    ///
    /// # Errors
    /// [`MetadataError::NotFound`] if the name is free or belongs to another creation.
    /// [`MetadataError::AlreadyExists`] if the corpus is live already, or being deleted. Else an error when the store
    /// cannot be read or written.
    async fn finish_creation(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError>;

    /// Turns a corpus into one that is being deleted, if the name still belongs to this uid, in one step.
    /// Changes nothing where that has been done.
    ///
    /// # Errors
    /// [`MetadataError::NotFound`] if the name is free or belongs to another
    /// creation, else when the store cannot be read or written.
    async fn begin_deletion(&self, name: &CorpusName, uid: &CorpusUid)
    -> Result<(), MetadataError>;

    /// Removes the record of a corpus that is being deleted, so that its name is free, if it still belongs to this
    /// uid, in one step. Call it when every node has dropped the corpus for good.
    ///
    /// # Errors
    /// [`MetadataError::NotFound`] if the name is free or belongs to another
    /// creation, [`MetadataError::NotDeleting`] if the deletion has not begun, else when the store cannot be read or
    /// written.
    async fn finish_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError>;
}

/// Why a metadata operation failed.
///
/// Messages are complete: they include the underlying reason, so `source()` is empty.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum MetadataError {
    #[error("corpus {name} exists already with uid {uid}: choose another name")]
    AlreadyExists {
        name: CorpusName,
        uid: CorpusUid,
        state: CorpusState,
    },
    #[error("corpus {name} has uid {uid}, give the new corpus a uid of its own")]
    UidTaken { uid: CorpusUid, name: CorpusName },
    #[error("there are {max_corpora} corpora or more, delete one or allow more")]
    TooMany { max_corpora: usize },
    #[error("corpus {name} with uid {uid} does not exist, list the corpora to see what does")]
    NotFound { name: CorpusName, uid: CorpusUid },
    #[error("corpus {name} is not being deleted, begin its deletion first")]
    NotDeleting { name: CorpusName },
    #[error(
        "layout file {} {mistake}; correct this line",
        path.display()
    )]
    MalformedLayout { path: PathBuf, mistake: TomlMistake },
    #[error("layout file {}: {problem}", path.display())]
    UnusableLayout {
        path: PathBuf,
        problem: ClusterLayoutError,
    },
    #[error(
        "corpora file {} {damage}; \
         it is left untouched: restore it from a backup, or move it away and restore each corpus \
         with `simshard corpus recover`",
        path.display()
    )]
    CorruptCorpora { path: PathBuf, damage: TomlMistake },
    #[error(
        "corpora file {} has version {found}, which this program cannot read; upgrade the program, \
         or restore the file from a backup if no later Simshard wrote it",
        path.display()
    )]
    UnknownCorporaVersion { path: PathBuf, found: u32 },
    #[error(
        "cannot read {}: {reason}; check that it is a text file that this user may read",
        path.display()
    )]
    Unreadable { path: PathBuf, reason: io::Error },
    #[error(
        "cannot write {}: {reason}; nothing has changed, check the folder's permissions \
         and free space, then repeat",
        path.display()
    )]
    Unwritable { path: PathBuf, reason: io::Error },
    #[error(
        "the change to {} may not survive a power cut: {reason}; \
         read the corpora again before repeating it",
        path.display()
    )]
    NotDurable { path: PathBuf, reason: io::Error },
    #[error("{0}")]
    KeyValues(KeyValueError),
    #[error(
        "the key {key} of the metadata holds no record that this version knows: {reason}; {}",
        advice(key, reason)
    )]
    BadRecord { key: String, reason: String },
    #[error(
        "node {node} is registered with another store, {store}, which holds shards: start it with the data directory \
         that it had, or give it another name"
    )]
    OtherStore { node: NodeId, store: StoreId },
    /// Try again: other stores hold these shards in sync too, and leave this one out if it does not answer.
    #[error(
        "node {node} is registered with another store, {store}, which holds shards {shards}: start it with the data \
         directory that it had, or wait until the other nodes go on without it"
    )]
    StoreHolds {
        node: NodeId,
        store: StoreId,
        shards: ShardSet,
    },
    #[error("this data directory is that of node {node}: give --name {node}")]
    OtherName { node: NodeId },
    #[error(
        "node {node} lacks corpora or records that it must have held: start it with the data directory that it had; if \
         that is lost, or it never had any, give --lost {node}; searches miss what it alone held"
    )]
    EmptiedStore { node: NodeId },
    #[error(
        "no node that has registered holds shards {shards} in sync: start the nodes that did, with the data directories \
         that they had; if these are lost, name the nodes by --lost, and all searches miss what they held"
    )]
    NotHeld { shards: ShardSet },
    #[error(
        "by the newest records that the registered nodes hold, other data directories hold shards {shards} too: {stores}; \
         these may have newer changes, and have not registered: start their nodes, and give `cluster init` the number of \
         all nodes; if they are lost, name the nodes by --lost, and searches miss what only they held"
    )]
    PartnersAbsent {
        shards: ShardSet,
        /// Their ids.
        stores: String,
    },
    #[error(
        "no node that has registered holds shards {shards} in sync, and none of those that would take them is new: add a \
         node with an empty data directory, and give `cluster init` the number of all nodes"
    )]
    NoneBegins { shards: ShardSet },
    #[error("there is a cluster already: `simshard cluster nodes` lists its nodes")]
    AlreadyInitialized,
    #[error(
        "there is no cluster yet where the metadata is looked for: check that address and its prefix; `simshard cluster init` \
         begins one there; if there was one, its metadata is lost: stop all processes first"
    )]
    NoCluster,
    #[error(
        "the cluster is at level {level}, and this version ({}) knows levels {OLDEST_LEVEL} to {NEWEST_LEVEL}: {install}",
        VERSION
    )]
    UnknownLevel { level: u32, install: String },
    #[error(
        "{what} needs level {needed}, and the cluster is at level {level}: run `simshard cluster upgrade status`, then \
         `simshard cluster upgrade finalize`"
    )]
    LevelTooLow {
        what: String,
        needed: u32,
        level: u32,
    },
    #[error("these do not show that they know level {level}: {processes}")]
    LevelNotKnown { level: u32, processes: String },
    #[error("these nodes have not registered: {missing}; start them with the same --metadata")]
    NotRegistered { missing: String },
    #[error("shard {shard} cannot be there: {reason}")]
    BadTarget { shard: ShardId, reason: String },
    #[error(
        "node {node} holds shards {shards}, or is to hold them: `simshard cluster drain {node}` moves them to others"
    )]
    StillHolds { node: NodeId, shards: ShardSet },
    #[error(
        "the metadata holds corpora that are not those of the layout file: give another prefix or path"
    )]
    OtherCorpora,
    #[error("others changed the same at the same time: run this command again")]
    Raced,
    #[error("the nodes that have registered make no layout: {0}")]
    UnusableRecords(ClusterLayoutError),
    #[error("the process is stopping, read the corpora again before repeating the operation")]
    Stopping,
}

/// What an error of the metadata means to who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataErrorKind {
    /// Nothing is wrong. Something else is to be asked for, or something is to be done first.
    Refusal,
    /// The metadata is not what the operator takes it for: the same fails until the operator mends it.
    Mistake,
    /// A corpus is there already, or is not.
    OfCorpus,
    /// Another process was faster.
    Race,
    /// The same may succeed later.
    Failure,
}

impl MetadataError {
    /// What it means to who asked. The only list of it.
    #[must_use]
    pub const fn kind(&self) -> MetadataErrorKind {
        match self {
            Self::NoCluster
            | Self::BadTarget { .. }
            | Self::StillHolds { .. }
            | Self::NotRegistered { .. }
            | Self::UnknownLevel { .. }
            | Self::LevelTooLow { .. }
            | Self::LevelNotKnown { .. } => MetadataErrorKind::Refusal,
            Self::MalformedLayout { .. }
            | Self::UnusableLayout { .. }
            | Self::CorruptCorpora { .. }
            | Self::UnknownCorporaVersion { .. }
            | Self::Unreadable { .. }
            | Self::BadRecord { .. }
            | Self::OtherStore { .. }
            | Self::StoreHolds { .. }
            | Self::AlreadyInitialized
            | Self::EmptiedStore { .. }
            | Self::NotHeld { .. }
            | Self::NoneBegins { .. }
            | Self::PartnersAbsent { .. }
            | Self::OtherCorpora
            | Self::OtherName { .. }
            | Self::KeyValues(
                KeyValueError::Damaged { .. }
                | KeyValueError::BadAddress { .. }
                | KeyValueError::BadCertificates { .. },
            )
            | Self::UnusableRecords(_) => MetadataErrorKind::Mistake,
            Self::AlreadyExists { .. }
            | Self::UidTaken { .. }
            | Self::TooMany { .. }
            | Self::NotFound { .. }
            | Self::NotDeleting { .. } => MetadataErrorKind::OfCorpus,
            Self::Raced => MetadataErrorKind::Race,
            Self::Unwritable { .. }
            | Self::NotDurable { .. }
            | Self::KeyValues(_)
            | Self::Stopping => MetadataErrorKind::Failure,
        }
    }
}

/// What to do about the key of a record that cannot be understood.
fn advice(key: &str, reason: &str) -> String {
    if reason == records::MISSING {
        let first = if keys::is_store(key) {
            "restart the node with that store, which registers it again"
        } else {
            "put back the text that it had"
        };
        return format!(
            "{first}, and leave all other keys as they are; if others are gone too, the metadata is lost: stop all \
             processes, and see \"If the metadata is lost\" in docs/operating.md"
        );
    }
    let without_text = if keys::is_store(key) {
        "; if that text is lost, delete the key, and restart the node with that store"
    } else if keys::is_corpus(key) {
        "; if that text is lost, delete the key, and run `simshard corpus recover`"
    } else if key == keys::STAGED_PLAN {
        "; or remove the plan by `simshard cluster rebalance abort`"
    } else if key == keys::PAUSED {
        "; or let shards move again by `simshard cluster rebalance resume`"
    } else if keys::shard_of_target(key).is_some() {
        "; or set it anew by `simshard cluster move`"
    } else if key.starts_with(keys::NODES) {
        "; or forget what was set for the node by `simshard cluster undrain`, and set it anew, also that it is drained; if \
         no node has that name, delete the key"
    } else {
        ""
    };
    format!(
        "a newer Simshard may have written it: upgrade, else put back the text that this key had, and leave all others as \
         they are{without_text}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_on_a_key_says_what_makes_it_anew() {
        for (key, reason, expected) in [
            (
                "stores/1",
                records::MISSING,
                "restart the node with that store",
            ),
            ("shards/40", records::MISSING, "put back the text"),
            (
                "stores/1",
                "no JSON",
                "delete the key, and restart the node",
            ),
            (
                "corpora/by-name/a",
                "no JSON",
                "delete the key, and run `simshard corpus recover`",
            ),
        ] {
            let advice = advice(key, reason);
            assert!(advice.contains(expected), "{key}: {advice}");
        }
        // Without the revision, deleted corpora would count as live.
        for key in ["corpora/revision", "shards/40", "cluster"] {
            assert!(!advice(key, "no JSON").contains("delete"), "{key}");
        }
    }
}
