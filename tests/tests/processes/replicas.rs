//! Several replicas of each shard: all of them take each change, and any of them answers. While nodes are down, what was
//! acknowledged is found, completely and once, and changes go on as long as there are enough replicas.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec};
use simshard_simhash::synthetic::Data;
use simshard_testkit::{End, Oracle, ProcessCluster, Shape, until_some};
use tokio::task::block_in_place;
use tokio::time::timeout;

use crate::load::create;

const DISTANCE: u32 = 3;

pub(crate) async fn change(
    client: &Client,
    oracle: &mut Oracle,
    documents: &[(Fingerprint, String)],
) -> Result<u64, ClientError> {
    let (fingerprints, ids) = documents.iter().cloned().unzip();
    let documents_of = Documents {
        keys: Queries::Fingerprints(fingerprints),
        ids,
    };
    let inserted = client.insert("crawl", documents_of).await?;
    for (fingerprint, id) in documents {
        oracle.insert(*fingerprint, id);
    }
    Ok(inserted)
}

pub(crate) fn documents(seed: u64) -> Vec<(Fingerprint, String)> {
    let fingerprints = Data::Clustered.fingerprints(300, seed).into_iter();
    let named = fingerprints.zip(0..);
    named
        .map(|(fingerprint, number)| (fingerprint, format!("{seed}-{number}")))
        .collect()
}

type Pairs = BTreeSet<((Fingerprint, String), (Fingerprint, String))>;

async fn pairs(client: &Client) -> Result<Pairs, ClientError> {
    let mut pairs = Pairs::new();
    let mut batches = pin!(client.find_pairs("crawl", None).await?);
    while let Some(batch) = batches.try_next().await? {
        for pair in batch.iter() {
            let a = (pair.fingerprint_a, pair.id_a.to_owned());
            let b = (pair.fingerprint_b, pair.id_b.to_owned());
            assert!(pairs.insert((a.clone().min(b.clone()), a.max(b))), "twice");
        }
    }
    Ok(pairs)
}

/// What a stream answers, which ends early if a node is taken out of the records meanwhile.
async fn until_read<T>(read: impl AsyncFn() -> Result<T, ClientError>) -> T {
    let whole = until_some("a stream is read to its end", async || match read().await {
        Err(error) if error.reason() == Some(Reason::NodeUnreachable) => None,
        read => Some(read.unwrap()),
    });
    timeout(Duration::from_secs(10), whole).await.unwrap()
}

/// All that the cluster answers is what the oracle does by linear scan.
pub(crate) async fn check(client: &Client, oracle: &Oracle) {
    let queries: Vec<Fingerprint> = oracle.documents().map(|(query, _)| query).collect();
    let asked = Queries::Fingerprints(queries.clone());
    let found = client.find_all("crawl", asked, SearchSpec::default()).await;
    let found = found.unwrap();
    assert!(found.unreachable_nodes.is_empty());
    assert_eq!(found.queries, oracle.find_each(&queries, DISTANCE));

    let corpus = client.get_corpus("crawl").await.unwrap();
    // Some nodes may be down.
    assert_eq!(corpus.document_count, Some(oracle.len()));
    assert_eq!(corpus.fingerprint_count, Some(oracle.fingerprint_count()));

    let scanned = until_read(async || {
        let documents: Vec<_> = client.scan("crawl").await?.try_concat().await?;
        Ok(documents)
    });
    let scanned = scanned.await;
    let scanned = scanned.iter();
    let scanned: Vec<_> = scanned
        .map(|document| (document.fingerprint, &*document.id))
        .collect();
    assert_eq!(scanned, oracle.documents().collect::<Vec<_>>());

    let pairs = until_read(async || pairs(client).await).await;
    let mut slowly = BTreeSet::new();
    let all: Vec<_> = oracle.documents().collect();
    for (place, a) in all.iter().enumerate() {
        let near = all[place + 1..].iter();
        let near = near.filter(|b| a.0.distance(b.0) <= DISTANCE);
        slowly.extend(near.map(|b| ((a.0, a.1.to_owned()), (b.0, b.1.to_owned()))));
    }
    assert_eq!(pairs, slowly);
}

async fn lose_nodes(replicas: usize) {
    const NODES: usize = 3;
    let mut cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(replicas));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let mut oracle = Oracle::default();
    let first = documents(1);
    let inserted = change(&client, &mut oracle, &first).await.unwrap();
    assert_eq!(inserted, oracle.len());
    check(&client, &oracle).await;
    let stored = client.list_stored_corpora().await.unwrap();
    assert_eq!(stored[0].document_count, oracle.len());
    block_in_place(|| cluster.end_node(0, End::Killed));
    check(&client, &oracle).await;
    // The others go on without it.
    change(&client, &mut oracle, &documents(2)).await.unwrap();
    check(&client, &oracle).await;
    if replicas == NODES {
        block_in_place(|| cluster.end_node(1, End::Killed));
        check(&client, &oracle).await;
        // Another disk must not be lost before one of the two is back.
        let refused = change(&client, &mut oracle, &documents(3)).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason(), Some(Reason::NodeUnreachable), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_replicas_answers_for_both() {
    lose_nodes(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_replicas_answers_for_all_and_two_take_changes() {
    lose_nodes(3).await;
}

/// Each node tells of the shards of which it has tables, and of each how many documents it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hot_replicas_tell_of_their_shards_and_cold_ones_do_not() {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(3).with_hot(2));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let mut oracle = Oracle::default();
    change(&client, &mut oracle, &documents(1)).await.unwrap();
    let corpus = client.get_corpus("crawl").await.unwrap();
    assert_eq!(corpus.document_count, Some(oracle.len()));
    let mut counted: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for node in corpus.nodes {
        assert_eq!(node.shards.len(), node.document_counts.len());
        for (shard, count) in node.shards.into_iter().zip(node.document_counts) {
            counted.entry(shard).or_default().push(count);
        }
    }
    assert_eq!(counted.len(), 256);
    for (shard, counts) in counted {
        assert_eq!(counts.len(), 2, "shard {shard}");
        assert_eq!(counts[0], counts[1], "shard {shard}");
    }
}
