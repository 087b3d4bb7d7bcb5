//! Which other stores are asked for signs of life.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_cluster::{ClusterLayout, Node};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{ShardId, ShardSet};

/// A store that shares shards with fewer others asks bystanders as well.
const LEAST_ASKED: usize = 3;

/// The stores that one asks for signs of life: those that share shards with it, and bystanders where these are few. Two
/// stores that do not reach each other could not tell otherwise which of them is cut off from all (PE1). Bystanders that
/// hold shards come first: the dead ones among them are soon left out of the records.
pub(super) fn asked(
    layout: &ClusterLayout,
    own: StoreId,
    known: ShardSet,
) -> BTreeMap<StoreId, &Node> {
    let mut asked = other_replicas(layout, own, known);
    if asked.is_empty() {
        return asked;
    }
    let bystanders = layout.stores();
    let bystanders = bystanders.filter(|(store, _)| *store != own && !asked.contains_key(store));
    let (holders, spare): (Vec<_>, Vec<_>) =
        bystanders.partition(|(_, node)| layout.node(&node.id).is_some());
    let missing = LEAST_ASKED.saturating_sub(asked.len());
    asked.extend(holders.into_iter().chain(spare).take(missing));
    asked
}

/// The stores that share shards with one, and their nodes. It held or holds `known`, or is to hold it, and may come to
/// hold what is short of replicas.
pub(super) fn other_replicas(
    layout: &ClusterLayout,
    own: StoreId,
    known: ShardSet,
) -> BTreeMap<StoreId, &Node> {
    let mut other_replicas = BTreeMap::new();
    let records = layout.records().into_iter().flatten();
    let is_shared = |(shard, record): &(&ShardId, &Arc<ShardRecord>)| {
        // Its learners may be dead.
        known.contains(**shard) || record.lacks_replicas() || record.names(own)
    };
    for (_, record) in records.filter(is_shared) {
        // A forced record waits for the reports of those that it leaves out.
        let left = record.is_forced().then_some(&record.previous);
        for store in record
            .write_set()
            .chain(left.into_iter().flatten().copied())
        {
            if store != own
                && let Some(node) = layout.node_of(store)
            {
                other_replicas.entry(store).or_insert(node);
            }
        }
    }
    other_replicas
}

#[cfg(test)]
pub(super) mod tests {
    use simshard_cluster::{
        Corpora, KeyValueMetadata, KeyValueStore, MemoryKeyValues, MetadataStore, RegisteredStore,
        initialize, register,
    };
    use simshard_topology::{NodeId, plan_evenly};

    use super::*;

    fn id(number: u8) -> StoreId {
        StoreId([number; 16])
    }

    fn node(number: u8) -> NodeId {
        NodeId::new(&format!("n{number}")).unwrap()
    }

    /// A cluster of this number of nodes, of which `holders` hold all shards.
    pub(in super::super) async fn layout(nodes: u8, holders: &[u8]) -> Arc<ClusterLayout> {
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        for number in 1..=nodes {
            let store = RegisteredStore::new(
                id(number),
                node(number),
                format!("http://127.0.0.1:{number}"),
            );
            register(&*keys, &store).await.unwrap();
        }
        let names: Vec<NodeId> = holders.iter().map(|number| node(*number)).collect();
        let map = plan_evenly(None, &names, holders.len()).unwrap();
        let none = Corpora::default();
        initialize(&*keys, &map, 1, &none, &[]).await.unwrap();
        let metadata = KeyValueMetadata::follow(keys, || {}, |_| {}).await.unwrap();
        metadata.layout().await.unwrap()
    }

    async fn asked_by(own: u8, nodes: u8, holders: &[u8]) -> Vec<u8> {
        let layout = layout(nodes, holders).await;
        let asked = asked(&layout, id(own), ShardSet::EMPTY);
        asked.keys().map(|store| store.0[0]).collect()
    }

    /// PE1.
    #[tokio::test]
    async fn a_store_with_few_partners_asks_bystanders_too() {
        assert_eq!(asked_by(2, 3, &[2, 3]).await, [1, 3]);
        assert_eq!(asked_by(4, 9, &[4, 5]).await, [1, 2, 5]);
        assert_eq!(asked_by(1, 9, &[1, 5, 7]).await, [2, 5, 7]);
        assert_eq!(asked_by(1, 9, &[1, 2, 3, 4, 5]).await, [2, 3, 4, 5]);
        assert_eq!(asked_by(1, 2, &[1, 2]).await, [2]);
        // One that shares nothing has none to judge.
        assert_eq!(asked_by(1, 3, &[1]).await, [0; 0]);
        assert_eq!(asked_by(1, 3, &[2, 3]).await, [0; 0]);
    }
}
