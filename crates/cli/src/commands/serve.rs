//! `simshard serve`: the roles of a cluster.

mod config;
mod embedded;
mod entering;
mod exposure;
mod files;
mod patience;
mod roles;
mod security;
mod side_port;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand, ValueHint};
use simshard_router::Origin;
use simshard_runtime::allocator;
use simshard_runtime::logging::{self, Level, LogFormat};

pub use files::{RawNodeConfig, RawRouterConfig};
pub use security::SecurityArgs;

use crate::args::{ClusterCertificateArgs, EtcdAccessArgs};

/// Arguments of `serve`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without a role, a router and a node run in one process, and the corpus
`default` is made. A cluster is several processes. Its nodes register
themselves in metadata that all processes share: etcd, or a file on a single
machine. `simshard cluster init` begins it, with three replicas of each shard:

  simshard serve node --metadata etcd://e1:2379 --name n1 --listen 127.0.0.1:0
  simshard cluster init --metadata etcd://e1:2379 --nodes 3
  simshard serve router --metadata etcd://e1:2379

Or a layout file lists the nodes and their addresses. Then each shard has one
replica:

  simshard serve node --cluster cluster.toml --name n1
  simshard serve router --cluster cluster.toml

Beyond loopback a router listens only with TLS, and tokens or certificates of
clients. A node does so only with certificates of the cluster. --insecure lets
both listen without them, for trusted networks.

With --data DIR documents and corpora outlive the process. Each role prints
`listening on URL` on standard output when all that is stored is loaded and it
is ready, and stops on SIGTERM or Ctrl-C when the requests in flight have
finished. What it does is logged on standard error: SIMSHARD_LOG=debug says
more."
)]
pub struct ServeArgs {
    /// Which role; both if none is named.
    #[command(subcommand)]
    pub role: Option<RoleCommand>,
    /// Where the router listens; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SIMSHARD_LISTEN",
        default_value = "127.0.0.1:7460"
    )]
    pub listen: SocketAddr,
    /// What its node keeps.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What its router allows.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// What keeps strangers out of its router.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// What the process keeps to.
    #[command(flatten)]
    pub process: ProcessArgs,
}

/// The settings of a router, in both roles that have one.
#[derive(Args, Clone, Debug)]
pub struct LimitArgs {
    /// Corpora beyond which none is created; more are refused as TOO_MANY_CORPORA [default: 1000]
    #[arg(long, value_name = "N", env = "SIMSHARD_MAX_CORPORA")]
    pub max_corpora: Option<u32>,
    /// A web site whose pages may insert, find and remove, in JSON or by gRPC-Web, as https://search.example; repeat it for
    /// more. None unless given
    #[arg(
        long,
        value_name = "ORIGIN",
        env = "SIMSHARD_ALLOW_ORIGIN",
        value_delimiter = ','
    )]
    pub allow_origin: Vec<Origin>,
}

/// The settings of a node, in both roles that have one.
#[derive(Args, Clone, Debug)]
pub struct StoreArgs {
    /// The directory that holds what is stored; without it all is in memory only, and ends with the process
    #[arg(long, value_name = "DIR", env = "SIMSHARD_DATA", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// Changes held in memory before they are written to segments, in MiB [default: 48]
    #[arg(long, value_name = "MIB", env = "SIMSHARD_MEMTABLE_MIB")]
    pub memtable_mib: Option<u32>,
    /// Threads for each class of work: small searches, large ones, and changes [default: one a core]
    #[arg(long, value_name = "N", env = "SIMSHARD_THREADS", value_parser = threads())]
    pub threads: Option<u16>,
}

/// The settings of every serving process.
#[derive(Args, Clone, Copy, Debug)]
pub struct ProcessArgs {
    /// Memory that requests in flight may use together, in MiB; beyond it they are refused as OVERLOADED [default: 512]
    #[arg(long, value_name = "MIB", env = "SIMSHARD_IN_FLIGHT_MIB")]
    pub in_flight_mib: Option<u32>,
    /// How long requests in flight may take after a shutdown began, in seconds [default: 10]
    #[arg(long, value_name = "SECONDS", env = "SIMSHARD_DRAIN_SECONDS")]
    pub drain_seconds: Option<u32>,
    /// The log tells of requests that take this long, in milliseconds; 0 tells of none [default: 1000]
    #[arg(long, value_name = "MS", env = "SIMSHARD_SLOW_REQUEST_MS")]
    pub slow_request_ms: Option<u32>,
    /// Where it answers over HTTP whether it lives and is ready, and its metrics: /livez, /readyz, /metrics. Nowhere unless
    /// given
    #[arg(long, value_name = "ADDRESS", env = "SIMSHARD_HTTP")]
    pub http: Option<SocketAddr>,
    /// Listen beyond loopback without TLS, or without authentication of callers: for trusted networks only
    #[arg(long, env = "SIMSHARD_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,
    /// Form of the log on standard error: human or json
    #[arg(
        long,
        value_name = "FORM",
        env = "SIMSHARD_LOG_FORMAT",
        default_value = "human"
    )]
    pub log_format: LogFormat,
}

