//! What processes send to each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{
    Epoch, Outcome, Pin, PublishedStore, ShardRecord, ShardRecords, State, StoreId,
};

use crate::disk::Contents;
use crate::repairs::{Compared, Comparison, Repair};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Metadata,
    Node(usize),
    Router(usize),
}

/// The nodes that are to hold a shard, where an operator has chosen some.
pub(crate) type Targets = BTreeMap<ShardId, BTreeSet<usize>>;

/// Why the metadata is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Follow,
    Start,
    Steps,
    /// To prove a read.
    Proof(usize),
}

/// A write of a document, as a router sends it.
#[derive(Clone, Debug)]
pub(crate) struct WriteRequest {
    pub(crate) operation: usize,
    pub(crate) element: usize,
    pub(crate) state: State,
    pub(crate) shards: Vec<(ShardId, Epoch)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Write(WriteRequest),
    /// Shards that refused are missing.
    Written {
        operation: usize,
        store: StoreId,
        state: State,
        outcomes: Vec<(ShardId, Epoch, Outcome)>,
    },
    /// The version is too far ahead.
    WriteFailed {
        operation: usize,
    },
    Query {
        read: usize,
        shard: ShardId,
        epoch: Epoch,
    },
    /// `None` is a refusal.
    Answer {
        read: usize,
        store: StoreId,
        epoch: Epoch,
        contents: Option<Contents>,
    },
    Confirm {
        read: usize,
        store: StoreId,
        shard: ShardId,
    },
    Confirmed {
        read: usize,
        store: StoreId,
        installed: Epoch,
    },
    Ping,
    Pong {
        store: StoreId,
        incarnation: u64,
        /// The stores that it has heard lately.
        hears: BTreeSet<StoreId>,
        lacks_room: bool,
        reports: Vec<(ShardId, Epoch)>,
    },
    /// Records that a store reports earlier ones of.
    Tell {
        store: StoreId,
        records: ShardRecords,
    },
    ReadMetadata(Purpose),
    Metadata {
        purpose: Purpose,
        records: ShardRecords,
        published: BTreeMap<StoreId, PublishedStore>,
        targets: Targets,
    },
    /// Replaces a record, unless it changed.
    Commit {
        shard: ShardId,
        replaces: Arc<ShardRecord>,
        record: Arc<ShardRecord>,
    },
    /// Replaces what the metadata says of a store, unless it changed.
    Publish {
        store: StoreId,
        replaces: Option<PublishedStore>,
        published: PublishedStore,
    },
    CopyShard {
        shard: ShardId,
        added: Epoch,
        copy: u64,
    },
    /// What does the store have of a shard, by the record of this epoch?
    Compare(Comparison),
    Compared(Compared),
    Repair(Repair),
    Repaired(StoreId, Repair),
    /// A part of a copy: the elements from a place on. The last part is empty.
    Part {
        shard: ShardId,
        copy: u64,
        pin: Pin,
        from: usize,
        states: Vec<State>,
    },
}
