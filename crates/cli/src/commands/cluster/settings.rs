//! `simshard cluster set-zone` and `set-capacity`: what a plan is to know of nodes. `set-limits`: how fast they copy.

use std::num::NonZeroU32;

use clap::Args;
use simshard_cluster::{NodeSettings, change_node_settings};
use simshard_topology::NodeId;

use super::{MetadataArgs, node_name};
use crate::completion;
use crate::say::note;

/// Arguments of `cluster set-zone`.
#[derive(Args, Debug)]
pub struct ZoneArgs {
    /// The node
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// What fails together, such as a rack: lower case letters, digits and hyphens
    #[arg(value_name = "ZONE", value_parser = node_name, required_unless_present = "none")]
    pub zone: Option<NodeId>,
    /// Put the node in no zone
    #[arg(long, conflicts_with = "zone")]
    pub none: bool,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster set-capacity`.
#[derive(Args, Debug)]
pub struct CapacityArgs {
    /// The node
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// Its share of the documents, in proportion to the shares of other nodes, such as its memory in GB
    #[arg(value_name = "N")]
    pub capacity: NonZeroU32,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster set-limits`.
#[derive(Args, Debug)]
pub struct LimitsArgs {
    /// The node
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// How many megabytes of shards it may receive in a second, and how many it may send
    #[arg(long, value_name = "MB", required_unless_present = "none")]
    pub copy_rate: Option<NonZeroU32>,
    /// Set no limit: the node gives way to requests
    #[arg(long, conflicts_with = "copy_rate")]
    pub none: bool,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Puts a node in a zone, or in none.
pub(super) async fn set_zone(args: &ZoneArgs) -> anyhow::Result<()> {
    let zone = args.zone.as_ref().map(NodeId::to_string);
    let change = |settings: &mut NodeSettings| settings.zone.clone_from(&zone);
    plan_by(&args.metadata, &args.node, change).await
}

/// Says how much a node can hold.
pub(super) async fn set_capacity(args: &CapacityArgs) -> anyhow::Result<()> {
    let capacity = (args.capacity > NonZeroU32::MIN).then_some(args.capacity);
    let change = |settings: &mut NodeSettings| settings.capacity = capacity;
    plan_by(&args.metadata, &args.node, change).await
}

/// Says how fast a node may copy shards.
pub(super) async fn set_limits(args: &LimitsArgs) -> anyhow::Result<()> {
    let change = |settings: &mut NodeSettings| settings.copy_rate = args.copy_rate;
    change_node_settings(&*args.metadata.keys()?, &args.node, change).await?;
    Ok(())
}

/// Changes what plans know of a node.
async fn plan_by(
    metadata: &MetadataArgs,
    node: &NodeId,
    change: impl Fn(&mut NodeSettings),
) -> anyhow::Result<()> {
    change_node_settings(&*metadata.keys()?, node, change).await?;
    note("no shard moves by that: `simshard cluster rebalance plan` plans anew");
    Ok(())
}
