//! A node and a router that are cut off from the metadata, while the others go on without that node: they agree on a
//! record that is no longer the current one.

use std::fs;

use futures_util::future::join_all;
use simshard_client::{
    Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use simshard_cluster::{FileKeyValues, Steps, registered_stores, shard_records, take_steps};
use simshard_simhash::synthetic::Data;
use simshard_testkit::{End, Process, ProcessCluster, Shape, binary};
use simshard_topology::replication::{Epoch, ShardRecord, Step};
use tokio::task::block_in_place;

use crate::interruptions::until_reached;

/// The node that is cut off.
const CUT_OFF: usize = 0;

/// The first replica of a third of all shards is cut off, and some queries need only such shards.
const DOCUMENTS: usize = 24;

async fn insert(client: &Client, fingerprint: Fingerprint) -> Result<u64, ClientError> {
    let documents = Documents {
        keys: Queries::Fingerprints(vec![fingerprint]),
        ids: vec!["new".to_owned()],
    };
    client.insert("crawl", documents).await
}

/// Takes a node out of the records of all shards from which the other nodes have not taken it already.
async fn evict_everywhere(keys: &FileKeyValues, node: &str) {
    let stores = registered_stores(keys).await.unwrap();
    let store = stores.iter().find(|store| store.node.as_str() == node);
    let store = store.unwrap().id;
    let evict = |_, record: &ShardRecord| record.in_sync(store).map(|_| Step::Evict(store));
    let mut steps = Steps::default();
    let none_reported = |_, _| Epoch::NONE;
    let none_lost = |_, _: &ShardRecord, _| false;
    let taking = take_steps(keys, evict, none_reported, none_lost, &mut steps);
    taking.await.unwrap();
    let records = shard_records(keys).await.unwrap();
    assert_eq!(records.len(), 256);
    let holds = |record: &ShardRecord| record.in_sync(store).is_some();
    assert_eq!(records.values().filter(|record| holds(record)).count(), 0);
}

/// PR1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_by_a_record_that_was_replaced_does_not_count() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    let client = cluster.client();
    let create = v1::CreateCorpusRequest {
        name: "crawl".to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    insert(&client, Fingerprint(7)).await.unwrap();

    let older = cluster.folder().join("older");
    fs::copy(cluster.metadata_file(), &older).unwrap();
    let older_metadata = format!("file:{}", older.display());
    let mut args = cluster.node_args(CUT_OFF);
    let place = args.iter().position(|arg| arg == "--metadata").unwrap();
    args[place + 1].clone_from(&older_metadata);
    block_in_place(|| cluster.end_node(CUT_OFF, End::Killed));
    let router = ["serve", "router", "--listen", "127.0.0.1:0", "--metadata"];
    let router = router.into_iter().chain([&*older_metadata]);
    let (_cut_off, router) = block_in_place(|| {
        let node = Process::serve(binary(), args);
        (node, Process::serve(binary(), router))
    });
    let stale = Client::new(router.url()).unwrap();
    let query = |fingerprint| {
        let spec = SearchSpec {
            max_distance: Some(0),
            ..SearchSpec::default()
        };
        stale.find_all("crawl", Queries::Fingerprints(vec![fingerprint]), spec)
    };
    let found = until_reached(async || query(Fingerprint(7)).await)
        .await
        .unwrap();
    assert_eq!(found.queries[0].matches.len(), 1);
    fs::write(&older, "no metadata").unwrap();

    evict_everywhere(&FileKeyValues::at(cluster.metadata_file()), "n1").await;
    let fingerprints = Data::Random.fingerprints(DOCUMENTS, 1);
    for &fingerprint in &fingerprints {
        let inserted = until_reached(async || insert(&client, fingerprint).await).await;
        inserted.unwrap();
    }
    for found in join_all(fingerprints.into_iter().map(query)).await {
        let error = found.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::NodeUnreachable), "{error}");
    }
}
