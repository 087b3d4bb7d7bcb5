//! Nodes that change their addresses while a router serves: its requests follow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_cluster::{ClusterLayout, MemoryStore, Node};
use simshard_testkit::{StallingProxy, TestCluster};
use tokio::task::JoinSet;

use crate::own_router::OwnRouter;

/// Documents in a request: every node stores some.
const DOCUMENTS: u64 = 100;

/// The writers beside the test.
const WRITERS: u64 = 4;

fn fingerprints(batch: u64) -> Vec<Fingerprint> {
    let numbers = DOCUMENTS * batch..DOCUMENTS * (batch + 1);
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    numbers.map(spread).collect()
}

async fn insert_and_find(client: &Client, batch: u64) {
    let keys = Queries::Fingerprints(fingerprints(batch));
    let documents = Documents {
        keys: keys.clone(),
        ids: vec![],
    };
    assert_eq!(client.insert("c", documents).await.unwrap(), DOCUMENTS);
    let found = client.find_all("c", keys, SearchSpec::default());
    for query in found.await.unwrap().queries {
        assert_eq!(query.matches[0].fingerprint, query.query);
    }
}

/// CV1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_follow_a_node_to_its_new_address_and_back() {
    let cluster = TestCluster::start(3).await;
    let before = cluster.layout().clone();
    let store = Arc::new(MemoryStore::new(before.clone()));
    let router = OwnRouter::start(store.clone()).await;
    let client = router.client.clone();
    let corpus = v1::CreateCorpusRequest {
        name: "c".to_owned(),
        ..Default::default()
    };
    client.create_corpus(corpus).await.unwrap();
    let (stop, batches) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(1)),
    );
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (client, stop, batches) = (client.clone(), Arc::clone(&stop), Arc::clone(&batches));
        writers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                insert_and_find(&client, batches.fetch_add(1, Ordering::Relaxed)).await;
            }
        });
    }

    let moved = &before.nodes()[1];
    let server = moved.address.trim_start_matches("http://");
    let proxy = StallingProxy::start(server.parse().unwrap());
    proxy.stall();
    let nodes = before.nodes().iter().map(|node| Node {
        address: if node.id == moved.id {
            format!("http://{}", proxy.address())
        } else {
            node.address.clone()
        },
        ..node.clone()
    });
    store.set_layout(ClusterLayout::planned(nodes.collect(), 1).unwrap());
    tokio::task::block_in_place(|| proxy.until_it_keeps_some());
    store.set_layout(before);
    insert_and_find(&client, 0).await;

    proxy.resume();
    stop.store(true, Ordering::Relaxed);
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    for batch in 0..batches.load(Ordering::Relaxed) {
        let keys = Queries::Fingerprints(fingerprints(batch));
        let found = client.find_all("c", keys, SearchSpec::default());
        let queries = found.await.unwrap().queries;
        assert!(queries.iter().all(|query| !query.matches.is_empty()));
    }
    cluster.stop().await;
}
