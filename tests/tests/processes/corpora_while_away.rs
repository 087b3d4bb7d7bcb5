//! Corpora are created and deleted while a node is killed or frozen, which agrees when it comes back.

use std::time::Duration;

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_testkit::{End, ProcessCluster, Shape};
use tokio::task::block_in_place;

use crate::interruptions::until_reached;
use crate::records::until_in_sync;

const NODES: usize = 3;

async fn create(client: &Client, name: &str) {
    let create = || v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    let created = until_reached(async || client.create_corpus(create()).await);
    created.await.unwrap();
}

async fn insert(client: &Client, name: &str) {
    let documents = || Documents {
        keys: Queries::Fingerprints((0..50).map(|number| Fingerprint(number << 56)).collect()),
        ids: vec![],
    };
    let inserted = until_reached(async || client.insert(name, documents()).await);
    inserted.await.unwrap();
}

async fn found(client: &Client, name: &str) -> usize {
    let queries =
        || Queries::Fingerprints((0..50).map(|number| Fingerprint(number << 56)).collect());
    let find = async || {
        client
            .find_all(name, queries(), SearchSpec::default())
            .await
    };
    let found = until_reached(find).await.unwrap();
    let queries = found.queries.iter();
    queries.filter(|query| !query.matches.is_empty()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_away_agrees_on_the_corpora() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client, "kept").await;
    insert(&client, "kept").await;
    for round in 0..2 {
        let (old, new) = (format!("old-{round}"), format!("new-{round}"));
        create(&client, &old).await;
        insert(&client, &old).await;
        let is_frozen = round == 1;
        if is_frozen {
            cluster.freeze_node(0);
        } else {
            block_in_place(|| cluster.end_node(0, End::Killed));
        }
        until_in_sync(&cluster, NODES - 1).await;
        let deleted = until_reached(async || client.delete_corpus(&old).await);
        deleted.await.unwrap();
        create(&client, &new).await;
        insert(&client, &new).await;
        if is_frozen {
            cluster.thaw_node(0);
        } else {
            block_in_place(|| cluster.start_node(0));
        }
        until_in_sync(&cluster, NODES).await;
        // Since it holds its shards again, no node holds a corpus that has no record (AG1).
        let stored = until_reached(async || client.list_stored_corpora().await);
        assert_eq!(stored.await.unwrap().len(), 2 + round);
        block_in_place(|| cluster.end_node(1, End::Killed));
        for name in ["kept", &new] {
            assert_eq!(found(&client, name).await, 50);
        }
        block_in_place(|| cluster.start_node(1));
        until_in_sync(&cluster, NODES).await;
    }
}
