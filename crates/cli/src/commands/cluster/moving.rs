//! `simshard cluster move` and `rebalance`: which nodes are to hold which shards. The nodes do the rest.

use std::collections::BTreeSet;

use clap::Args;
use simshard_cluster::{KeyValueStore, Targets, set_targets};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet};

use super::asked::Cluster;
use super::layout::{Layout, check_answer, nodes_of};
use super::placing::{Placing, Wait};
use super::{MetadataArgs, node_name};
use crate::completion;
use crate::exit::UsageError;
use crate::say::{self, note};

/// Arguments of `cluster move`.
#[derive(Args, Debug)]
pub struct MoveArgs {
    /// The shards, such as 00-1f,80
    #[arg(long, value_name = "SHARDS")]
    pub shards: ShardSet,
    /// The nodes that are to hold them: as many as the shards have replicas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = node_name, add = completion::nodes(), required_unless_present = "free")]
    pub to: Vec<NodeId>,
    /// Let the shards be anywhere: they stay where they are, and a move under way ends
    #[arg(long, conflicts_with = "to")]
    pub free: bool,
    /// Whether to wait.
    #[command(flatten)]
    pub wait: Wait,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster rebalance`.
#[derive(Args, Debug)]
pub struct RebalanceArgs {
    /// Nodes that are to hold nothing in the end, so that they can be stopped for good
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = node_name, add = completion::nodes())]
    pub without: Vec<NodeId>,
    /// Move the shards as planned; without it, the plan is only printed
    #[arg(long)]
    pub yes: bool,
    /// Whether to wait.
    #[command(flatten)]
    pub wait: Wait,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Moves shards to the nodes that are named.
pub(super) async fn run(args: &MoveArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    if args.free {
        set_targets(&*keys, &Targets::new(), args.shards).await?;
        note(format!("shards {} may be anywhere", args.shards));
        return Ok(());
    }
    let nodes: BTreeSet<NodeId> = args.to.iter().cloned().collect();
    let cluster = Cluster::ask(&*keys).await?;
    check_answer(&cluster, &nodes)?;
    let wanted = args.shards.iter().map(|shard| (shard, nodes.clone()));
    apply(&*keys, wanted.collect(), &args.wait).await
}

async fn apply(keys: &dyn KeyValueStore, wanted: Targets, wait: &Wait) -> anyhow::Result<()> {
    set_targets(keys, &wanted, ShardSet::EMPTY).await?;
    Placing::At(wanted).wait(keys, wait).await
}

/// Plans where all shards are to be, and moves them there.
pub(super) async fn rebalance(args: &RebalanceArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let layout = Layout::read(&*keys).await?;
    let nodes = layout.nodes(&args.without)?;
    let after = layout.planned(&nodes, replicas(&layout.records)?)?;
    let before = &layout.map;
    show(before, &after)?;
    let moved = ShardId::all().filter(|shard| nodes_of(&after, *shard) != nodes_of(before, *shard));
    let wanted: Targets = moved
        .map(|shard| (shard, nodes_of(&after, shard)))
        .collect();
    if wanted.is_empty() {
        note("nothing to move");
        return Ok(());
    }
    if !args.yes {
        note("nothing is moved yet: add --yes to move the shards so");
        return Ok(());
    }
    apply(&*keys, wanted, &args.wait).await
}

/// How many replicas each shard is to have.
fn replicas(records: &ShardRecords) -> Result<usize, UsageError> {
    let wants: BTreeSet<u8> = records.values().map(|record| record.want).collect();
    match Vec::from_iter(wants)[..] {
        [want] => Ok(want.into()),
        _ => Err(UsageError(
            "shards are to have different numbers of replicas: move them by `simshard cluster move`, or give all the \
             same number by `simshard cluster set-replication`"
                .to_owned(),
        )),
    }
}

/// Prints how many shards each node holds, before and after.
fn show(before: &ShardMap, after: &ShardMap) -> anyhow::Result<()> {
    let nodes: BTreeSet<&NodeId> = before.nodes().iter().chain(after.nodes()).collect();
    let mut text = "node\tshards before\tshards after\tto copy".to_owned();
    for node in nodes {
        let (old, new) = (before.shards_of(node), after.shards_of(node));
        let gain = new.difference(&old).len();
        text.push_str(&format!("\n{node}\t{}\t{}\t{gain}", old.len(), new.len()));
    }
    say::print(&text)
}
