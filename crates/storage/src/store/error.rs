//! Why a store cannot be opened.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use simshard_topology::replication::InstallError;
use simshard_topology::{ShardId, ShardSet};

use crate::error::{REMEDY, ReadError, WriteError};
use crate::log::LogError;

/// Why a store cannot be opened. Nothing that was acknowledged was touched.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum OpenError {
    #[error("{} is in use by another process{}: stop it, or give another directory", path.display(), process(holder))]
    Locked { path: PathBuf, holder: String },
    #[error(
        "the store failed when it was last used, as {} says: {reason}; check the disk, run simshard storage verify {}, \
         and delete that file if all is well", path.display(), directory.display()
    )]
    Failed {
        /// The file that says so.
        path: PathBuf,
        directory: PathBuf,
        reason: String,
    },
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is no data directory: it has no manifest", path.display())]
    NoStore { path: PathBuf },
    #[error(
        "{} holds no store, and is not empty: it has {name}; give a new directory, or that of the store", path.display()
    )]
    Occupied { path: PathBuf, name: String },
    #[error(
        "{} has files of a store, and no manifest: put the file manifest back, or, {REMEDY}",
        path.display(), REMEDY = REMEDY
    )]
    NoManifest { path: PathBuf },
    #[error(
        "{} holds documents of the shards {held}, and the layout gives this node {owned}: others may have changed \
         meanwhile what it holds, or hold what it lacks; give the node the shards it had", path.display()
    )]
    OtherShards {
        path: PathBuf,
        held: ShardSet,
        owned: ShardSet,
    },
    #[error(
        "{} is of a node that registers itself in the metadata: start it with the --metadata that it had, and without \
         a layout file", path.display()
    )]
    NoRecords { path: PathBuf },
    #[error(
        "{} does not open with the record of shard {shard} that the metadata has: {problem}", path.display()
    )]
    OtherRecords {
        path: PathBuf,
        shard: ShardId,
        problem: InstallError,
    },
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(ReadError),
    /// The file of the last starts cannot be read.
    #[error(transparent)]
    Incarnations(ReadError),
    /// A segment that the manifest names cannot be read.
    #[error(transparent)]
    Segment(#[from] ReadError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The log cannot be read. The message names file and offset, and what to do.
    #[error(transparent)]
    Log(Box<dyn Error + Send + Sync>),
    #[error("the store has a writer already")]
    HasWriter,
    #[error("cannot start a thread for the storage: {0}")]
    Threads(io::Error),
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        Self::Log(Box::new(error))
    }
}

fn process(holder: &str) -> String {
    if holder.is_empty() {
        String::new()
    } else {
        format!(" ({holder})")
    }
}
