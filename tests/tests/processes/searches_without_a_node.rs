//! Searches while nodes do not answer and the records of shards cannot change, as the metadata is away too: no record
//! comes to their help.

use std::fs;
use std::time::{Duration, Instant};

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_testkit::{End, EtcdServer, ProcessCluster, Shape};
use tokio::task::block_in_place;
use tokio::time::timeout;

use crate::load::{CORPUS, Load, create};

/// Documents of all shards.
const DOCUMENTS: u64 = 512;

/// Searches, so that each replica is the reader of some shards of some.
const SEARCHES: usize = 20;

/// Long for a search that goes around a node, and short for one that waits for it, or for the metadata.
const ANSWER_TIME: Duration = Duration::from_millis(1500);

fn fingerprints() -> Queries {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Queries::Fingerprints((0..DOCUMENTS).map(spread).collect())
}

/// Creates the corpus and inserts the documents; returns once routers and nodes agree on who holds what.
async fn fill(cluster: &ProcessCluster) -> Client {
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let load = Load::start(std::slice::from_ref(&client));
    crate::failovers::get_acquainted(&load).await;
    load.end(&client).await;
    let documents = Documents {
        keys: fingerprints(),
        ids: Vec::new(),
    };
    client.insert(CORPUS, documents).await.unwrap();
    client
}

/// Finds all documents; returns how long that took.
async fn find(client: &Client) -> Duration {
    let begun = Instant::now();
    let found = client.find_all(CORPUS, fingerprints(), SearchSpec::default());
    let found = found.await.unwrap();
    assert!(found.queries.iter().all(|query| !query.matches.is_empty()));
    begun.elapsed()
}

/// PR1: the two that are left are a quorum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_three_replicas_prove_answers_while_etcd_is_away() {
    for is_killed in [true, false] {
        let etcd = EtcdServer::start();
        let mut cluster = ProcessCluster::start_at(Shape::of(3).with_replicas(3), &etcd.url());
        let client = fill(&cluster).await;
        // Readings of the metadata do not fail, they are not answered.
        etcd.freeze();
        if is_killed {
            block_in_place(|| cluster.end_node(0, End::Killed));
        } else {
            cluster.freeze_node(0);
        }
        // Who asks for the metadata does not make the router forget the corpus.
        client.recipe(CORPUS).await.unwrap();
        for _ in 0..SEARCHES {
            let took = find(&client).await;
            assert!(took < ANSWER_TIME, "{took:?}, killed: {is_killed}");
        }
        etcd.thaw();
    }
}

/// SL1: of the two hot replicas of a shard, one is frozen, and the other one was late once. A cold one is no help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_late_once_is_asked_again_while_another_one_is_frozen() {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(3).with_hot(2));
    let client = fill(&cluster).await;
    fs::write(cluster.metadata_file(), "no metadata").unwrap();
    cluster.freeze_node(0);
    find(&client).await;
    cluster.freeze_node(2);
    let mut searches = tokio::spawn(async move {
        let mut longest = Duration::ZERO;
        for _ in 0..SEARCHES {
            longest = longest.max(find(&client).await);
        }
        longest
    });
    // Longer than a search waits for a sign of life.
    assert!(timeout(ANSWER_TIME / 3, &mut searches).await.is_err());
    cluster.thaw_node(2);
    let longest = searches.await.unwrap();
    assert!(longest < 2 * ANSWER_TIME, "{longest:?}");
}

/// What nodes hold of a corpus is told without those that do not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_is_described_while_a_node_is_frozen() {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    let client = fill(&cluster).await;
    cluster.freeze_node(0);
    let described = timeout(ANSWER_TIME, client.get_corpus(CORPUS)).await;
    let corpus = described.unwrap().unwrap();
    assert!(corpus.document_count.unwrap() >= DOCUMENTS);
}
