//! The cases and corpora of the cluster benchmark.

use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum, ValueHint};

use super::processes::Replicas;
use crate::settings::count;

/// How the corpora cut and search.
pub(super) const BLOCKS: u32 = 5;
pub(super) const DISTANCE: u32 = 3;

/// Documents, unless told otherwise.
pub(super) const MILLION: usize = 1_000_000;

/// Documents of a large corpus, unless told otherwise.
pub(super) const TEN_MILLION: usize = 10 * MILLION;

/// Nodes of a cluster.
pub(super) const NODES: usize = 3;

/// The corpus of bare fingerprints, and that of documents with ids.
pub(super) const BARE: &str = "bare";
pub(super) const WITH_IDS: &str = "with-ids";

/// The arguments of `bench cluster`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Starts three nodes and a router, or for restart one of each, as processes of
their own with data in a temporary folder of --folder, and stops them when all
is measured. Inserts are durable. Corpora have 5 blocks and distance 3, and
fingerprints are random; half the queries have a match at distance 1 to 3.
Each case begins when the nodes have nothing left to do.

A sample of the answers is checked by linear scan, and what was inserted is
counted: where either is wrong, the run ends with exit code 1. Restart reads
what the system still has in memory of the files, and has no replicas. Memory is
RssAnon of Linux.")]
pub struct Settings {
    /// Measure only this case, besides the insert that all need; may be given several times
    #[arg(long = "case", value_name = "CASE", value_enum)]
    pub cases: Vec<Case>,
    /// Documents in the corpus [default: 1000000; of restart, memory, disk, copies, full_copy, cold_to_hot and shards_moved 10000000;
    /// of grown 50000000, of other failures 100000]
    #[arg(long, value_name = "N", value_parser = count())]
    pub n: Option<usize>,
    /// find_all_stream, echo: queries that are searched for
    #[arg(long, value_name = "Q", default_value_t = 2_000_000, value_parser = count())]
    pub queries: usize,
    /// find_all_unary, echo, mixed: requests
    #[arg(long, value_name = "R", default_value_t = 100_000, value_parser = count())]
    pub requests: usize,
    /// find_all_alone, echo, insert_alone: requests
    #[arg(long, value_name = "R", default_value_t = 2_000, value_parser = count())]
    pub alone: usize,
    /// find_all_unary, echo, mixed: requests in flight at once
    #[arg(long, value_name = "R", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024).map(usize::from))]
    pub in_flight: usize,
    /// Streams: documents or queries in a batch
    #[arg(long, value_name = "B", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..=65_536).map(|size| size as usize))]
    pub batch: usize,
    /// Streams at once, each on a connection of its own
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64).map(usize::from))]
    pub streams: usize,
    /// Nodes that hold each shard; they register themselves, in a file [default: one each, by a layout file]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub replicas: Option<u8>,
    /// How many of them answer searches [default: all]
    #[arg(long, value_name = "N", requires = "replicas", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub hot: Option<u8>,
    /// Cases of failing nodes, node_drained and rolling_restart: how often one fails, or is drained or restarted
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count())]
    pub rounds: usize,
    /// etcd_away: for how long [default: 60]
    #[arg(long, value_name = "S")]
    pub seconds: Option<u64>,
    /// Cases of failures: the etcd that keeps the records [default: a file keeps them]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::FilePath)]
    pub etcd: Option<PathBuf>,
    /// Certificates and a token, as deploy/secrets.sh makes them for routers at 127.0.0.1: all connections have TLS then. For
    /// clusters without replicas
    #[arg(long, value_name = "DIR", conflicts_with = "replicas", value_hint = ValueHint::DirPath)]
    pub secrets: Option<PathBuf>,
    /// Seed of the fingerprints and queries
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where the data lies while it is measured, on a disk [default: the current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// Hold all answers, rather than a sample, against a linear scan
    #[arg(long)]
    pub check: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Case {
    /// Bare fingerprints into an empty corpus, by streams
    InsertStreamBare,
    /// All matches of all queries, by streams
    FindAllStream,
    /// All matches of one query a request, many in flight at once
    FindAllUnary,
    /// All matches of one query a request, one after the other
    FindAllAlone,
    /// What the transport alone takes: the three searches, sent to a server that does not search
    Echo,
    /// One document a request, one after the other, beside what the disk takes for a sync
    InsertAlone,
    /// One document or one query a request by turns, many in flight at once
    Mixed,
    /// Documents with ids of 64 bytes into an empty corpus, by streams
    InsertStreamIds,
    /// The start of a node that holds a large corpus alone, after a stop and after a kill, to its first answer
    Restart,
    /// Anonymous resident memory of all nodes with a large corpus, as loaded and after a restart
    Memory,
    /// Anonymous resident memory of one process without data, with documents whose ids have 29 bytes
    ServedMemory,
    /// What the data directories of all nodes take with a large corpus, as loaded and after a restart
    Disk,
    /// A corpus grows: inserts, searches and the restart of all nodes after a kill, at six sizes. Only if it is asked for, as
    /// all below
    Grown,
    /// A node is killed: the longest times without a successful search or insert
    NodeKilled,
    /// The same where a node freezes
    NodeStopped,
    /// The same where all packets to a node are lost. Needs root, as the next one
    NodeIncomingLost,
    /// The same where all packets from a node are lost
    NodeOutgoingLost,
    /// Searches and inserts while etcd is away
    EtcdAway,
    /// A large corpus is copied to a node that lost its data, with tables
    FullCopy,
    /// A node makes the tables of a large corpus that it has, against a restart
    ColdToHot,
    /// How a node with replicas of a large corpus comes back: after a minute with 100,000 inserts, another with as many
    /// removes, and with an empty directory
    Copies,
    /// All replicas of a large corpus are compared, then all its shards: nothing differs
    ReplicasCompared,
    /// The only node of a shard of a large corpus is lost: another one fills it with what the other shards have
    ShardRebuilt,
    /// All shards of a node move to the others and back, node after node: the longest times without a successful search or
    /// insert
    NodeDrained,
    /// Nodes are restarted, one after the other: the same
    RollingRestart,
    /// Half of the shards of a large corpus move to another node, and back under load
    ShardsMoved,
}

impl Case {
    /// Whether it is measured only if it is asked for.
    const fn is_opt_in(self) -> bool {
        match self {
            Self::Grown
            | Self::NodeKilled
            | Self::NodeStopped
            | Self::NodeIncomingLost
            | Self::NodeOutgoingLost
            | Self::EtcdAway
            | Self::FullCopy
            | Self::ColdToHot
            | Self::Copies
            | Self::ReplicasCompared
            | Self::ShardRebuilt
            | Self::NodeDrained
            | Self::RollingRestart
            | Self::ShardsMoved => true,
            Self::InsertStreamBare
            | Self::FindAllStream
            | Self::FindAllUnary
            | Self::FindAllAlone
            | Self::Echo
            | Self::InsertAlone
            | Self::Mixed
            | Self::InsertStreamIds
            | Self::Restart
            | Self::Memory
            | Self::ServedMemory
            | Self::Disk => false,
        }
    }
}

impl Settings {
    pub(super) fn asks_for(&self, case: Case) -> bool {
        self.cases.contains(&case) || self.cases.is_empty() && !case.is_opt_in()
    }

    /// How many nodes hold each shard, if the nodes register themselves.
    pub(super) fn replicas(&self) -> Option<Replicas> {
        let all = self.replicas?;
        let hot = self.hot.unwrap_or(all).min(all);
        Some(Replicas { all, hot })
    }

    /// How many queries go before the streams that are measured.
    pub(super) const fn warm_up(&self) -> usize {
        4 * self.batch * self.streams
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new("."))
    }
}
