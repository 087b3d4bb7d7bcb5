//! `simshard cluster`: a cluster whose nodes register themselves in the metadata.

mod asked;
mod draining;
mod force;
mod layout;
mod moving;
mod nodes;
mod placing;
mod replication;
mod settings;
mod shards;
mod shares;
mod status;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use simshard_cluster::{
    FileStore, KeyValueStore, MetadataError, MetadataStore, RegisteredStore, initialize,
    key_values_with, registered_stores, wait_for_stores, waiting_stores,
};
use simshard_topology::{NodeId, ShardMap, plan_evenly};
use tokio::time::sleep;

use crate::args::{EtcdAccessArgs, JsonArgs};
use crate::completion;
use crate::exit::UsageError;
use crate::say::{note, warn};

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
    Init(InitArgs),
    /// Tell whether the cluster is well, as TSV: what an operator looks at first
    #[command(after_help = "\
A line for each part, and whether it is well: the metadata; the nodes that
answer; whether each shard has a hot replica that answers; shards that are short
of replicas, or of hot ones; copies under way; shards that are to move; how
evenly the documents are shared; and the corpora. Those of a creation or deletion that was cut short count as not well.
A node that does not answer counts if it holds shards, or is to hold some.

The command only reads. It succeeds as soon as it could look, and fails if the
metadata does not answer.")]
    Status(TableArgs),
    /// List the nodes that have registered, and whether each answers now, as TSV
    #[command(after_help = "\
A node that runs before its cluster has begun does not answer: it `waits`.")]
    Nodes(TableArgs),
    /// List which nodes hold which shards, by the records in the metadata, as TSV
    #[command(after_help = "\
Neighbouring shards with equal records share a line: their first bytes, the
epoch, the nodes in sync, those of them that are hot, those that learn, and the
nodes that are to hold the shards, where an operator has chosen some. One of the
hot nodes in sync answers a search. An epoch counts the changes of a record;
its first part counts the times that a cluster began anew, after its metadata
was lost.")]
    Shards(TableArgs),
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

Example:
  simshard cluster force --from n2 --stopped n1,n3 --metadata etcd://db:2379")]
    Force(force::ForceArgs),
    /// Move shards to the nodes that are named, while all goes on
    #[command(after_help = "\
Each node that is named comes to the shards as a learner, copies them, and holds
them in sync. Then one that is not named leaves. So a shard never has fewer
replicas than before. The nodes do this by themselves: the command only writes
down where the shards are to be, and waits. End it at any time: the nodes go on.
Another target, or --free, ends a move under way.

A target stays. If another node takes the shard because one of these dies, the
shard comes back when that node does.

Example:
  simshard cluster move --shards 40-5f --to n2,n4 --metadata etcd://db:2379")]
    Move(moving::MoveArgs),
    /// Plan an even share of the documents for each node, and move shards so with --yes
    #[command(after_help = "\
A node that has joined gets shards, and one that is drained gets nothing. The
plan moves as few documents as it can: none if no node has more than 1.1 times
the mean, or less than 0.8 times. Nodes share the documents in proportion to
their capacities (`set-capacity`), and the replicas of a shard go to different
zones where there are enough (`set-zone`).

Examples:
  simshard cluster rebalance         # print the plan
  simshard cluster rebalance --yes   # move the shards so")]
    Rebalance(moving::RebalanceArgs),
    /// Empty a node, so that it can be stopped for good
    #[command(after_help = "\
The other nodes take its shards, each an even share, while all goes on. It takes
no others from now on, until `undrain`. The command waits until it holds
nothing. End it at any time: the nodes go on.

It is refused if fewer nodes would be left than shards have replicas, or if one
that gets shards does not answer or has too little room on its disk. A node that
is dead can be drained too.

Examples:
  simshard cluster drain n2 --dry-run   # print what each node would hold
  simshard cluster drain n2             # then stop it, and remove it")]
    Drain(draining::DrainArgs),
    /// Let a node take shards again that was drained
    Undrain(draining::NodeArgs),
    /// Let a node take over all that another one holds
    #[command(after_help = "\
As `drain`, where one node gets all of the shards.

