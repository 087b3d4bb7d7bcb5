//! The router against a linear scan: every promised layout, on 1, 2, 3 and 5
//! nodes, over random, clustered and skewed sets with 0 and 2^64-1 in them.

use simshard_client::{Documents, FindOptions, Fingerprint, Queries};
use simshard_simhash::synthetic::{self, Data};
use simshard_testkit::{Oracle, TestCluster, promised_layouts};

/// Documents and queries of one set. The long mode takes more of both.
fn sizes() -> (usize, usize) {
    match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => (5_000, 1_000),
        None => (400, 60),
    }
}

fn with_extremes(mut set: Vec<Fingerprint>) -> Vec<Fingerprint> {
    set.extend([0, u64::MAX, 1, u64::MAX - 1].map(Fingerprint));
    set
}

/// Every third fingerprint has two ids, and one of them is empty now and then.
fn documents(set: &[Fingerprint]) -> (Vec<Fingerprint>, Vec<String>) {
    let mut fingerprints = Vec::new();
    let mut ids = Vec::new();
    for (number, &fingerprint) in set.iter().enumerate() {
        fingerprints.push(fingerprint);
        ids.push(format!("document-{number}"));
        if number % 3 == 0 {
            fingerprints.push(fingerprint);
            ids.push(if number % 2 == 0 {
                String::new()
            } else {
                format!("copy-{number}")
            });
        }
    }
    (fingerprints, ids)
}

fn columns(fingerprints: &[Fingerprint], ids: &[String]) -> Documents {
    Documents {
        keys: Queries::Fingerprints(fingerprints.to_vec()),
        ids: ids.to_vec(),
    }
}

async fn check(
    cluster: &TestCluster,
    corpus: &str,
    oracle: &Oracle,
    queries: &[Fingerprint],
    distance: u32,
) {
    for max_distance in [distance, distance / 2] {
        let options = FindOptions {
            max_distance: Some(max_distance),
            ..FindOptions::default()
        };
        let batch = Queries::Fingerprints(queries.to_vec());
        let expected = oracle.find_each(queries, max_distance);

        let found = cluster
            .client
            .find_all(corpus, batch.clone(), options)
            .await
            .unwrap();
        assert_eq!(found.completeness, None);
        assert_eq!(
            found.queries, expected,
            "{corpus}: find_all up to {max_distance}"
        );

        let first = cluster
            .client
            .find_first(corpus, batch.clone(), options)
            .await
            .unwrap();
        for (first, all) in first.queries.iter().zip(&expected) {
            assert_eq!(
                first.matches.first(),
                all.matches.first(),
                "{corpus}: find_first"
            );
            assert!(first.matches.len() <= 1 && !first.truncated);
        }

        let options = FindOptions {
            limit: 2,
            max_ids: 1,
            ..options
        };
        let cut = cluster
            .client
            .find_all(corpus, batch, options)
            .await
            .unwrap();
        for (cut, all) in cut.queries.iter().zip(&expected) {
            assert_eq!(cut.truncated, all.matches.len() > 2, "{corpus}: limit");
            assert_eq!(
                cut.matches.len(),
                all.matches.len().min(2),
                "{corpus}: limit"
            );
            for (cut, whole) in cut.matches.iter().zip(&all.matches) {
                assert_eq!(cut.ids, whole.ids[..1], "{corpus}: max_ids");
                assert_eq!(
                    cut.document_count, whole.document_count,
                    "{corpus}: max_ids"
                );
            }
        }
    }
}

async fn every_layout_on(nodes: usize) {
    let cluster = TestCluster::start(nodes).await;
    let (size, query_count) = sizes();
    for (blocks, distance) in promised_layouts() {
        for data in Data::ALL {
            let seed = u64::from(blocks * 100 + distance);
            let corpus = format!("{}-{blocks}-{distance}-seed-{seed}", data.name());
            cluster.create_corpus(&corpus, blocks, distance).await;
            let set = with_extremes(data.fingerprints(size, seed));
            let queries = with_extremes(synthetic::queries(&set, query_count, distance, seed));
            let (fingerprints, ids) = documents(&set);

            let mut oracle = Oracle::default();
            let pairs = fingerprints.iter().zip(&ids);
            let new = pairs
                .filter(|(fingerprint, id)| oracle.insert(**fingerprint, id))
                .count();
            let inserted = cluster
                .client
                .insert(&corpus, columns(&fingerprints, &ids))
                .await;
            assert_eq!(inserted.unwrap(), new as u64, "{corpus}");
            check(&cluster, &corpus, &oracle, &queries, distance).await;

            let some = fingerprints.len() / 3;
            let pairs = fingerprints.iter().zip(&ids).take(some);
            let gone = pairs
                .filter(|(fingerprint, id)| oracle.remove(**fingerprint, id))
                .count();
            let removed = columns(&fingerprints[..some], &ids[..some]);
            let removed = cluster.client.remove(&corpus, removed).await;
            assert_eq!(removed.unwrap(), gone as u64, "{corpus}");
            check(&cluster, &corpus, &oracle, &queries, distance).await;

            let shown = cluster.client.get_corpus(&corpus).await.unwrap();
            assert_eq!(shown.document_count, Some(oracle.len()), "{corpus}");
            assert_eq!(
                shown.fingerprint_count,
                Some(oracle.fingerprint_count()),
                "{corpus}"
            );
            cluster.client.delete_corpus(&corpus).await.unwrap();
        }
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_equals_a_linear_scan() {
    every_layout_on(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_equal_a_linear_scan() {
    every_layout_on(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_equal_a_linear_scan() {
    every_layout_on(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_nodes_equal_a_linear_scan() {
    every_layout_on(5).await;
}
