//! `FindPairs`: every pair of documents within the distance, once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use simshard_client::{Client, Fingerprint, v1};
use simshard_simhash::synthetic::Data;
use simshard_testkit::{Oracle, TestCluster};

use super::scene::{LAYOUTS, columns, everywhere, fill, stub};

/// Two documents, the smaller one first, and their distance.
pub(crate) type Pair = ((Fingerprint, String), (Fingerprint, String), u32);

fn ordered(a: (Fingerprint, &str), b: (Fingerprint, &str)) -> Pair {
    let distance = a.0.distance(b.0);
    let (a, b) = (a.min(b), a.max(b));
    ((a.0, a.1.to_owned()), (b.0, b.1.to_owned()), distance)
}

/// All pairs that a stream yields; none may come twice.
async fn found(client: &Client, corpus: &str, distance: Option<u32>) -> BTreeSet<Pair> {
    let mut found = BTreeSet::new();
    let batches = client.find_pairs(corpus, distance).await.unwrap();
    let mut batches = std::pin::pin!(batches);
    while let Some(batch) = batches.try_next().await.unwrap() {
        for pair in batch.iter() {
            let a = (pair.fingerprint_a, pair.id_a);
            let ordered = ordered(a, (pair.fingerprint_b, pair.id_b));
            assert_eq!(pair.distance, ordered.2);
            assert!(pair.fingerprint_a <= pair.fingerprint_b);
            assert!(found.insert(ordered), "{corpus}: {pair:?} came twice");
        }
    }
    found
}

/// All pairs by comparing each document with each.
fn slowly(oracle: &Oracle, distance: u32) -> BTreeSet<Pair> {
    let documents: Vec<_> = oracle.documents().collect();
    let mut pairs = BTreeSet::new();
    for (place, &a) in documents.iter().enumerate() {
        let others = documents[place + 1..].iter();
        let near = others.filter(|b| a.0.distance(b.0) <= distance);
        pairs.extend(near.map(|&b| ordered(a, b)));
    }
    pairs
}

async fn every_layout_on(nodes: usize) {
    let cluster = TestCluster::start(nodes).await;
    for (blocks, distance) in LAYOUTS {
        for data in [Data::Clustered, Data::Skewed] {
            let corpus = format!("{}-{blocks}-{distance}", data.name());
            cluster.create_corpus(&corpus, blocks, distance).await;
            let oracle = fill(&cluster.client, &corpus, data, 500).await;
            for max_distance in [distance, distance / 2] {
                let found = found(&cluster.client, &corpus, Some(max_distance)).await;
                let expected = slowly(&oracle, max_distance);
                assert!(expected.len() > 100, "{corpus}: too easy");
                assert!(found == expected, "{corpus}, {max_distance}, {nodes} nodes");
            }
        }
    }
    cluster.stop().await;
}

/// J6, PF1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_finds_every_pair_once() {
    every_layout_on(1).await;
}

/// J6, PF1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_find_every_pair_once() {
    every_layout_on(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_distance_it_is_that_of_the_corpus() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    assert!(found(&cluster.client, "c", None).await.is_empty());
    let oracle = fill(&cluster.client, "c", Data::Clustered, 300).await;
    assert!(found(&cluster.client, "c", None).await == slowly(&oracle, 3));
    cluster.stop().await;
}

/// The documents of two fingerprints fill several messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_fit_no_message_make_all_their_pairs() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    let mut oracle = Oracle::default();
    for fingerprint in [4, 5, 1 << 40] {
        let id = |number| format!("{number}-{}", "x".repeat(1000));
        let documents: Vec<_> = (0..900)
            .map(|number| (Fingerprint(fingerprint), id(number)))
            .collect();
        for (fingerprint, id) in &documents {
            oracle.insert(*fingerprint, id);
        }
        cluster
            .client
            .insert("c", columns(&documents))
            .await
            .unwrap();
    }
    let mut count = 0;
    let batches = cluster.client.find_pairs("c", Some(1)).await.unwrap();
    let mut batches = std::pin::pin!(batches);
    let mut seen = BTreeSet::new();
    while let Some(batch) = batches.try_next().await.unwrap() {
        for pair in batch.iter() {
            count += 1;
            let number = |id: &str| id.split('-').next().unwrap().parse::<u16>().unwrap();
            let (a, b) = (pair.fingerprint_a.0, pair.fingerprint_b.0);
            assert!(seen.insert((a, number(pair.id_a), b, number(pair.id_b))));
        }
    }
    assert_eq!(count, 3 * (900 * 899 / 2) + 900 * 900);
    cluster.stop().await;
}

/// Inserts and removes near-duplicates of what is there, until it is told to stop.
async fn keep_changing(client: Client, near: Vec<Fingerprint>, stop: Arc<AtomicBool>) {
    let near = near
        .into_iter()
        .map(|f| (Fingerprint(f.0 ^ 1), "changing".to_owned()));
    let changing: Vec<_> = near.collect();
    while !stop.load(Ordering::Relaxed) {
        for part in changing.chunks(500) {
            client.insert("c", columns(part)).await.unwrap();
        }
        for part in changing.chunks(300) {
            client.remove("c", columns(part)).await.unwrap();
        }
    }
}

/// PF1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairs_that_were_acknowledged_are_found_once_while_others_change() {
    let cluster = TestCluster::start(3).await;
    for (blocks, distance) in [(5, 3), (9, 8)] {
        cluster.create_corpus("c", blocks, distance).await;
        let oracle = fill(&cluster.client, "c", Data::Clustered, 3_000).await;
        let expected = slowly(&oracle, 3);
        let near = oracle
            .documents()
            .map(|(fingerprint, _)| fingerprint)
            .collect();
        let stop = Arc::new(AtomicBool::new(false));
        let changes = keep_changing(cluster.client.clone(), near, Arc::clone(&stop));
        let changes = tokio::spawn(changes);
        for _ in 0..3 {
            let mut found = found(&cluster.client, "c", Some(3)).await;
            found.retain(|(a, b, _)| a.1 != "changing" && b.1 != "changing");
            assert!(found == expected, "({blocks}, {distance})");
        }
        stop.store(true, Ordering::Relaxed);
        changes.await.unwrap();
        cluster.client.delete_corpus("c").await.unwrap();
    }
    cluster.stop().await;
}

/// PF2: more pairs than all buffers hold, and no reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_pairs_block_no_write_and_no_search() {
    let cluster = TestCluster::start(2).await;
    for (corpus, blocks, distance) in [("c", 5, 3), ("short", 9, 8)] {
        cluster.create_corpus(corpus, blocks, distance).await;
        // Each is near hundreds of others: millions of pairs.
        let dense: Vec<_> = (0..20_000_u64)
            .map(|low| (Fingerprint(low << 20), format!("{low}")))
            .collect();
        cluster
            .client
            .insert(corpus, columns(&dense))
            .await
            .unwrap();
        let mut stalled = Vec::new();
        for _ in 0..6 {
            let request = v1::FindPairsRequest {
                corpus: corpus.to_owned(),
                ..Default::default()
            };
            let answers = stub(&cluster).find_pairs(request).await.unwrap();
            let mut answers = answers.into_inner();
            answers.message().await.unwrap().unwrap();
            stalled.push(answers);
        }
        let client = cluster.client.clone().with_timeout(Duration::from_secs(20));
        let more = everywhere();
        client.insert(corpus, columns(&more)).await.unwrap();
        client.insert(corpus, columns(&dense)).await.unwrap();
        client.remove(corpus, columns(&more)).await.unwrap();
        drop(stalled);
    }
    cluster.stop().await;
}