Example:
  simshard cluster replace n2 --with n5")]
    Replace(draining::ReplaceArgs),
    /// Forget a node that is stopped and holds nothing
    #[command(after_help = "\
It is refused while the node answers, holds shards, or is to hold some. Started
again, the node registers itself anew, and can take shards.")]
    Remove(draining::NodeArgs),
    /// Change how many replicas shards have, while all goes on
    #[command(after_help = "\
Nodes come to shards, or leave them, one at a time. The command plans where all
shards are to be, as `rebalance` does, and replaces what `move` has set.

Example:
  simshard cluster set-replication --replicas 3 --hot 2")]
    SetReplication(replication::ReplicationArgs),
    /// Say what a node shares with nodes that fail together with it, such as a rack
    #[command(after_help = "\
Plans put the replicas of a shard in different zones, where there are enough. All
nodes without a zone count as one. The command moves nothing by itself.

Example:
  simshard cluster set-zone n1 rack-a")]
    SetZone(settings::ZoneArgs),
    /// Say how much a node can hold, in proportion to the others
    #[command(after_help = "\
A node of capacity 2 gets twice the documents of one of capacity 1, which is what
nodes have by default. The command moves nothing by itself.

Example:
  simshard cluster set-capacity n1 2")]
    SetCapacity(settings::CapacityArgs),
}

/// Where the metadata is.
#[derive(Args, Debug)]
pub struct MetadataArgs {
    /// The metadata of the cluster: etcd://HOST:PORT,HOST:PORT/PREFIX, or file:PATH on a single machine
    #[arg(long, value_name = "ADDRESS", env = "SIMSHARD_METADATA")]
    pub metadata: String,
    /// What etcd asks for.
    #[command(flatten)]
    pub access: EtcdAccessArgs,
}

/// Arguments of the verbs that list something.
#[derive(Args, Debug)]
pub struct TableArgs {
    /// How it is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// How many nodes the cluster has
    #[arg(long, value_name = "N", required_unless_present = "cluster", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub nodes: Option<u16>,
    /// How many nodes hold each shard. With several, the cluster goes on when one of them dies, without an operator
    /// [default: 3, or all nodes if they are fewer]
    #[arg(long, value_name = "N", conflicts_with = "cluster", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub replicas: Option<u8>,
    /// How many of them answer searches. Only these take memory for tables. Another takes over when one dies
    /// [default: 2, or all replicas if they are fewer]
    #[arg(long, value_name = "N", conflicts_with = "cluster", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub hot: Option<u8>,
    /// A layout file whose nodes, and their shards, the cluster has
    #[arg(long, value_name = "FILE", conflicts_with = "nodes", value_hint = ValueHint::FilePath)]
    pub cluster: Option<PathBuf>,
    /// A node whose data directory is lost: what it held is not found any more; may be given several times
    #[arg(long, value_name = "NAME", value_parser = node_name, add = completion::nodes())]
    pub lost: Vec<NodeId>,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Replicas of each shard, where there are as many nodes.
const REPLICAS: u8 = 3;

/// How many of them are hot.
const HOT: u8 = 2;

/// How often a beginning that others raced is repeated.
const MOST_REPEATS: u64 = 10;

/// The longest pause before the first repetition. It grows with each one.
const RACE_PAUSE_MILLIS: u64 = 200;

impl InitArgs {
    fn replicas(&self) -> u8 {
        let nodes = self.nodes.unwrap_or(1);
        self.replicas.unwrap_or(nodes.min(REPLICAS.into()) as u8)
    }
}

fn node_name(text: &str) -> Result<NodeId, String> {
    NodeId::new(text).map_err(|error| error.to_string())
}

/// Does what the command says.
pub async fn run(command: ClusterCommand) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Init(args) => init(&args).await,
        ClusterCommand::Status(args) => status::run(&args).await,
        ClusterCommand::Nodes(args) => nodes::run(&args).await,
        ClusterCommand::Shards(args) => shards::run(&args).await,
        ClusterCommand::Force(args) => force::run(&args).await,
        ClusterCommand::Move(args) => moving::run(&args).await,
        ClusterCommand::Rebalance(args) => moving::rebalance(&args).await,
        ClusterCommand::Drain(args) => draining::drain(&args).await,
        ClusterCommand::Undrain(args) => draining::undrain(&args).await,
        ClusterCommand::Replace(args) => draining::replace(&args).await,
        ClusterCommand::Remove(args) => draining::remove(&args).await,
        ClusterCommand::SetReplication(args) => replication::run(&args).await,
        ClusterCommand::SetZone(args) => settings::set_zone(&args).await,
        ClusterCommand::SetCapacity(args) => settings::set_capacity(&args).await,
    }
}

