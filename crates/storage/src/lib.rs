//! The durable truth of a node: for each shard, a set of elements (corpus, fingerprint, id, version,
//! live or tombstone).
//!
//! ```text
//! change -> log (one file, group commit) -> memtable of each shard -> sorted segments, compacted
//! ```
//!
//! The log holds every acknowledged change, on disk. Memtables take the changes that the log has committed.
//! Full memtables become segments, which never change, and the store deletes the log before them. The node
//! derives its permuted tables, in memory, from the store. `FORMAT.md` describes the bytes.

mod bytes;
mod delta;
mod directory;
mod disk_space;
mod element;
mod error;
mod files;
mod gate;
mod inspect;
mod log;
mod manifest;
mod memtable;
mod merge;
mod on_its_way;
mod seal;
mod segment;
mod shard;
mod shard_record;
mod shortage;
mod sorted;
mod store;
mod stored;
#[cfg(test)]
mod tests;
mod thread;
mod writer;

/// The last version of the bytes that this program reads (`FORMAT.md`).
const FORMAT_VERSION: u32 = 4;

/// The version from which on records of shards can have floors.
const FLOOR_FORMAT: u32 = 4;

/// The version from which on manifests can set segments aside, and copies have any number of segments.
const ASIDE_FORMAT: u32 = 3;

/// The version from which on logs and manifests can have records of shards, and segments of other stores.
const REPLICA_FORMAT: u32 = 2;

/// The version of segments, and of what says nothing of replicas: then earlier programs read it too.
const FIRST_FORMAT: u32 = 1;

pub use delta::{CellSums, CompareError, Compared, CopyRange, Digest, ReplicaComparison};
pub use disk_space::Room;
pub use element::{Change, ChangeKind, Element, MAX_ID_BYTES, Operation, ShardCopy, State};
pub use error::ReadError;
pub use gate::Barred;
pub use inspect::{Inspection, SegmentFile, inspect};
pub use log::{AbruptEnd, Torn};
pub use manifest::is_data_directory;
pub use on_its_way::DiskWork;
pub use shard::Effects;
pub use shard_record::{decode_record, encode_record};
pub use shortage::Shortage;
pub use simshard_simhash::Documents;
pub use store::{
    Claim, CopyBase, CopyError, CopyWriter, Corpus, FailureNote, Holding, Installation, Merges,
    OpenError, Options, PageStart, Pinned, Snapshot, Store,
};
pub use stored::SharedChange;
pub use thread::AbortOnPanic;
pub use writer::{Awaited, Failure, InstallFailure, Refusal, Sink, Writer};
