//! `simshard cluster drain`, `undrain`, `replace` and `remove`: nodes that leave, and those that come for them.

use clap::Args;
use serde_json::json;
use simshard_admin::{Departure, Emptying};
use simshard_topology::NodeId;

use super::placing::{DRY, PlannedArgs};
use super::{MetadataArgs, admin, node_name, shares};
use crate::args::OutcomeArgs;
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
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Empties nodes.
pub(super) async fn drain(args: &DrainArgs) -> anyhow::Result<()> {
    let nodes = args.nodes.iter().cloned().collect();
    empty(&Departure::Drain(nodes), &args.planned).await
}

/// Lets a node take the place of another one.
pub(super) async fn replace(args: &ReplaceArgs) -> anyhow::Result<()> {
    let (node, by) = (args.node.clone(), args.by.clone());
    empty(&Departure::Replace { node, by }, &args.planned).await
}

/// Lets nodes take no more shards, and moves those that they hold. Prints what each node would hold, or is to.
async fn empty(departure: &Departure, args: &PlannedArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let admin = admin(&access);
    if args.dry_run {
        let planned = admin.plan_departure(departure).await?;
        print(&planned, args)?;
        note(DRY);
        return Ok(());
    }
    loop {
        let (planned, placing) = admin.depart(departure).await?;
        print(&planned, args)?;
        if !planned.is_empty() {
            args.wait.until(&placing, &access).await?;
            if args.wait.no_wait {
                return Ok(());
            }
        }
        let held = admin.held_still(departure).await?;
        if held.is_empty() {
            break;
        }
        for (node, shards) in held {
            note(format!(
                "{node} took shards {shards} meanwhile: they move, too"
            ));
        }
    }
    for node in departure.nodes() {
        note(format!(
            "{node} holds nothing, and takes nothing: once it is stopped, `simshard cluster remove {node}` takes it out"
        ));
    }
    Ok(())
}

fn print(planned: &Emptying, args: &PlannedArgs) -> anyhow::Result<()> {
    shares::print(&planned.outlook, args.output)?;
    if planned.is_empty() {
        note("nothing is to move");
    }
    Ok(())
}

/// Lets a node take shards again.
pub(super) async fn undrain(args: &NodeArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let node = &args.node;
    let was_drained = admin(&access).undrain(node).await?;
    let done = if was_drained {
        format!(
            "{node} may take shards again: `simshard cluster rebalance plan` gives it its share. Those on their way from it \
             leave still: `simshard cluster shards` shows them, and `simshard cluster move --free --shards SHARDS` lets \
             them be anywhere"
        )
    } else {
        format!("nothing to do: {node} was not drained")
    };
    let object = json!({ "node": node.as_str(), "drained": false, "was_drained": was_drained });
    args.output.tell(done, &object)
}

/// Forgets a node that is stopped and holds nothing.
pub(super) async fn remove(args: &NodeArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let node = &args.node;
    admin(&access).remove(node).await?;
    let done = format!("{node} is not known any more");
    args.output
        .tell(done, &json!({ "node": node.as_str(), "removed": true }))
}