impl MetadataArgs {
    fn keys(&self) -> Result<Arc<dyn KeyValueStore>, UsageError> {
        let keys = key_values_with(&self.metadata, &self.access.load()?);
        keys.map_err(|error| UsageError(error.to_string()))
    }
}

/// Begins a cluster; again if others changed the nodes or began one at the same time.
async fn init(args: &InitArgs) -> anyhow::Result<()> {
    repeat_if_raced(async || begin(args).await).await
}

/// Repeats what others raced, after pauses of chance: so that two do not race each other for ever.
async fn repeat_if_raced<T>(attempt: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let is_raced = |error: &anyhow::Error| {
        matches!(
            error.downcast_ref::<MetadataError>(),
            Some(MetadataError::Raced)
        )
    };
    let mut repeats = 0;
    loop {
        match attempt().await {
            Err(error) if is_raced(&error) && repeats < MOST_REPEATS => {
                repeats += 1;
                let pause = fastrand::u64(..repeats * RACE_PAUSE_MILLIS);
                sleep(Duration::from_millis(pause)).await;
            }
            done => return done,
        }
    }
}

async fn begin(args: &InitArgs) -> anyhow::Result<()> {
    let replicas = args.replicas();
    let hot = args.hot.unwrap_or(HOT.min(replicas));
    if hot > replicas {
        let problem = format!("--hot {hot} is more than --replicas {replicas}");
        return Err(UsageError(problem).into());
    }
    let keys = args.metadata.keys()?;
    if let Some(fault) = keys.known_fault().await {
        warn(format!("warning: {fault}"));
    }
    let (map, corpora) = match &args.cluster {
        Some(file) => {
            let files = FileStore::open(file).await?;
            let layout = files.layout().await?;
            wait_for_nodes(&keys, |nodes| names_missing(layout.map(), nodes)).await?;
            let idle = idle_nodes(&*keys).await?;
            warn_of_idle(layout.map().nodes(), &idle);
            (layout.map().clone(), files.corpora().await?)
        }
        None => {
            let count = args.nodes.map_or(1, usize::from);
            let nodes = wait_for_nodes(&keys, |nodes| count_missing(count, nodes)).await?;
            let idle = idle_nodes(&*keys).await?;
            let nodes = exactly(count, nodes, &idle)?;
            warn_of_idle(&nodes, &idle);
            (plan_evenly(None, &nodes, replicas.into())?, Arc::default())
        }
    };
    initialize(&*keys, &map, hot, &corpora, &args.lost).await?;
    note(format!("the cluster has begun: {}", shares(&map)));
    Ok(())
}

/// Waits until nothing is missing of the nodes that have registered. Says what is, whenever that changes.
async fn wait_for_nodes(
    keys: &Arc<dyn KeyValueStore>,
    missing: impl Fn(&BTreeSet<NodeId>) -> Option<String>,
) -> Result<Vec<NodeId>, MetadataError> {
    let mut told = None;
    let enough = |stores: &[RegisteredStore]| {
        let now = missing(&nodes_of(stores));
        if let Some(missing) = now.as_ref().filter(|_| now != told) {
            note(format!("waiting for nodes: {missing}"));
        }
        told.clone_from(&now);
        now.is_none()
    };
    let on_turn = |turn: Result<(), &MetadataError>| match turn {
        Err(error) => warn(format!("warning: {error}")),
        Ok(()) => note("the metadata is there again"),
    };
    let stores = wait_for_stores(keys, enough, on_turn).await?;
    Ok(nodes_of(&stores).into_iter().collect())
}

fn nodes_of(stores: &[RegisteredStore]) -> BTreeSet<NodeId> {
    stores.iter().map(|store| store.node.clone()).collect()
}

