//! `simshard cluster`: a cluster whose nodes register themselves in the metadata.

mod access;
mod draining;
mod force;
mod init;
mod listing;
mod moving;
mod nodes;
mod patience;
mod placing;
mod rebalance;
mod rebuilding;
mod replication;
mod scrub;
mod settings;
mod shards;
mod shares;
mod status;
#[cfg(test)]
mod two_nodes;
mod upgrade;

use clap::{Args, Subcommand};
use simshard_admin::{MOST_REPLICAS, Repeats};
use simshard_cluster::MetadataError;
use simshard_topology::NodeId;

pub use access::MetadataArgs;
use access::{admin, say_warning};

use crate::args::JsonArgs;

/// The verbs of `cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Begin a cluster with the nodes that have registered
    #[command(after_help = "\
Start the nodes first, with `simshard serve node --metadata …`, without a layout
file: each registers itself, and waits. This command waits for them, and gives
each a range of shards. Then the nodes load, and routers can be started.

With --cluster, the shards go as that layout file has them, and the records of
the corpora beside it are taken over. So a cluster that was started with a
layout file goes on without one: stop it, start its nodes with their data
directories and with --metadata only, then run this.")]
    Init(init::InitArgs),
    /// Begin a cluster of one node with what a single process served
    #[command(after_help = "\
Stop `simshard serve --data DIR`. Start what it stored as a node, in place, and
run this command: the node serves all documents and corpora. Others can join
then, and take replicas.

Example:
  simshard serve node --name n1 --data DIR/local --metadata etcd://db:2379
  simshard cluster adopt DIR --metadata etcd://db:2379")]
    Adopt(init::AdoptArgs),
    /// Tell whether the cluster is well, as TSV: what an operator looks at first
    #[command(after_help = "\
A line for each part, and whether it is well: the metadata; the nodes; whether
each shard has a hot replica that answers; whether changes succeed; shards that
are short of replicas, or of hot ones; copies under way; shards that are to
move; how evenly the documents are shared; the corpora; and the versions. A
corpus counts as not well if its creation or deletion was cut short, or if its
record is lost. A node that does not answer is named until it is back, or is
removed.

The command only reads. It succeeds as soon as it could look, and fails if the
metadata does not answer.")]
    Status(TableArgs),
    /// List the nodes that have registered, and whether each answers now, as TSV
    #[command(after_help = "\
A node that runs before its cluster has begun does not answer: it `waits`.")]
    Nodes(TableArgs),
    /// List which nodes hold which shards, by the records in the metadata, as TSV
    #[command(after_help = "\
Shards that are held alike share a line: their first bytes, their epochs, the
nodes in sync, those of them that are hot, those that learn, and the nodes that
are to hold the shards, where an operator has chosen some. One of the hot nodes
in sync answers a search. An epoch counts the changes of a record; its first
part counts the times that the shard was forced, or that a cluster began anew,
after its metadata was lost. With --json, all shards of an object have one
epoch. Once a scrub has begun to drop tombstones, a column says up to which
version that is settled.

Examples:
  simshard cluster shards --node n2    # what n2 holds, copies or is to hold
  simshard cluster shards --watch      # look on while shards move")]
    Shards(shards::ShardsArgs),
    /// Let a node go on alone with shards whose other nodes are gone for good
    #[command(after_help = "\
When one of three nodes dies, the others go on by themselves. When two die at
once, changes wait until one of them is back. If they never come back, this
command lets the node that is left go on alone. It is in sync, so nothing that
was acknowledged is lost.

It changes only shards that cannot go on by themselves. It asks all nodes that
hold them, and names those that do not answer. Make sure that these do not run,
also not beyond a cut network: a router that reaches them could get old answers.
Then name them with --stopped. If they start again, they copy everything.

If all that held a shard in sync are gone, --rebuild begins it anew on a node
that never held it, and fills it with what the other shards have of it. It takes
changes meanwhile, and answers searches once it is filled. End the command at
any time: run again, it goes on.

Examples:
  simshard cluster force --from n2 --stopped n1,n3 --metadata etcd://db:2379
  simshard cluster force --rebuild --from n2 --stopped n1")]
    Force(force::ForceArgs),
    /// Compare replicas and shards with each other, and repair what they lack
    #[command(after_help = "\
