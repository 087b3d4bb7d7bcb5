//! `simshard cluster set-zone` and `set-capacity`: what a plan is to know of nodes. `set-limits`: how fast they copy.

use std::num::NonZeroU32;

use clap::{ArgGroup, Args};
use serde_json::json;
use simshard_topology::NodeId;

use super::{MetadataArgs, admin, node_name};
use crate::args::OutcomeArgs;
use crate::completion;

/// What is said after plans know something else.
const PLAN_ANEW: &str = "no shard moves by that: `simshard cluster rebalance plan` plans anew";

/// Arguments of `cluster set-zone`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("zone_or_none").args(["zone", "none"]).required(true))]
pub struct ZoneArgs {
    /// The node
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// What fails together, such as a rack: lower case letters, digits and hyphens
    #[arg(value_name = "ZONE", value_parser = zone_name)]
    pub zone: Option<NodeId>,
    /// Put the node in no zone
    #[arg(long)]
    pub none: bool,
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
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
    #[arg(value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub capacity: NonZeroU32,
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster set-limits`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("rate_or_none").args(["copy_rate", "none"]).required(true))]
pub struct LimitsArgs {
    /// The node
    #[arg(value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub node: NodeId,
    /// How many megabytes of shards it may receive in a second, and how many it may send
    #[arg(long, value_name = "MB", value_parser = positive, allow_negative_numbers = true)]
    pub copy_rate: Option<NonZeroU32>,
    /// Set no limit: the node gives way to requests
    #[arg(long)]
    pub none: bool,
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Puts a node in a zone, or in none.
pub(super) async fn set_zone(args: &ZoneArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let zone = args.zone.as_ref();
    admin(&access).set_zone(&args.node, zone).await?;
    let node = &args.node;
    let done = match zone {
        Some(zone) => format!("{node} is in zone {zone}: {PLAN_ANEW}"),
        None => format!("{node} is in no zone: {PLAN_ANEW}"),
    };
    let object = json!({ "node": node.as_str(), "zone": zone.map(NodeId::as_str) });
    args.output.tell(done, &object)
}

/// Says how much a node can hold.
pub(super) async fn set_capacity(args: &CapacityArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let (node, capacity) = (&args.node, args.capacity);
    admin(&access).set_capacity(node, capacity).await?;
    let done = format!("{node} has capacity {capacity}: {PLAN_ANEW}");
    let object = json!({ "node": node.as_str(), "capacity": capacity });
    args.output.tell(done, &object)
}

/// Says how fast a node may copy shards.
pub(super) async fn set_limits(args: &LimitsArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let (node, rate) = (&args.node, args.copy_rate);
    admin(&access).set_copy_rate(node, rate).await?;
    let done = match rate {
        Some(rate) => format!("{node} copies {rate} MB a second at most from now on"),
        None => format!("{node} has no limit from now on: it gives way to requests"),
    };
    let object = json!({ "node": node.as_str(), "copy_rate": rate });
    args.output.tell(done, &object)
}

/// A zone is named like a node.
fn zone_name(text: &str) -> Result<NodeId, String> {
    NodeId::new(text).map_err(|_| {
        "a zone has 1 to 64 lower case letters, digits and hyphens, and begins with no hyphen; --none puts the node in none"
            .to_owned()
    })
}

fn positive(text: &str) -> Result<NonZeroU32, String> {
    let number = text.parse();
    number.map_err(|_| format!("it is a whole number from 1 to {}", u32::MAX))
}
