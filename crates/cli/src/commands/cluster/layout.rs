//! Where shards are, and where they could be.

use std::collections::BTreeSet;

use anyhow::bail;
use simshard_cluster::{KeyValueStore, Targets, shard_records, targets};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{NodeId, ShardId, ShardMap, plan_evenly};

use super::asked::Cluster;
use crate::exit::UsageError;

/// Where all shards are, or are on their way to.
pub(super) struct Layout {
    cluster: Cluster,
    pub(super) records: ShardRecords,
    pub(super) map: ShardMap,
}

impl Layout {
    pub(super) async fn read(keys: &dyn KeyValueStore) -> anyhow::Result<Self> {
        let cluster = Cluster::ask(keys).await?;
        let records = shard_records(keys).await?;
        let map = placed(&cluster, &records, &targets(keys).await?)?;
        Ok(Self {
            cluster,
            records,
            map,
        })
    }

    /// All nodes that run but some. One that does not run is left out if it holds nothing; else it must come back first.
    pub(super) fn nodes(&self, without: &[NodeId]) -> anyhow::Result<Vec<NodeId>> {
        for node in without {
            self.cluster.of_node(node)?;
        }
        let stores = self.cluster.stores.values();
        let stores = stores.filter(|store| {
            self.cluster.answers(store.id) || !self.map.shards_of(&store.node).is_empty()
        });
        let nodes = stores.map(|store| store.node.clone());
        let nodes: BTreeSet<NodeId> = nodes.filter(|node| !without.contains(node)).collect();
        check_answer(&self.cluster, &nodes)?;
        Ok(nodes.into_iter().collect())
    }

    /// An even share for each of these nodes, by few moves.
    pub(super) fn planned(
        &self,
        nodes: &[NodeId],
        replicas: usize,
    ) -> Result<ShardMap, UsageError> {
        let after = plan_evenly(Some(&self.map), nodes, replicas);
        after.map_err(|error| UsageError(error.to_string()))
    }
}

/// The nodes that hold a shard by a map.
pub(super) fn nodes_of(map: &ShardMap, shard: ShardId) -> BTreeSet<NodeId> {
    map.replicas(shard).iter().cloned().collect()
}

/// Refuses nodes that would not come.
pub(super) fn check_answer(cluster: &Cluster, nodes: &BTreeSet<NodeId>) -> anyhow::Result<()> {
    for node in nodes {
        let store = cluster.of_node(node)?;
        if !cluster.answers(store.id) {
            bail!(
                "{node} does not answer at {}: start it, and run this command again",
                store.address
            );
        }
    }
    Ok(())
}

/// Where the shards are, or are on their way to.
fn placed(
    cluster: &Cluster,
    records: &ShardRecords,
    targets: &Targets,
) -> anyhow::Result<ShardMap> {
    let mut entries = Vec::new();
    for (shard, record) in records {
        let nodes = match targets.get(shard) {
            Some(target) => target.iter().cloned().collect(),
            None => {
                let stores = record.in_sync.iter();
                let nodes = stores.filter_map(|entry| cluster.stores.get(&entry.store));
                nodes.map(|store| store.node.clone()).collect()
            }
        };
        entries.push(nodes);
    }
    Ok(ShardMap::new(1, &entries)?)
}
