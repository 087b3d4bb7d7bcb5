//! `simshard cluster move`: which nodes are to hold which shards. The nodes do the rest.

use std::collections::BTreeSet;

use clap::Args;
use simshard_topology::{NodeId, ShardSet};

use super::placing::PlannedArgs;
use super::{admin, node_name, shares};
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
    #[arg(long, conflicts_with_all = ["to", "dry_run", "json"])]
    pub free: bool,
    /// How it is done.
    #[command(flatten)]
    pub planned: PlannedArgs,
}

/// Moves shards to the nodes that are named.
pub(super) async fn run(args: &MoveArgs) -> anyhow::Result<()> {
    let keys = args.planned.metadata.keys()?;
    let admin = admin(&*keys);
    if args.free {
        admin.free_shards(args.shards).await?;
        note(format!("shards {} may be anywhere", args.shards));
        return Ok(());
    }
    let nodes: BTreeSet<NodeId> = args.to.iter().cloned().collect();
    let planned = admin.plan_move(args.shards, &nodes).await?;
    shares::print(&planned.outlook, args.planned.output)?;
    if args.planned.dry_run {
        return Ok(());
    }
    let placing = admin.move_shards(planned).await?;
    args.planned.wait.until(&placing, &*keys).await
}
