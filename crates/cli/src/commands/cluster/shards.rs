//! `simshard cluster shards`: which nodes hold which shards.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use simshard_cluster::{KeyValueStore, registered_stores, shard_records, targets};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};

use super::asked::warn_of_bad;
use super::listing::{Listing, show};
use super::{TableArgs, node_name};

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
    let records = shard_records(keys).await?;
    let stores = registered_stores(keys).await?;
    if let Some(node) = node
        && stores.iter().all(|store| store.node != *node)
    {
        bail!("no node {node} has registered: `simshard cluster nodes` lists them");
    }
    let names = stores
        .into_iter()
        .map(|store| (store.id, store.node.to_string()));
    let names: BTreeMap<StoreId, String> = names.collect();
    let targets = targets(keys, warn_of_bad).await?;
    let rows = records.iter().map(|(shard, record)| {
        let target = targets.get(shard);
        (*shard, ReplicaNames::of(record, target, &names))
    });
    let concerns =
        |replicas: &ReplicaNames| node.is_none_or(|node| replicas.concern(node.as_str()));
    let rows: Vec<(ShardId, ReplicaNames)> =
        rows.filter(|(_, replicas)| concerns(replicas)).collect();
    let mut listing = Listing::new("shards\tepoch\tin_sync\thot\tlearners\ttarget");
    for alike in rows.chunk_by(|(_, one), (_, next)| one == next) {
        let shards: ShardSet = alike.iter().map(|(shard, _)| *shard).collect();
        let replicas = &alike[0].1;
        let columns = format!("{shards}\t{}", replicas.columns());
        listing.push(columns, replicas.json(shards));
    }
    Ok(listing)
}

/// The replicas of a shard by its record, each by the name of its node.
#[derive(PartialEq)]
struct ReplicaNames {
    epoch: String,
    in_sync: Vec<String>,
    hot: Vec<String>,
    learners: Vec<String>,
    target: Vec<String>,
}

impl ReplicaNames {
    /// Stores by the names of their nodes.
    fn of(
        record: &ShardRecord,
        target: Option<&BTreeSet<NodeId>>,
        names: &BTreeMap<StoreId, String>,
    ) -> Self {
        let name = |store: StoreId| {
            let name = names.get(&store).cloned();
            name.unwrap_or_else(|| store.to_string())
        };
        let hot = record.in_sync.iter().filter(|one| one.hot);
        Self {
            epoch: record.epoch.to_string(),
            in_sync: record.in_sync.iter().map(|one| name(one.store)).collect(),
            hot: hot.map(|one| name(one.store)).collect(),
            learners: record.learners.iter().map(|one| name(one.store)).collect(),
            target: target
                .into_iter()
                .flatten()
                .map(NodeId::to_string)
                .collect(),
        }
    }

    /// Whether a node holds the shard in sync, copies it, or is to hold it.
    fn concern(&self, node: &str) -> bool {
        let mut all = [&self.in_sync, &self.learners, &self.target]
            .into_iter()
            .flatten();
        all.any(|name| name == node)
    }

    fn columns(&self) -> String {
        let all = [&self.in_sync, &self.hot, &self.learners, &self.target];
        let [in_sync, hot, learners, target] = all.map(|names| names.join(","));
        format!("{}\t{in_sync}\t{hot}\t{learners}\t{target}", self.epoch)
    }

    fn json(&self, shards: ShardSet) -> Value {
        json!({
            "shards": shards.to_string(),
            "epoch": self.epoch,
            "in_sync": self.in_sync,
            "hot": self.hot,
            "learners": self.learners,
            "target": self.target,
        })
    }
}
