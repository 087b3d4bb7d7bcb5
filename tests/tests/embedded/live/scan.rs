//! `Scan`: every document once.

use std::time::Duration;

use futures_util::TryStreamExt;
use simshard_client::{Client, Document, Fingerprint, Reason, v1};
use simshard_simhash::synthetic::Data;
use simshard_testkit::{Oracle, TestCluster};

use super::scene::{LAYOUTS, all, columns, everywhere, fill, insert_heavy, stub};

fn documents(oracle: &Oracle) -> Vec<Document> {
    let document = |(fingerprint, id): (Fingerprint, &str)| Document {
        fingerprint,
        id: id.to_owned(),
    };
    oracle.documents().map(document).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_yields_every_document_once_by_fingerprint_then_id() {
    for nodes in [1, 3] {
        let cluster = TestCluster::start(nodes).await;
        for (blocks, distance) in LAYOUTS {
            let corpus = format!("{blocks}-{distance}");
            cluster.create_corpus(&corpus, blocks, distance).await;
            let oracle = fill(&cluster.client, &corpus, Data::Skewed, 2_000).await;
            let scanned = all(cluster.client.scan(&corpus).await).await.unwrap();
            assert!(scanned == documents(&oracle), "{corpus}, {nodes} nodes");
        }
        cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_of_an_empty_corpus_ends_at_once() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    assert_eq!(all(cluster.client.scan("c").await).await.unwrap(), []);
    cluster.stop().await;
}

/// Inserts and removes, over and over, until it is dropped.
async fn keep_changing(client: Client) {
    let document = |number: u64| (Fingerprint(number << 49), format!("changing-{number}"));
    let changing: Vec<_> = (0..2_000).map(document).collect();
    loop {
        client.insert("c", columns(&changing)).await.unwrap();
        client.remove("c", columns(&changing)).await.unwrap();
    }
}

/// PA1 from end to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_change_during_a_scan_neither_hide_nor_repeat_the_others() {
    let cluster = TestCluster::start(3).await;
    cluster.create_corpus("c", 5, 3).await;
    let oracle = fill(&cluster.client, "c", Data::Clustered, 20_000).await;
    let changes = tokio::spawn(keep_changing(cluster.client.clone()));
    for _ in 0..5 {
        let mut scanned = all(cluster.client.scan("c").await).await.unwrap();
        assert!(scanned.is_sorted_by(|a, b| a < b), "one came twice");
        scanned.retain(|document| !document.id.starts_with("changing"));
        assert!(scanned == documents(&oracle));
    }
    changes.abort();
    let _ = changes.await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_scans_block_no_other_request() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    let oracle = insert_heavy(&cluster.client, "c").await;
    let mut stalled = Vec::new();
    for _ in 0..15 {
        let request = v1::ScanRequest {
            corpus: "c".to_owned(),
            ..Default::default()
        };
        let answers = stub(&cluster).scan(request).await.unwrap();
        let mut answers = answers.into_inner();
        answers.message().await.unwrap().unwrap();
        stalled.push(answers);
    }
    // Every shard can be changed and searched, and the corpus scanned.
    let client = cluster.client.clone().with_timeout(Duration::from_secs(20));
    let more = everywhere();
    client.insert("c", columns(&more)).await.unwrap();
    client.remove("c", columns(&more)).await.unwrap();
    let scanned = all(client.scan("c").await).await.unwrap();
    assert!(scanned == documents(&oracle));
    // A reader that continues gets everything.
    let mut count = 0;
    let mut rest = stalled.remove(0);
    while let Some(answer) = rest.message().await.unwrap() {
        count += answer.fingerprints.len();
    }
    assert!(count > oracle.len() as usize / 2, "{count}");
    drop(stalled);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_that_is_deleted_during_its_scan_does_not_look_complete() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    insert_heavy(&cluster.client, "c").await;
    let scan = cluster.client.scan("c").await.unwrap();
    let mut scan = Box::pin(scan);
    scan.try_next().await.unwrap().unwrap();
    cluster.client.delete_corpus("c").await.unwrap();
    let rest: Result<Vec<_>, _> = scan.try_collect().await;
    assert_eq!(rest.unwrap_err().reason(), Some(Reason::CorpusNotLoaded));
    cluster.stop().await;
}
