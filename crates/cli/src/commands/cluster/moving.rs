//! `simshard cluster move`: which nodes are to hold which shards. The nodes do the rest.

use std::collections::BTreeSet;

use clap::Args;
use simshard_cluster::{KeyValueStore, Targets, set_targets};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{NodeId, ShardSet};

use super::layout::{Layout, nodes_of};
use super::placing::{Placing, Wait};
use super::{MetadataArgs, node_name};
use crate::completion;
use crate::exit::UsageError;
use crate::say::note;

/// Arguments of `cluster move`.
#[derive(Args, Debug)]
pub struct MoveArgs {
    /// The shards, such as 00-1f,80
    #[arg(long, value_name = "SHARDS")]
    pub shards: ShardSet,
    /// The nodes that are to hold them: as many as the shards have replicas
    #[arg(long, value_name = "NODE,…", value_delimiter = ',', value_parser = node_name, add = completion::nodes(), required_unless_present = "free")]
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

/// Moves shards to the nodes that are named.
pub(super) async fn run(args: &MoveArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    if args.free {
        set_targets(&*keys, &Targets::new(), args.shards).await?;
        note(format!("shards {} may be anywhere", args.shards));
        return Ok(());
    }
    let nodes: BTreeSet<NodeId> = args.to.iter().cloned().collect();
    let after = Layout::read(&*keys).await?.moved(args.shards, &nodes)?;
    // Those that are there already stay.
    let wanted = args.shards.iter();
    let wanted = wanted.map(|shard| (shard, nodes_of(&after, shard)));
    apply(&*keys, wanted.collect(), &args.wait).await
}

/// Sets targets, and waits until they are reached.
pub(super) async fn apply(
    keys: &dyn KeyValueStore,
    wanted: Targets,
    wait: &Wait,
) -> anyhow::Result<()> {
    set_targets(keys, &wanted, ShardSet::EMPTY).await?;
    let placing = Placing {
        targets: wanted,
        wished: None,
    };
    placing.wait(keys, wait).await
}

/// How many replicas each shard is to have.
pub(super) fn replicas(records: &ShardRecords) -> Result<usize, UsageError> {
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
