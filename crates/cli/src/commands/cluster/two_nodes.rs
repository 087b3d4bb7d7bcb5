//! The metadata of a cluster of two nodes, for tests.

use std::sync::Arc;

use simshard_cluster::{Corpora, MemoryKeyValues, RegisteredStore, initialize, register};
use simshard_topology::replication::StoreId;
use simshard_topology::{NodeId, plan_evenly};

use super::access::ClusterAccess;

pub(super) const STORES: [StoreId; 2] = [StoreId([1; 16]), StoreId([2; 16])];

/// A cluster of two nodes, which hold each shard.
pub(super) async fn two_nodes() -> ClusterAccess {
    let keys = Arc::new(MemoryKeyValues::new());
    let nodes = ["n1", "n2"].map(|name| NodeId::new(name).unwrap());
    for (port, (id, node)) in (1..).zip(STORES.into_iter().zip(nodes.clone())) {
        // Nothing listens there.
        let address = format!("http://127.0.0.1:{port}");
        let store = RegisteredStore::new(id, node, address);
        register(&*keys, &store).await.unwrap();
    }
    let map = plan_evenly(None, &nodes, 2).unwrap();
    let begun = initialize(&*keys, &map, 1, &Corpora::default(), &[]).await;
    begun.unwrap();
    ClusterAccess::of_test(keys)
}
