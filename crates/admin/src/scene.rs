//! A cluster in memory for tests, whose nodes do not answer.

use simshard_cluster::{
    Corpora, KeyValueStore, MemoryKeyValues, Outcome, RegisteredStore, Transaction, initialize,
    register,
};
use simshard_topology::replication::StoreId;
use simshard_topology::{NodeId, plan_evenly};

/// The store of a node by its number, as it registers.
pub(crate) fn store(number: u8) -> RegisteredStore {
    RegisteredStore::new(
        StoreId([number; 16]),
        NodeId::new(&format!("n{number}")).unwrap(),
        format!("http://127.0.0.1:{number}"),
    )
}

/// Some nodes, of which each holds all shards.
pub(crate) async fn cluster(nodes: u8) -> MemoryKeyValues {
    let keys = MemoryKeyValues::new();
    let stores: Vec<RegisteredStore> = (1..=nodes).map(store).collect();
    for store in &stores {
        register(&keys, store).await.unwrap();
    }
    let nodes: Vec<NodeId> = stores.into_iter().map(|store| store.node).collect();
    let map = plan_evenly(None, &nodes, nodes.len()).unwrap();
    let begun = initialize(&keys, &map, 1, &Corpora::default(), &[]).await;
    begun.unwrap();
    // As if all nodes had shown that they know the level.
    put(&keys, "cluster", r#"{"schema":2,"id":"of a test"}"#).await;
    keys
}

/// Lets a node register that holds nothing.
pub(crate) async fn join(keys: &dyn KeyValueStore, number: u8) {
    register(keys, &store(number)).await.unwrap();
}

/// Writes a key.
pub(crate) async fn put(keys: &dyn KeyValueStore, key: &str, value: &str) {
    let change = Transaction::new().put(key, value);
    let outcome = keys.commit(&change).await.unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)));
}
