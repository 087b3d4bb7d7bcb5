//! `simshard cluster move`: which nodes are to hold which shards. The nodes do the rest.

use std::collections::BTreeSet;

use clap::Args;
use simshard_topology::{NodeId, ShardSet};

use super::placing::Wait;
use super::{MetadataArgs, admin, node_name};
use crate::completion;
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
    let admin = admin(&*keys);
    if args.free {
        admin.free_shards(args.shards).await?;
        note(format!("shards {} may be anywhere", args.shards));
        return Ok(());
    }
    let nodes: BTreeSet<NodeId> = args.to.iter().cloned().collect();
    let placing = admin.move_shards(args.shards, &nodes).await?;
    args.wait.until(&placing, &*keys).await
}