/// The roles.
#[derive(Debug, Subcommand)]
pub enum RoleCommand {
    /// Serve the shards of one node
    Node(NodeArgs),
    /// Route requests to the nodes
    Router(RouterRoleArgs),
}

/// Settings that both roles share. Flags beat the environment, which beats the
/// configuration file.
#[derive(Args, Clone, Debug)]
pub struct RoleArgs {
    /// A configuration file, see deploy/ for annotated examples
    #[arg(long, value_name = "FILE", env = "SIMSHARD_CONFIG", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// The layout file that lists the nodes and their addresses; without it nodes register themselves in --metadata
    #[arg(long, value_name = "FILE", env = "SIMSHARD_CLUSTER", value_hint = ValueHint::FilePath)]
    pub cluster: Option<PathBuf>,
    /// Where the processes of a cluster keep what they agree on. It is etcd://HOST:PORT,HOST:PORT/PREFIX, or file:PATH
    /// on a single machine [default: for the corpora, a file beside the layout file]
    #[arg(long, value_name = "ADDRESS", env = "SIMSHARD_METADATA")]
    pub metadata: Option<String>,
    /// What the process keeps to.
    #[command(flatten)]
    pub process: ProcessArgs,
    /// What etcd asks for. It comes late, as its heading holds for all flags behind it.
    #[command(flatten)]
    pub access: EtcdAccessArgs,
    /// What nodes ask for.
    #[command(flatten)]
    pub certificates: ClusterCertificateArgs,
}

/// Arguments of `serve node`.
#[derive(Args, Clone, Debug)]
pub struct NodeArgs {
    /// This node's name, in the layout file if there is one
    #[arg(long, value_name = "NODE", env = "SIMSHARD_NAME")]
    pub name: Option<String>,
    /// Where to listen [default: the node's address in the layout file]
    #[arg(long, value_name = "ADDRESS", env = "SIMSHARD_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Where other processes reach this node, if it registers itself [default: http://, or https:// with certificates, and where it listens]
    #[arg(long, value_name = "URL", env = "SIMSHARD_ADDRESS")]
    pub address: Option<String>,
    /// How often the node publishes how far its log is on disk, if it registers itself, in seconds [default: 10]
    #[arg(long, value_name = "SECONDS", env = "SIMSHARD_PUBLISH_SECONDS")]
    pub publish_seconds: Option<u32>,
    /// How long a shard may lack a replica before this node takes it though it never held it, if it registers itself, in
    /// seconds. For as long, it keeps what it has of a shard that others took over [default: 600]
    #[arg(long, value_name = "SECONDS", env = "SIMSHARD_REPLACE_SECONDS")]
    pub replace_seconds: Option<u32>,
    /// Start a node that registers itself even if its directory is older than what it acknowledged: searches miss what
    /// it lost, and removed documents may come back. Give it once, when nothing better is left
    #[arg(long)]
    pub accept_lost_changes: bool,
    /// What the node keeps.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What the roles share.
    #[command(flatten)]
    pub role: RoleArgs,
}

/// Arguments of `serve router`.
#[derive(Args, Clone, Debug)]
pub struct RouterRoleArgs {
    /// Where to listen [default: 127.0.0.1:7460]
    #[arg(long, value_name = "ADDRESS", env = "SIMSHARD_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// How long a request may take, in seconds; clients can ask for less [default: 30]
    #[arg(long, value_name = "SECONDS", env = "SIMSHARD_TIMEOUT_SECONDS")]
    pub timeout_seconds: Option<u32>,
    /// What the router allows.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// What keeps strangers out.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// What the roles share.
    #[command(flatten)]
    pub role: RoleArgs,
}

/// Runs the role until it is told to stop.
pub fn run(args: &ServeArgs) -> anyhow::Result<()> {
    allocator::give_back_at_rest().context("cannot start a thread")?;
    match &args.role {
        None => {
            logging::init(args.process.log_format, Level::INFO)?;
            embedded::run(config::embedded(args)?, args.process.http)
        }
        Some(RoleCommand::Node(args)) => {
            logging::init(args.role.process.log_format, Level::INFO)?;
            roles::run_node(config::node(args)?)
        }
        Some(RoleCommand::Router(args)) => {
            logging::init(args.role.process.log_format, Level::INFO)?;
            roles::run_router(config::router(args)?)
        }
    }
}

/// Checks the settings of a role as [`run`] does before it binds or opens anything. Tells what they are of.
pub(super) fn check(role: &RoleCommand) -> anyhow::Result<String> {
    Ok(match role {
        RoleCommand::Node(args) => {
            let role = config::node(args)?;
            roles::check_node(&role)?;
            format!("node {}", role.config.node)
        }
        RoleCommand::Router(args) => format!("the router at {}", config::router(args)?.presence),
    })
}

fn threads() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=1024)
}

/// The threads asked for, or one a core.
pub(crate) fn threads_or_cores(threads: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    threads.map_or_else(cores, usize::from)
}

const fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds as u64)
}