The replicas of each shard are compared, then each shard with all others: a
document is in several shards, whole. Digests come first, then documents where
these differ. A document counts if it had different states at two readings, a
second apart, and was not changed lately (--settled-seconds). All goes on
meanwhile.

The states of shards:
  agrees        all have the same
  repaired      they differed, and have the same now
  one replica   there is nothing to compare
  differs       they differ
  not compared  a node does not answer, say: the command says why

With --repair, each replica and each shard gets the newest state of these
documents: that of their last insert or removal. Nodes log each of them.

It fails if shards differ, or could not be compared. --only replicas, or
--only shards, leaves the other comparison out.

A removal leaves a tombstone in each replica. With --drop-tombstones, those of
an hour ago and older go, once all replicas and all shards agree up to there.

Examples:
  simshard cluster scrub
  simshard cluster scrub --shards 40-5f --repair
  simshard cluster scrub --repair --drop-tombstones")]
    Scrub(scrub::ScrubArgs),
    /// Move shards to the nodes that are named, while all goes on
    #[command(after_help = "\
Each node that is named comes to the shards as a learner, copies them, and holds
them in sync. Then one that is not named leaves. So a shard never has fewer
replicas than before. The nodes do this by themselves: the command only writes
down where the shards are to be, and waits. End it at any time: the nodes go on.
Another target, or --free, ends a move under way. It prints what each node holds
before and after.

A target stays. If another node takes the shard because one of these dies, the
shard comes back when that node does.

Example:
  simshard cluster move --shards 40-5f --to n2,n4,n5 \\
    --metadata etcd://db:2379")]
    Move(moving::MoveArgs),
    /// Share the documents evenly: draw a plan, look at it, and carry it out
    #[command(
        subcommand,
        after_help = "\
A node that has joined gets shards, and one that is drained gets nothing. The
plan moves as few documents as it can: none if no node has more than 1.1 times
the mean, or less than 0.8 times. Nodes share the documents in proportion to
their capacities (`set-capacity`), and the replicas of a shard go to different
zones where there are enough (`set-zone`).

Examples:
  simshard cluster rebalance plan
  simshard cluster rebalance apply"
    )]
    Rebalance(rebalance::RebalanceCommand),
    /// Empty nodes, so that they can be stopped for good
    #[command(after_help = "\
The other nodes take their shards, each an even share, while all goes on. They
take no others from now on, until `undrain`. The command waits until they hold
nothing. End it at any time: the nodes go on.

Nodes that are dead can be drained too. Others that do not answer keep what they
hold, and get nothing. The command refuses, and says what to do, if
  - fewer nodes would be left than shards have replicas,
  - a node that gets shards has too little room on its disk, or
  - no node that answers holds some of the shards.

Examples:
  simshard cluster drain n2 --dry-run   # print what each node would hold
  simshard cluster drain n2             # then stop it, and remove it")]
    Drain(draining::DrainArgs),
    /// Let a node take shards again that was drained
    #[command(after_help = "\
Nothing moves by that: what the node held stays with the others, until a plan of
`rebalance` gives it its share. If what was set for the node is damaged, it is
forgotten: set its zone, capacity and limits anew.")]
    Undrain(draining::NodeArgs),
    /// Let a node take over all that another one holds
    #[command(after_help = "\
As `drain`, where one node gets all of the shards. The other one is drained: it
takes none until `undrain`.

Example:
  simshard cluster replace n2 --with n5")]
    Replace(draining::ReplaceArgs),
    /// Forget a node that is stopped and holds nothing
    #[command(after_help = "\
It is refused while the node answers, holds shards, or is to hold some: `drain`
moves these to others. Started again, the node registers itself anew, and can
take shards.")]
    Remove(draining::NodeArgs),
    /// Change how many replicas shards have, while all goes on
    #[command(after_help = "\
Nodes come to shards, or leave them, one at a time. The command plans where all
shards are to be, as `rebalance plan` does, and replaces what `move` has set.
All go to nodes that answer. It asks where shards get fewer replicas, and where
a node that does not answer loses its shards; scripts add --yes.

