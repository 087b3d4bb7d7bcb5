//! `simshard cluster shards`: which nodes hold which shards.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use simshard_admin::{AdminError, ReplicaGroup};
use simshard_cluster::KeyValueStore;
use simshard_topology::NodeId;

use super::listing::{Listing, show};
use super::{TableArgs, admin, node_name};

/// The arguments of `cluster shards`.
#[derive(Args, Debug)]
pub struct ShardsArgs {
    /// Only the shards that this node holds, copies or is to hold
    #[arg(long, value_name = "NODE", value_parser = node_name)]
    node: Option<NodeId>,
    /// What all lists have.
    #[command(flatten)]
    table: TableArgs,
}

pub(super) async fn run(args: &ShardsArgs) -> anyhow::Result<()> {
    show(&args.table, async |keys| {
        list(keys, args.node.as_ref()).await
    })
    .await
}

async fn list(keys: &dyn KeyValueStore, node: Option<&NodeId>) -> anyhow::Result<Listing> {
    let groups = match admin(keys).shards(node).await {
        // The list may just be too early: this is no mistake in the arguments.
        Err(AdminError::UnknownNode(unknown)) => bail!(unknown),
        groups => groups?,
    };
    let mut listing = Listing::new("shards\tepoch\tin_sync\thot\tlearners\ttarget");
    for group in &groups {
        listing.push(columns(group), json_of(group));
    }
    Ok(listing)
}

fn columns(group: &ReplicaGroup) -> String {
    let all = [&group.in_sync, &group.hot, &group.learners, &group.target];
    let [in_sync, hot, learners, target] = all.map(|names| names.join(","));
    let (shards, epoch) = (&group.shards, group.epoch);
    format!("{shards}\t{epoch}\t{in_sync}\t{hot}\t{learners}\t{target}")
}

fn json_of(group: &ReplicaGroup) -> Value {
    json!({
        "shards": group.shards.to_string(),
        "epoch": group.epoch.to_string(),
        "in_sync": group.in_sync,
        "hot": group.hot,
        "learners": group.learners,
        "target": group.target,
    })
}
