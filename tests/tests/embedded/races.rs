//! Requests at the same time, and routers that do not know of each other.

use std::num::NonZeroU32;

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_simhash::synthetic::Data;
use simshard_testkit::TestCluster;

fn documents(fingerprints: &[Fingerprint], writer: usize) -> Documents {
    Documents {
        keys: Queries::Fingerprints(fingerprints.to_vec()),
        ids: vec![format!("writer-{writer}"); fingerprints.len()],
    }
}

/// N2: what was acknowledged is found by every search that starts later.
async fn write_and_look(client: Client, writer: usize) {
    // Half of the fingerprints are those of the other writers as well.
    let common = Data::Clustered.fingerprints(1_000, 41);
    let own = Data::Clustered.fingerprints(1_000, 42 + writer as u64);
    let id = format!("writer-{writer}");
    for (common, own) in common.chunks(50).zip(own.chunks(50)) {
        let batch = [common, own].concat();
        client.insert("c", documents(&batch, writer)).await.unwrap();
        let queries = Queries::Fingerprints(batch.clone());
        let found = client
            .find_all("c", queries, SearchSpec::default())
            .await
            .unwrap();
        for query in &found.queries {
            let own = query.matches.first().unwrap();
            assert_eq!(own.fingerprint, query.query);
            assert!(own.ids.contains(&id), "{id} misses its own {}", query.query);
        }
        client
            .remove("c", documents(own_half(&batch), writer))
            .await
            .unwrap();
        let queries = Queries::Fingerprints(own_half(&batch).to_vec());
        let found = client
            .find_all("c", queries, SearchSpec::default())
            .await
            .unwrap();
        for one in found.queries.iter().flat_map(|query| &query.matches) {
            let removed = own_half(&batch).contains(&one.fingerprint);
            assert!(
                !removed || !one.ids.contains(&id),
                "{id} still finds what it removed"
            );
        }
    }
}

fn own_half(batch: &[Fingerprint]) -> &[Fingerprint] {
    &batch[batch.len() / 2..]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_changes_are_seen_at_once_while_others_write() {
    let cluster = TestCluster::start(3).await;
    cluster.create_corpus("c", 5, 3).await;
    let writers = (0..4).map(|writer| tokio::spawn(write_and_look(cluster.client.clone(), writer)));
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        writer.await.unwrap();
    }
    cluster.stop().await;
}

/// What goes while it is being found leaves its place to the next nearest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_hides_nothing_while_nearer_documents_come_and_go() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    let client = &cluster.client;
    client
        .insert("c", documents(&[Fingerprint(3)], 0))
        .await
        .unwrap();
    let nearer = documents(&[Fingerprint(1), Fingerprint(2)], 1);
    let (churner, churned) = (client.clone(), nearer.clone());
    let churn = tokio::spawn(async move {
        loop {
            churner.insert("c", churned.clone()).await.unwrap();
            churner.remove("c", churned.clone()).await.unwrap();
        }
    });
    for _ in 0..1_000 {
        let query = Queries::Fingerprints(vec![Fingerprint(0)]);
        let options = SearchSpec {
            limit: NonZeroU32::new(1),
            ..SearchSpec::default()
        };
        let found = client.find_all("c", query, options).await.unwrap();
        assert_eq!(found.queries[0].matches.len(), 1);
    }
    churn.abort();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_is_created_once_however_many_try() {
    let cluster = TestCluster::start(2).await;
    let request = simshard_client::v1::CreateCorpusRequest {
        name: "raced".to_owned(),
        ..Default::default()
    };
    let create = |_| {
        let (client, request) = (cluster.client.clone(), request.clone());
        tokio::spawn(async move { client.create_corpus(request).await.is_ok() })
    };
    let attempts: Vec<_> = (0..16).map(create).collect();
    let mut created = 0;
    for attempt in attempts {
        created += usize::from(attempt.await.unwrap());
    }
    assert_eq!(created, 1);
    // Those who lost took nothing away from the winner.
    let fingerprints = Data::Random.fingerprints(100, 1);
    let inserted = cluster
        .client
        .insert("raced", documents(&fingerprints, 0))
        .await;
    assert_eq!(inserted.unwrap(), 100);
    cluster.stop().await;
}