Examples:
  simshard cluster set-replication --replicas 3 --hot 2
  simshard cluster set-replication --replicas 2 --dry-run")]
    SetReplication(replication::ReplicationArgs),
    /// Say what a node shares with nodes that fail together with it, such as a rack
    #[command(
        override_usage = "simshard cluster set-zone [OPTIONS] --metadata <ADDRESS> <NODE> <ZONE|--none>",
        after_help = "\
Plans put the replicas of a shard in different zones, where there are enough.
All nodes without a zone count as one. The command moves nothing by itself.

Example:
  simshard cluster set-zone n1 rack-a"
    )]
    SetZone(settings::ZoneArgs),
    /// Say how much a node can hold, in proportion to the others
    #[command(after_help = "\
A node of capacity 2 gets twice the documents of one of capacity 1, which is
what nodes have by default. The command moves nothing by itself.

Example:
  simshard cluster set-capacity n1 2")]
    SetCapacity(settings::CapacityArgs),
    /// Say how fast a node copies shards, so that searches and inserts do not wait for it
    #[command(after_help = "\
All copies to the node share the rate, and so do all copies from it. Without a
limit, a node copies 20 MB a second while it serves requests, and else as fast
as it can. The limit acts at once, on copies under
way too. What nodes compare in `scrub` does not count.

Examples:
  simshard cluster set-limits n1 --copy-rate 50   # 50 MB a second
  simshard cluster set-limits n1 --none")]
    SetLimits(settings::LimitsArgs),
    /// See which versions run, and let the cluster use what is new in this one
    #[command(
        subcommand,
        after_help = "\
Replace the program of each node, then of each router, one at a time: stop it,
and start it again with the program of the new version, on the same data. Until
`finalize`, each process can go back to the earlier version. What only the new
version knows is refused until then, by name.

Examples:
  simshard cluster upgrade status     # who runs what, and what is missing
  simshard cluster upgrade finalize   # once all run the new version"
    )]
    Upgrade(upgrade::UpgradeCommand),
}

/// Arguments of the verbs that list something.
#[derive(Args, Debug)]
pub struct TableArgs {
    /// How it is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// Print it anew every few seconds, until Ctrl-C: every 2 without a number
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "2",
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub watch: Option<u64>,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

fn node_name(text: &str) -> Result<NodeId, String> {
    NodeId::new(text).map_err(|error| error.to_string())
}

/// How many replicas there are, or how many of them are hot.
fn count_of_replicas(text: &str) -> Result<u8, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=MOST_REPLICAS).contains(number));
    number.ok_or_else(|| format!("it is a whole number from 1 to {MOST_REPLICAS}"))
}

/// Does what the command says.
pub async fn run(command: ClusterCommand) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Init(args) => init::run(&args).await,
        ClusterCommand::Adopt(args) => init::adopt(&args).await,
        ClusterCommand::Status(args) => status::run(&args).await,
        ClusterCommand::Nodes(args) => nodes::run(&args).await,
        ClusterCommand::Shards(args) => shards::run(&args).await,
        ClusterCommand::Force(args) => force::run(&args).await,
        ClusterCommand::Scrub(args) => scrub::run(&args).await,
        ClusterCommand::Move(args) => moving::run(&args).await,
        ClusterCommand::Rebalance(command) => rebalance::run(&command).await,
        ClusterCommand::Drain(args) => draining::drain(&args).await,
        ClusterCommand::Undrain(args) => draining::undrain(&args).await,
        ClusterCommand::Replace(args) => draining::replace(&args).await,
        ClusterCommand::Remove(args) => draining::remove(&args).await,
        ClusterCommand::SetReplication(args) => replication::run(&args).await,
        ClusterCommand::SetZone(args) => settings::set_zone(&args).await,
        ClusterCommand::SetCapacity(args) => settings::set_capacity(&args).await,
        ClusterCommand::SetLimits(args) => settings::set_limits(&args).await,
        ClusterCommand::Upgrade(command) => upgrade::run(&command).await,
    }
}

/// Repeats what others raced.
async fn repeat_if_raced<T>(attempt: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let is_raced = |error: &anyhow::Error| {
        matches!(
            error.downcast_ref::<MetadataError>(),
            Some(MetadataError::Raced)
        )
    };
    let mut repeats = Repeats::default();
    loop {
        match attempt().await {
            Err(error) if is_raced(&error) && repeats.wait().await => {}
            done => return done,
        }
    }
}
