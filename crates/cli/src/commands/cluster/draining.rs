//! `simshard cluster drain`, `undrain`, `replace` and `remove`: nodes that leave, and those that come for them.

use std::collections::BTreeSet;

use clap::Args;
use simshard_admin::Emptying;
use simshard_cluster::KeyValueStore;
use simshard_topology::NodeId;

use super::placing::PlannedArgs;
use super::{MetadataArgs, admin, node_name, shares};
use crate::completion;
use crate::say::note;

/// Arguments of `cluster drain`.
#[derive(Args, Debug)]
pub struct DrainArgs {
    /// The nodes that are to hold nothing
    #[arg(value_name = "NODE", required = true, value_parser = node_name, add = completion::nodes())]
    pub nodes: Vec<NodeId>,
    /// How it is done.
    #[command(flatten)]
    pub planned: PlannedArgs,
}

/// Arguments of `cluster replace`.
#[derive(Args, Debug)]
pub struct ReplaceArgs {
    /// The node that is to hold nothing
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// The node that is to hold what it holds now
    #[arg(long = "with", value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub by: NodeId,
    /// How it is done.
    #[command(flatten)]
    pub planned: PlannedArgs,
}

/// Arguments of `cluster undrain` and `remove`.
#[derive(Args, Debug)]
pub struct NodeArgs {
    /// The node
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Empties nodes.
pub(super) async fn drain(args: &DrainArgs) -> anyhow::Result<()> {
    let keys = args.planned.metadata.keys()?;
    let nodes: BTreeSet<NodeId> = args.nodes.iter().cloned().collect();
    let planned = admin(&*keys).plan_drain(&nodes).await?;
    empty(&*keys, &nodes, &planned, &args.planned).await
}

/// Lets a node take the place of another one.
pub(super) async fn replace(args: &ReplaceArgs) -> anyhow::Result<()> {
    let keys = args.planned.metadata.keys()?;
    let planned = admin(&*keys).plan_replacement(&args.node, &args.by).await?;
    let nodes = BTreeSet::from([args.node.clone()]);
    empty(&*keys, &nodes, &planned, &args.planned).await
}

/// Prints what each node would hold. Then lets nodes take no more shards, and moves those that they hold.
async fn empty(
    keys: &dyn KeyValueStore,
    nodes: &BTreeSet<NodeId>,
    planned: &Emptying,
    args: &PlannedArgs,
) -> anyhow::Result<()> {
    shares::print(&planned.outlook, args.output)?;
    if planned.is_empty() {
        note("nothing is to move");
    }
    if args.dry_run {
        return Ok(());
    }
    let placing = admin(keys).empty(planned).await?;
    if !planned.is_empty() {
        args.wait.until(&placing, keys).await?;
        if args.wait.no_wait {
            return Ok(());
        }
    }
    for node in nodes {
        note(format!(
            "{node} holds nothing, and takes nothing: stop it, and then `simshard cluster remove {node}`"
        ));
    }
    Ok(())
}

/// Lets a node take shards again.
pub(super) async fn undrain(args: &NodeArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    admin(&*keys).undrain(&args.node).await?;
    note("it may take shards again: `simshard cluster rebalance plan` gives it its share");
    Ok(())
}

/// Forgets a node that is stopped and holds nothing.
pub(super) async fn remove(args: &NodeArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let node = &args.node;
    admin(&*keys).remove(node).await?;
    note(format!("{node} is not known any more"));
    Ok(())
}
