//! `simshard cluster drain`, `undrain`, `replace` and `remove`: nodes that leave, and those that come for them.

use anyhow::bail;
use clap::Args;
use simshard_cluster::{
    KeyValueStore, NodeSettings, change_node_settings, check_holds_nothing, unregister,
};
use simshard_topology::{NodeId, ShardMap};

use super::asked::Cluster;
use super::layout::Layout;
use super::moving::{apply, replicas};
use super::placing::Wait;
use super::{MetadataArgs, node_name, repeat_if_raced, shares};
use crate::args::JsonArgs;
use crate::completion;
use crate::exit::UsageError;
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
    let layout = Layout::read(&*keys).await?;
    let nodes = layout.nodes(Some(&args.node))?;
    let plan = layout.planned(&nodes, replicas(&layout.records)?)?;
    shares::print(&layout, &plan, args.emptying.output)?;
    empty(&*keys, &layout, &args.node, &plan.map, &args.emptying).await
}

/// Lets a node take the place of another one.
pub(super) async fn replace(args: &ReplaceArgs) -> anyhow::Result<()> {
    let (node, by) = (&args.node, &args.by);
    if node == by {
        return Err(UsageError(format!("{node} cannot replace itself: name another node")).into());
    }
    let keys = args.emptying.metadata.keys()?;
    let layout = Layout::read(&*keys).await?;
    let after = layout.replaced(node, by)?;
    shares::print_map(&layout, &after, args.emptying.output)?;
    empty(&*keys, &layout, node, &after, &args.emptying).await
}

/// Lets a node take no more shards, and moves those that it holds as a map has them.
async fn empty(
    keys: &dyn KeyValueStore,
    layout: &Layout,
    node: &NodeId,
    after: &ShardMap,
    args: &EmptyingArgs,
) -> anyhow::Result<()> {
    if args.dry_run {
        return Ok(());
    }
    set_drained(keys, node, true).await?;
    apply(keys, layout.targets(after), &args.wait).await?;
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
    set_drained(&*keys, &args.node, false).await?;
    note("it may take shards again: `simshard cluster rebalance plan` gives it its share");
    Ok(())
}

async fn set_drained(
    keys: &dyn KeyValueStore,
    node: &NodeId,
    is_drained: bool,
) -> anyhow::Result<()> {
    let change = |settings: &mut NodeSettings| settings.is_drained = is_drained;
    Ok(change_node_settings(keys, node, change).await?)
}

/// Forgets a node that is stopped and holds nothing.
pub(super) async fn remove(args: &NodeArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let node = &args.node;
    let cluster = Cluster::ask(&*keys).await?;
    let store = cluster.of_node(node)?.id;
    // It is to be stopped only once it holds nothing.
    check_holds_nothing(&*keys, node).await?;
    if cluster.answers(store) {
        bail!("{node} still runs: stop it, and run this command again");
    }
    repeat_if_raced(async || Ok(unregister(&*keys, node).await?)).await?;
    note(format!("{node} is not known any more"));
    Ok(())
}
