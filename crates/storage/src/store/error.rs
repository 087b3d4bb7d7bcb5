//! Why a store cannot be opened.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use simshard_topology::ShardSet;

use crate::error::{ReadError, WriteError};
use crate::log::LogError;

/// Why a store cannot be opened. Nothing that was acknowledged was touched.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the directory.
    #[error("{} is in use by another process{}: stop it, or give another directory", path.display(), process(holder))]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The known details of the process.
        holder: String,
    },
    /// The store failed when it was last used.
    #[error(
        "the store failed when it was last used, as {} says: {reason}; check the disk, run simshard storage verify {}, \
         and delete that file if all is well", path.display(), directory.display()
    )]
    Failed {
        /// The file that says so.
        path: PathBuf,
        /// The directory.
        directory: PathBuf,
        /// Its reason.
        reason: String,
    },
    /// A folder or file cannot be made or listed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is no data directory.
    #[error("{} is no data directory: it has no manifest", path.display())]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is not new, and not ours.
    #[error(
        "{} holds no store, and is not empty: it has {name}; give a new directory, or that of the store", path.display()
    )]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// Something in it.
        name: String,
    },
    /// There are files of a store, and no manifest.
    #[error(
        "{} has files of a store, and no manifest: put the file manifest back, or restore the data directory from a \
         replica or a backup", path.display()
    )]
    NoManifest {
        /// The directory.
        path: PathBuf,
    },
    /// The directory was used for other shards than it should serve now.
    #[error(
        "{} holds documents of the shards {held}, and the layout gives this node {owned}: others may have changed \
         meanwhile what it holds, or hold what it lacks; give the node the shards it had", path.display()
    )]
    OtherShards {
        /// The directory.
        path: PathBuf,
        /// The shards that it has.
        held: ShardSet,
        /// The shards that it is to serve.
        owned: ShardSet,
    },
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(ReadError),
    /// A segment that the manifest names cannot be read.
    #[error(transparent)]
    Segment(#[from] ReadError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The log cannot be read. The message names file and offset, and what to do.
    #[error(transparent)]
    Log(Box<dyn Error + Send + Sync>),
    /// A store has one writer.
    #[error("the store has a writer already")]
    HasWriter,
    /// The system has no threads left.
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
