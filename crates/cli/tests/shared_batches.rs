//! Single requests that go together, many clients at once: each has its own answer, and fails for its own nodes only.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use simshard_client::{
    Client, ClientError, Documents, FindOptions, Fingerprint, Queries, Reason, v1,
};
use simshard_cluster::{ClusterLayout, Node};
use simshard_simhash::{Layout, Tables};
use simshard_testkit::ForgetfulCluster;
use simshard_topology::{NodeId, ShardId};

const BINARY: &str = env!("CARGO_BIN_EXE_simshard");

/// Requests at once.
const REQUESTS: u64 = 200;

/// A request that waits for the frozen node takes so long.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Three nodes and a router, and a client with little patience.
struct Cluster {
    processes: ForgetfulCluster,
    client: Client,
}

impl Cluster {
    async fn start() -> Self {
        let processes = ForgetfulCluster::start(BINARY, 3);
        let client = Client::new(processes.router.url()).unwrap();
        let client = client.with_timeout(TIMEOUT);
        let corpus = v1::CreateCorpusRequest {
            name: "c".to_owned(),
            ..Default::default()
        };
        client.create_corpus(corpus).await.unwrap();
        Self { processes, client }
    }

    async fn insert(&self, fingerprint: Fingerprint) -> Result<u64, ClientError> {
        let documents = Documents {
            keys: Queries::Fingerprints(vec![fingerprint]),
            ids: vec![],
        };
        self.client.insert("c", documents).await
    }

    async fn find(&self, fingerprint: Fingerprint) -> Result<Vec<Fingerprint>, ClientError> {
        let queries = Queries::Fingerprints(vec![fingerprint]);
        let options = FindOptions::default();
        let found = self.client.find_all("c", queries, options).await?;
        let matches = found.queries[0].matches.iter();
        Ok(matches.map(|found| found.fingerprint).collect())
    }
}

fn fingerprints(seed: u64) -> Vec<Fingerprint> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..REQUESTS).map(|_| Fingerprint(random.u64(..))).collect()
}

/// Whether a document is stored on this node of three.
fn is_on(fingerprint: Fingerprint, node: &str) -> bool {
    let tables = Tables::new(Layout::default());
    let nodes = ["n1", "n2", "n3"].map(|name| Node {
        id: NodeId::new(name).unwrap(),
        address: format!("http://{name}:7470"),
    });
    let layout = ClusterLayout::planned(nodes.into(), 1).unwrap();
    let mut shards = tables.document_shards(fingerprint);
    shards.any(|shard| layout.map().owner(ShardId(shard)).as_str() == node)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_requests_has_its_own_answer() {
    let cluster = Cluster::start().await;
    let set = fingerprints(1);
    // Everybody inserts half of what the next one does, too: each document is new to one of them.
    let inserts = set
        .iter()
        .chain(&set[..100])
        .map(|&one| cluster.insert(one));
    let inserted: u64 = join_all(inserts)
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    assert_eq!(inserted, REQUESTS);
    let finds = set.iter().map(|&one| cluster.find(one));
    for (&asked, found) in set.iter().zip(join_all(finds).await) {
        assert_eq!(found.unwrap(), [asked]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_need_no_lost_node_succeed_and_are_counted() {
    let mut cluster = Cluster::start().await;
    cluster.processes.nodes.pop().unwrap().kill();
    let set = fingerprints(2);
    let inserted = join_all(set.iter().map(|&one| cluster.insert(one))).await;
    for (&fingerprint, inserted) in set.iter().zip(inserted) {
        match is_on(fingerprint, "n3") {
            false => assert_eq!(inserted.unwrap(), 1),
            true => {
                let error = inserted.unwrap_err();
                assert_eq!(error.reason(), Some(Reason::NodeUnreachable));
                let message = error.to_string();
                assert!(
                    message.contains("n3") && !message.contains("n1"),
                    "{message}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_need_no_frozen_node_do_not_wait_for_it() {
    let cluster = Cluster::start().await;
    let set = fingerprints(3);
    for &fingerprint in &set {
        cluster.insert(fingerprint).await.unwrap();
    }
    cluster.processes.nodes[2].freeze();
    let begin = Instant::now();
    let finds = set
        .iter()
        .map(async |&one| (cluster.find(one).await, begin.elapsed()));
    let found = join_all(finds).await;
    let others: BTreeSet<bool> = set.iter().map(|&one| is_on(one, "n3")).collect();
    assert_eq!(others.len(), 2, "some need it, some do not");
    for (&fingerprint, (found, took)) in set.iter().zip(found) {
        match is_on(fingerprint, "n3") {
            false => {
                assert_eq!(found.unwrap(), [fingerprint]);
                assert!(took < TIMEOUT / 2, "{took:?}");
            }
            true => {
                let error = found.unwrap_err();
                assert_eq!(error.reason(), Some(Reason::DeadlineTooShort));
                let message = error.to_string();
                assert!(
                    message.contains("n3") && !message.contains("n1"),
                    "{message}"
                );
            }
        }
    }
    cluster.processes.nodes[2].thaw();
}
