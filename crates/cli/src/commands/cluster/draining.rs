//! `simshard cluster drain`, `undrain`, `replace` and `remove`: nodes that leave, and those that come for them.

use clap::Args;
use simshard_admin::Emptying;
use simshard_cluster::KeyValueStore;
use simshard_topology::NodeId;

use super::placing::Wait;
use super::{MetadataArgs, admin, node_name, shares};
use crate::args::JsonArgs;
use crate::completion;
use crate::say::note;

/// Arguments of `cluster drain`.
#[derive(Args, Debug)]
pub struct DrainArgs {
    /// The node that is to hold nothing
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// How it is done.
    #[command(flatten)]
    pub emptying: EmptyingArgs,
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
    pub emptying: EmptyingArgs,
}

/// Arguments of the verbs that empty a node.
#[derive(Args, Debug)]
pub struct EmptyingArgs {
    /// Only print what each node would hold
    #[arg(long)]
    pub dry_run: bool,
    /// How that is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// Whether to wait.
    #[command(flatten)]
    pub wait: Wait,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
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

/// Empties a node.
pub(super) async fn drain(args: &DrainArgs) -> anyhow::Result<()> {
    let keys = args.emptying.metadata.keys()?;
    let planned = admin(&*keys).plan_drain(&args.node).await?;
    empty(&*keys, &args.node, &planned, &args.emptying).await
}

/// Lets a node take the place of another one.
pub(super) async fn replace(args: &ReplaceArgs) -> anyhow::Result<()> {
    let keys = args.emptying.metadata.keys()?;
    let planned = admin(&*keys).plan_replacement(&args.node, &args.by).await?;
    empty(&*keys, &args.node, &planned, &args.emptying).await
}

/// Prints what each node would hold. Then lets a node take no more shards, and moves those that it holds.
async fn empty(
    keys: &dyn KeyValueStore,
    node: &NodeId,
    planned: &Emptying,
    args: &EmptyingArgs,
) -> anyhow::Result<()> {
    shares::print(&planned.outlook, args.output)?;
    if args.dry_run {
        return Ok(());
    }
    let placing = admin(keys).empty(planned).await?;
    args.wait.until(&placing, keys).await?;
    if !args.wait.no_wait {
        note(format!(
            "{node} holds nothing: stop it, and then `simshard cluster remove {node}`"
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
