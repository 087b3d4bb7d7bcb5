//! What of a cluster is measured, and with what corpora.

use std::path::{Path, PathBuf};

/// How the corpora cut and search.
pub(super) const BLOCKS: u32 = 5;
pub(super) const DISTANCE: u32 = 3;

/// Documents, unless told otherwise; a large corpus has ten times as many.
pub(super) const MILLION: usize = 1_000_000;

/// Nodes of a cluster.
pub(super) const NODES: usize = 3;

/// The corpus of bare fingerprints, and that of documents with ids.
pub(super) const BARE: &str = "bare";
pub(super) const WITH_IDS: &str = "with-ids";

/// What to measure, and with what.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cases, besides the insert that all need; empty means all.
    pub cases: Vec<Case>,
    /// Documents in the corpus; `None` leaves the number to the case.
    pub n: Option<usize>,
    /// Queries that are searched for by streams.
    pub queries: usize,
    /// Requests of one document or query each, many in flight at once.
    pub requests: usize,
    /// Requests one after the other.
    pub alone: usize,
    /// Requests in flight at once.
    pub in_flight: usize,
    /// Documents or queries in a batch of a stream.
    pub batch: usize,
    /// Streams at once, each on a connection of its own.
    pub streams: usize,
    /// Seed of the fingerprints and queries.
    pub seed: u64,
    /// Where the data lies while it is measured, on a disk; `None` is the current folder.
    pub folder: Option<PathBuf>,
    /// Whether all answers, rather than a sample, are held against a linear scan.
    pub check: bool,
    /// Whether figures are JSON lines, instead of a table.
    pub json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Bare fingerprints into an empty corpus, by streams.
    InsertStreamBare,
    /// All matches of all queries, by streams.
    FindAllStream,
    /// All matches of one query a request, many in flight at once.
    FindAllUnary,
    /// All matches of one query a request, one after the other.
    FindAllAlone,
    /// One document a request, one after the other, beside what the disk takes for a sync.
    InsertAlone,
    /// One document or one query a request by turns, many in flight at once.
    Mixed,
    /// Documents with ids of 64 bytes into an empty corpus, by streams.
    InsertStreamIds,
    /// The start of a node that holds a large corpus alone, after a stop and after a kill, to its first answer.
    Restart,
    /// Anonymous resident memory of all nodes with a large corpus, as loaded and after a restart.
    Memory,
    /// What the data directories of all nodes take with a large corpus, as loaded and after a restart.
    Disk,
}

impl Settings {
    pub(super) fn asks_for(&self, case: Case) -> bool {
        self.cases.is_empty() || self.cases.contains(&case)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new("."))
    }
}