fn names_missing(map: &ShardMap, nodes: &BTreeSet<NodeId>) -> Option<String> {
    let missing = map.nodes().iter().filter(|node| !nodes.contains(node));
    let missing = listed(missing);
    (!missing.is_empty()).then(|| format!("{missing} not registered yet"))
}

fn count_missing(count: usize, nodes: &BTreeSet<NodeId>) -> Option<String> {
    let found = nodes.len();
    let names = listed(nodes);
    let names = if nodes.is_empty() {
        names
    } else {
        format!(": {names}")
    };
    (found < count).then(|| format!("{found} of {count} have registered{names}"))
}

fn listed<'a>(nodes: impl IntoIterator<Item = &'a NodeId>) -> String {
    let names: Vec<&str> = nodes.into_iter().map(NodeId::as_str).collect();
    names.join(", ")
}

/// The registered nodes whose processes do not wait for their cluster.
async fn idle_nodes(keys: &dyn KeyValueStore) -> Result<BTreeSet<NodeId>, MetadataError> {
    let stores = registered_stores(keys).await?;
    let waiting = waiting_stores(keys).await?;
    let idle = stores.iter().filter(|store| !waiting.contains(&store.id));
    Ok(idle.map(|store| store.node.clone()).collect())
}

/// Warns of nodes of the new cluster that do not run.
fn warn_of_idle(nodes: &[NodeId], idle: &BTreeSet<NodeId>) {
    let idle: Vec<&NodeId> = nodes.iter().filter(|node| idle.contains(node)).collect();
    if !idle.is_empty() {
        let names = listed(idle);
        warn(format!(
            "warning: these nodes have registered, and do not run now: {names}; their shards lack a replica until they do"
        ));
    }
}

/// Refuses more nodes than were asked for. Says which of them do not run.
fn exactly(
    count: usize,
    nodes: Vec<NodeId>,
    idle: &BTreeSet<NodeId>,
) -> Result<Vec<NodeId>, UsageError> {
    if nodes.len() == count {
        return Ok(nodes);
    }
    let (found, names) = (nodes.len(), listed(&nodes));
    Err(UsageError(if idle.is_empty() {
        format!(
            "registered nodes: {names}; all of them run: give --nodes {found}, or another prefix"
        )
    } else {
        let idle = listed(idle);
        format!(
            "registered nodes: {names}; these do not run: {idle}; start them and give --nodes {found}, or start all \
             others with another prefix"
        )
    }))
}

fn shares(map: &ShardMap) -> String {
    let shares = map
        .nodes()
        .iter()
        .map(|node| format!("{node} has {}", map.shards_of(node)));
    shares.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_raced_is_repeated_and_nothing_else() {
        let tries = Cell::new(0);
        let attempt = async |error: Option<MetadataError>| {
            tries.set(tries.get() + 1);
            match error {
                Some(error) if tries.get() < 4 => Err(error.into()),
                Some(_) | None => Ok(()),
            }
        };
        repeat_if_raced(async || attempt(Some(MetadataError::Raced)).await)
            .await
            .unwrap();
        assert_eq!(tries.get(), 4);
        tries.set(0);
        let other = repeat_if_raced(async || attempt(Some(MetadataError::NoCluster)).await);
        assert!(other.await.is_err());
        assert_eq!(tries.get(), 1);
    }

    #[test]
    fn nodes_are_named_while_some_are_missing_and_where_there_are_too_many() {
        let nodes = ["n1", "n2", "typo"].map(node);
        let two = BTreeSet::from(["n1", "n2"].map(node));
        assert_eq!(
            count_missing(3, &two).unwrap(),
            "2 of 3 have registered: n1, n2"
        );
        assert_eq!(
            count_missing(3, &BTreeSet::new()).unwrap(),
            "0 of 3 have registered"
        );
        let idle = BTreeSet::from([node("typo")]);
        let told = exactly(2, nodes.to_vec(), &idle).unwrap_err().to_string();
        assert!(told.contains("these do not run: typo;"), "{told}");
        exactly(3, nodes.to_vec(), &idle).unwrap();
    }
}
