//! `simshard cluster shards`: which nodes hold which shards.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use simshard_cluster::{registered_stores, shard_records, targets};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};

use super::TableArgs;
use super::asked::warn_of_bad;
use crate::say;

pub(super) async fn run(args: &TableArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let records = shard_records(&*keys).await?;
    let stores = registered_stores(&*keys).await?;
    let names = stores
        .into_iter()
        .map(|store| (store.id, store.node.to_string()));
    let names: BTreeMap<StoreId, String> = names.collect();
    let targets = targets(&*keys, warn_of_bad).await?;
    let rows: Vec<(ShardId, ReplicaNames)> = records
        .iter()
        .map(|(shard, record)| {
            let target = targets.get(shard);
            (*shard, ReplicaNames::of(record, target, &names))
        })
        .collect();
    let mut text = "shards\tepoch\tin_sync\thot\tlearners\ttarget".to_owned();
    for alike in rows.chunk_by(|(_, one), (_, next)| one == next) {
        let shards: ShardSet = alike.iter().map(|(shard, _)| *shard).collect();
        let replicas = &alike[0].1;
        if args.output.json {
            say::print_json(&replicas.json(shards))?;
        } else {
            text.push_str(&format!("\n{shards}\t{}", replicas.columns()));
        }
    }
    if !args.output.json {
        say::print(&text)?;
    }
    Ok(())
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
