//! Corpora are created and deleted while a node is away, in clusters whose nodes register themselves. A node makes what
//! it lacks when a request first needs it, and drops what was deleted meanwhile when it comes back.

use std::sync::Arc;
use std::time::SystemTime;

use simshard_client::v1::{self, CorpusState};
use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec};
use simshard_cluster::{
    ClusterLayout, CorpusName, CorpusRecord, KeyValueMetadata, MetadataStore, Node, key_values_at,
    random_corpus_uid,
};
use simshard_testkit::{End, EtcdServer, ProcessCluster, Shape};
use simshard_topology::NodeId;
use tokio::task::block_in_place;

use crate::interruptions::until_reached;

const NODES: usize = 3;

/// Spread over all nodes.
pub(crate) fn all() -> Queries {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Queries::Fingerprints((0..200).map(spread).collect())
}

/// In a shard of the first node alone, whatever block leads.
pub(crate) fn of_the_first_node() -> Queries {
    Queries::Fingerprints(vec![Fingerprint(0)])
}

pub(crate) async fn create(client: &Client, name: &str) -> Result<v1::Corpus, ClientError> {
    let create = v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await
}

pub(crate) async fn insert(
    client: &Client,
    corpus: &str,
    keys: Queries,
) -> Result<u64, ClientError> {
    let documents = Documents { keys, ids: vec![] };
    client.insert(corpus, documents).await
}

/// How many of these are found, in an answer that says it is complete.
pub(crate) async fn found(
    client: &Client,
    corpus: &str,
    queries: Queries,
) -> Result<usize, ClientError> {
    let found = client.find_all(corpus, queries, SearchSpec::default());
    let queries = found.await?.queries.into_iter();
    Ok(queries.filter(|query| !query.matches.is_empty()).count())
}

/// Writes the record of a corpus, and tells no node.
pub(crate) async fn record(metadata: &str, name: &str) {
    let node = Node {
        id: NodeId::new("n1").unwrap(),
        address: "http://127.0.0.1:1".to_owned(),
    };
    let layout = Arc::new(ClusterLayout::planned(vec![node], 1).unwrap());
    let metadata = KeyValueMetadata::with_layout(layout, key_values_at(metadata).unwrap());
    let record = CorpusRecord {
        name: CorpusName::new(name).unwrap(),
        uid: random_corpus_uid(),
        blocks: 5,
        distance: 3,
        recipe: "words-v3".to_owned(),
        create_time: SystemTime::now(),
        state: simshard_cluster::CorpusState::Live,
    };
    metadata.create_corpus(record, 9).await.unwrap();
}

/// OD1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_is_created_with_a_node_down_and_used_once_it_is_back() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES));
    cluster.end_node(2, End::Killed);
    let client = cluster.client();
    create(&client, "crawl").await.unwrap();
    assert_eq!(client.list_corpora().await.unwrap().len(), 1);
    insert(&client, "crawl", of_the_first_node()).await.unwrap();
    let refused = insert(&client, "crawl", all()).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::NodeUnreachable), "{refused}");
    let again = create(&client, "crawl").await.unwrap_err();
    assert_eq!(again.reason(), Some(Reason::CorpusExists), "{again}");

    block_in_place(|| cluster.start_node(2));
    let inserted = until_reached(async || insert(&client, "crawl", all()).await);
    inserted.await.unwrap();
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 200);
    let held = client.list_stored_corpora().await.unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].nodes, ["n1", "n2", "n3"]);
    // What was made on demand outlives the process.
    for node in 0..NODES {
        block_in_place(|| cluster.restart_node(node, End::Killed));
    }
    let found = until_reached(async || found(&client, "crawl", all()).await);
    assert_eq!(found.await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_with_a_node_down_is_completed_once_it_is_back() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES));
    let other = cluster.add_router();
    let (client, remembers) = (cluster.client(), cluster.client_of(other));
    create(&client, "crawl").await.unwrap();
    insert(&remembers, "crawl", all()).await.unwrap();
    cluster.end_node(2, End::Killed);

    let error = client.delete_corpus("crawl").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NodeUnreachable), "{error}");
    assert_eq!(error.nodes(), ["n3"]);
    assert!(error.to_string().contains("repeat the deletion"), "{error}");
    let taken = create(&client, "crawl").await.unwrap_err();
    assert_eq!(taken.corpus_state(), Some(CorpusState::Deleting), "{taken}");
    for client in [&client, &remembers] {
        let gone = insert(client, "crawl", of_the_first_node()).await;
        let gone = gone.unwrap_err();
        assert_eq!(gone.reason(), Some(Reason::CorpusNotFound), "{gone}");
    }

    let log = block_in_place(|| cluster.start_node_with_log(2));
    assert!(log.contains("dropped a corpus"), "{log}");
    let held = until_reached(async || client.list_stored_corpora().await);
    assert_eq!(held.await.unwrap(), []);
    client.delete_corpus("crawl").await.unwrap();
    create(&client, "crawl").await.unwrap();
    insert(&remembers, "crawl", of_the_first_node())
        .await
        .unwrap();
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_lacks_is_not_made_while_the_metadata_is_away() {
    let mut etcd = EtcdServer::start();
    let cluster = ProcessCluster::start_at(Shape::of(NODES), &etcd.url());
    let client = cluster.client();
    record(&etcd.url(), "crawl").await;
    insert(&client, "crawl", of_the_first_node()).await.unwrap();
    etcd.stop();
    let refused = found(&client, "crawl", all()).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::MetadataFailed), "{refused}");
    assert!(refused.to_string().contains("etcd at 127."), "{refused}");
    let of_one = found(&client, "crawl", of_the_first_node());
    assert_eq!(of_one.await.unwrap(), 1);
    etcd.restart();
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 1);
}
