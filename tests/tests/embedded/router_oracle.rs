//! The router against a linear scan: every promised layout, on 1, 2, 3 and 5
//! nodes, over random, clustered and skewed sets with 0 and 2^64-1 in them.

use std::num::NonZeroU32;

use simshard_client::{Documents, FindAnswer, Fingerprint, Queries, QueryMatches, SearchSpec};
use simshard_simhash::synthetic::{self, Data};
use simshard_testkit::{Oracle, TestCluster, is_long, promised_layouts};

/// Queries of a request that has few.
const SMALL: usize = 16;

/// Documents and queries of one set. The long mode takes more of both.
fn sizes() -> (usize, usize) {
    if is_long() { (5_000, 1_000) } else { (400, 60) }
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

/// One corpus, and what it should answer.
struct Checked<'a> {
    cluster: &'a TestCluster,
    corpus: &'a str,
    oracle: &'a Oracle,
    queries: &'a [Fingerprint],
}

impl Checked<'_> {
    async fn up_to(&self, distance: u32) {
        for max_distance in [distance, distance / 2] {
            let options = SearchSpec {
                max_distance: Some(max_distance),
                ..SearchSpec::default()
            };
            let expected = self.oracle.find_each(self.queries, max_distance);
            let found = self.find_all(options).await;
            assert_eq!(found.queries, expected, "{}: find_all", self.corpus);
            self.find_first(options, &expected).await;
            self.find_few(options, &expected).await;
            self.in_small_requests(options, &expected).await;
        }
    }

    async fn find_all(&self, options: SearchSpec) -> FindAnswer {
        let queries = Queries::Fingerprints(self.queries.to_vec());
        let found = self.cluster.client.find_all(self.corpus, queries, options);
        let found = found.await.unwrap();
        assert!(found.unreachable_nodes.is_empty());
        found
    }

    /// Few queries at once are searched in another way.
    async fn in_small_requests(&self, options: SearchSpec, expected: &[QueryMatches]) {
        let client = &self.cluster.client;
        let requests = self.queries.chunks(SMALL).zip(expected.chunks(SMALL));
        for (queries, expected) in requests {
            let queries = Queries::Fingerprints(queries.to_vec());
            let found = client.find_all(self.corpus, queries, options).await;
            assert_eq!(found.unwrap().queries, expected, "{}: small", self.corpus);
        }
    }

    async fn find_first(&self, options: SearchSpec, expected: &[QueryMatches]) {
        let queries = Queries::Fingerprints(self.queries.to_vec());
        let first = self
            .cluster
            .client
            .find_first(self.corpus, queries, options);
        for (first, all) in first.await.unwrap().queries.iter().zip(expected) {
            let nearest = all.matches.first();
            assert_eq!(
                first.matches.first(),
                nearest,
                "{}: find_first",
                self.corpus
            );
            assert!(first.matches.len() <= 1 && !first.truncated);
        }
    }

    async fn find_few(&self, options: SearchSpec, expected: &[QueryMatches]) {
        let corpus = self.corpus;
        let few = SearchSpec {
            limit: NonZeroU32::new(2),
            max_ids: NonZeroU32::new(1),
            ..options
        };
        for (cut, all) in self.find_all(few).await.queries.iter().zip(expected) {
            let count = all.matches.len();
            assert_eq!(cut.truncated, count > 2, "{corpus}: limit");
            assert_eq!(cut.matches.len(), count.min(2), "{corpus}: limit");
            for (cut, whole) in cut.matches.iter().zip(&all.matches) {
                assert_eq!(cut.ids, whole.ids[..1], "{corpus}: max_ids");
                let counts = (cut.document_count, whole.document_count);
                assert_eq!(counts.0, counts.1, "{corpus}: max_ids");
            }
        }
    }
}

async fn every_layout_on(nodes: usize) {
    let cluster = TestCluster::start(nodes).await;
    for (blocks, distance) in promised_layouts() {
        for data in Data::ALL {
            insert_find_remove(&cluster, data, blocks, distance).await;
        }
    }
    cluster.stop().await;
}

async fn insert_find_remove(cluster: &TestCluster, data: Data, blocks: u32, distance: u32) {
    let seed = u64::from(blocks * 100 + distance);
    let corpus = format!("{}-{blocks}-{distance}-seed-{seed}", data.name());
    cluster.create_corpus(&corpus, blocks, distance).await;
    let (size, query_count) = sizes();
    let set = with_extremes(data.fingerprints(size, seed));
    let queries = with_extremes(synthetic::queries(&set, query_count, distance, seed));
    let (fingerprints, ids) = documents(&set);
    let mut oracle = Oracle::default();

    let pairs = fingerprints.iter().zip(&ids);
    let new = pairs.filter(|(fingerprint, id)| oracle.insert(**fingerprint, id));
    let new = new.count() as u64;
    let batch = columns(&fingerprints, &ids);
    let inserted = cluster.client.insert(&corpus, batch).await;
    assert_eq!(inserted.unwrap(), new, "{corpus}");
    Checked {
        cluster,
        corpus: &corpus,
        oracle: &oracle,
        queries: &queries,
    }
    .up_to(distance)
    .await;

    let some = fingerprints.len() / 3;
    let pairs = fingerprints.iter().zip(&ids).take(some);
    let gone = pairs.filter(|(fingerprint, id)| oracle.remove(**fingerprint, id));
    let gone = gone.count() as u64;
    let batch = columns(&fingerprints[..some], &ids[..some]);
    let removed = cluster.client.remove(&corpus, batch).await;
    assert_eq!(removed.unwrap(), gone, "{corpus}");
    Checked {
        cluster,
        corpus: &corpus,
        oracle: &oracle,
        queries: &queries,
    }
    .up_to(distance)
    .await;

    let shown = cluster.client.get_corpus(&corpus).await.unwrap();
    assert_eq!(shown.document_count, Some(oracle.len()), "{corpus}");
    let fingerprints = Some(oracle.fingerprint_count());
    assert_eq!(shown.fingerprint_count, fingerprints, "{corpus}");
    cluster.client.delete_corpus(&corpus).await.unwrap();
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
