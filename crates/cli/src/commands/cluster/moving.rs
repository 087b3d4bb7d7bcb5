//! `simshard cluster move`: which nodes are to hold which shards. The nodes do the rest.

use std::collections::BTreeSet;

use clap::{ArgGroup, Args};
use serde_json::json;
use simshard_topology::{NodeId, ShardSet};

use super::placing::{DRY, PlannedArgs};
use super::{admin, node_name, shares};
use crate::completion;
use crate::exit::UsageError;
use crate::say::{self, note};

/// Arguments of `cluster move`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("where_to").required(true))]
pub struct MoveArgs {
    /// The shards, such as 00-1f,80
    #[arg(long, value_name = "SHARDS")]
    pub shards: ShardSet,
    /// The nodes that are to hold them: as many as the shards have replicas
    #[arg(long, value_name = "NODE,…", value_delimiter = ',', value_parser = node_name, add = completion::nodes(), group = "where_to")]
    pub to: Vec<NodeId>,
    /// Let the shards be anywhere: they stay where they are, and a move under way ends
    #[arg(long, group = "where_to", conflicts_with = "dry_run")]
    pub free: bool,
    /// How it is done.
    #[command(flatten)]
    pub planned: PlannedArgs,
}

/// Moves shards to the nodes that are named.
pub(super) async fn run(args: &MoveArgs) -> anyhow::Result<()> {
    let access = args.planned.metadata.open()?;
    let admin = admin(&access);
    if args.free {
        admin.free_shards(args.shards).await?;
        note(format!("shards {} may be anywhere", args.shards));
        if args.planned.output.json {
            say::print_json(&json!({ "shards": args.shards.to_string(), "freed": true }))?;
        }
        return Ok(());
    }
    let nodes: BTreeSet<NodeId> = args.to.iter().cloned().collect();
    if nodes.len() < args.to.len() {
        let problem = "--to names a node twice: each holds one replica";
        return Err(UsageError(problem.to_owned()).into());
    }
    let planned = admin.plan_move(args.shards, &nodes).await?;
    shares::print(&planned.outlook, args.planned.output)?;
    if args.planned.dry_run {
        note(DRY);
        return Ok(());
    }
    let placing = admin.move_shards(planned).await?;
    args.planned.wait.until(&placing, &access).await
}
