//! The contents of a store: elements, and the changes that write them.
//!
//! # Invariants
//! - EL1: states are totally ordered. So the same state stays in whatever order they meet: in a memtable, in a
//!   search through segments, after a restart, and in other shards.

use std::sync::Arc;

use simshard_simhash::{Documents, Fingerprint, Layout};
pub use simshard_topology::replication::State;
use simshard_topology::replication::{Epoch, ShardRecord};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use crate::segment::{SegmentId, SegmentMeta};

/// Most bytes of an id.
pub const MAX_ID_BYTES: usize = 1024;

/// A document of a corpus as a shard stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The document's fingerprint.
    pub fingerprint: Fingerprint,
    /// The document's id; empty for a bare fingerprint.
    pub id: &'a str,
    /// The version of the last operation on it.
    pub version: Version,
    /// Whether that operation was an insert; otherwise this is a tombstone.
    pub live: bool,
}

impl From<Element<'_>> for State {
    fn from(element: Element<'_>) -> Self {
        Self {
            version: element.version,
            live: element.live,
        }
    }
}

/// An operation on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A corpus comes into being. A uid that is in use stays what it is. One that was dropped is not taken again as
    /// long as anything on disk may name it.
    CreateCorpus {
        /// Its uid.
        uid: CorpusUid,
        /// Its blocks and distance.
        layout: Layout,
    },
    /// A corpus goes, with all its documents.
    DropCorpus {
        /// Its uid.
        uid: CorpusUid,
    },
    /// Documents change.
    Change(Change),
    /// From here on, these shards have these records. By shard.
    Install(Vec<(ShardId, Arc<ShardRecord>)>),
    /// From here on, a learner has all that the shard had in its source.
    Copied(ShardCopy),
}

/// A copy of a shard, on disk. It is no part of the shard before the log says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardCopy {
    /// The shard.
    pub shard: ShardId,
    /// The epoch that added the learner.
    pub added: Epoch,
    /// The segments that hold it, oldest first; none if there was nothing to copy. Some may have been set aside before.
    pub(crate) segments: Vec<(SegmentId, SegmentMeta)>,
}

impl ShardCopy {
    /// Whether only files of the last format can say it: there are several segments, or one of another store.
    pub(crate) fn is_in_parts(&self) -> bool {
        let is_adopted = |(_, meta): &(SegmentId, SegmentMeta)| meta.origin.is_some();
        self.segments.len() > 1 || self.segments.iter().any(is_adopted)
    }
}

impl Operation {
    /// Whether it needs space that no other operation gives back.
    pub(crate) fn takes_space(&self) -> bool {
        match self {
            Self::CreateCorpus { .. } => true,
            Self::DropCorpus { .. } | Self::Install(_) | Self::Copied(_) => false,
            Self::Change(change) => change.kind == ChangeKind::Insert,
        }
    }
}

/// A change of documents of one corpus, in some shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The corpus.
    pub corpus: CorpusUid,
    /// The version that it gives its documents.
    pub version: Version,
    /// The shards meant: each document changes in those of its shards that are among them.
    pub shards: ShardSet,
    /// The documents.
    pub documents: Documents,
}

impl Change {
    /// The state that it gives to an element.
    pub fn state(&self) -> State {
        State {
            version: self.version,
            live: self.kind == ChangeKind::Insert,
        }
    }
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// They become live.
    Insert,
    /// They become tombstones.
    Remove,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EL1.
    #[test]
    fn states_are_ordered_by_version_then_removes_last() {
        let state = |version, live| State {
            version: Version(version),
            live,
        };
        let ascending = [
            state(0, true),
            State::NEVER,
            state(1, true),
            state(1, false),
            state(2, true),
        ];
        assert!(ascending.is_sorted_by(|a, b| a < b));
    }
}
