//! Many requests of one document or query at once: each has its own answer, and fails for its own nodes only.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use simshard_client::{
    Client, ClientError, Documents, FindAnswer, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use simshard_cluster::{ClusterLayout, Node};
use simshard_simhash::{Layout, Tables};
use simshard_testkit::ForgetfulCluster;
use simshard_topology::{NodeId, ShardId};
use tokio::task::JoinSet;

/// Requests at once.
const REQUESTS: u64 = 200;

/// A request that waits for the frozen node takes this long.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Three nodes and a router, and a client with little patience.
struct Cluster {
    processes: ForgetfulCluster,
    client: Client,
}

impl Cluster {
    async fn start() -> Self {
        let processes = ForgetfulCluster::start(3);
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
        let found = find(&self.client, fingerprint, false).await?;
        let matches = found.queries[0].matches.iter();
        Ok(matches.map(|found| found.fingerprint).collect())
    }

    /// Keeps asking what waits for the frozen node, with much time, and never reads an answer; until it is dropped.
    async fn ask_in_vain(&self, fingerprints: &[Fingerprint], allow_partial: bool) {
        let mut every = tokio::time::interval(Duration::from_millis(20));
        let mut waiting = JoinSet::new();
        for &fingerprint in fingerprints.iter().cycle() {
            every.tick().await;
            let client = self.client.clone().with_timeout(Duration::from_secs(20));
            waiting.spawn(async move { find(&client, fingerprint, allow_partial).await.is_ok() });
        }
    }
}

async fn find(
    client: &Client,
    fingerprint: Fingerprint,
    allow_partial: bool,
) -> Result<FindAnswer, ClientError> {
    let options = SearchSpec {
        allow_partial,
        ..SearchSpec::default()
    };
    let queries = Queries::Fingerprints(vec![fingerprint]);
    client.find_all("c", queries, options).await
}

/// Asks about one fingerprint after the other, over and over for this long; calls `check` with each answer and how long
/// it took.
async fn ask_for(
    time: Duration,
    client: &Client,
    fingerprints: &[Fingerprint],
    allow_partial: bool,
    check: impl Fn(Fingerprint, Result<FindAnswer, ClientError>, Duration),
) {
    let end = Instant::now() + time;
    for &fingerprint in fingerprints.iter().cycle() {
        let begin = Instant::now();
        if begin > end {
            return;
        }
        let found = find(client, fingerprint, allow_partial).await;
        check(fingerprint, found, begin.elapsed());
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
    // Each client shares half of its documents with the next one. A document is new to only one of them.
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
        if is_on(fingerprint, "n3") {
            let error = inserted.unwrap_err();
            assert_eq!(error.reason(), Some(Reason::NodeUnreachable));
            let message = error.to_string();
            assert!(
                message.contains("n3") && !message.contains("n1"),
                "{message}"
            );
        } else {
            assert_eq!(inserted.unwrap(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_need_no_frozen_node_are_answered() {
    let cluster = Cluster::start().await;
    let set = fingerprints(3);
    for &fingerprint in &set {
        cluster.insert(fingerprint).await.unwrap();
    }
    cluster.processes.nodes[2].freeze();
    let found = join_all(set.iter().map(|&one| cluster.find(one))).await;
    let others: BTreeSet<bool> = set.iter().map(|&one| is_on(one, "n3")).collect();
    assert_eq!(others.len(), 2, "some need it, some do not");
    for (&fingerprint, found) in set.iter().zip(found) {
        if is_on(fingerprint, "n3") {
            let error = found.unwrap_err();
            assert_eq!(error.reason(), Some(Reason::DeadlineTooShort));
            let message = error.to_string();
            assert!(
                message.contains("n3") && !message.contains("n1"),
                "{message}"
            );
        } else {
            assert_eq!(found.unwrap(), [fingerprint]);
        }
    }
    cluster.processes.nodes[2].thaw();
}

/// Those of a set that need the third node, and those that do not.
fn by_need(set: &[Fingerprint]) -> (Vec<Fingerprint>, Vec<Fingerprint>) {
    set.iter().partition(|&&one| is_on(one, "n3"))
}

/// FI1. That no time at all is lost, the router's own tests show on a paused clock; here it takes less than half of what
/// a request takes that waits for the frozen node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_requests_wait_for_a_frozen_node_others_are_answered() {
    let cluster = Cluster::start().await;
    let (need_it, others) = by_need(&fingerprints(4));
    cluster.processes.nodes[2].freeze();
    let healthy = |_, found: Result<FindAnswer, ClientError>, took| {
        assert!(found.is_ok(), "{found:?}");
        assert!(took < TIMEOUT / 2, "{took:?}");
    };
    let time = Duration::from_secs(4);
    tokio::select! {
        () = cluster.ask_in_vain(&need_it, false) => {}
        () = ask_for(time, &cluster.client, &others, false, healthy) => {}
    }
    cluster.processes.nodes[2].thaw();
}

/// FI2. A search that took longer than its own time would fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partial_search_waits_for_a_frozen_node_if_it_needs_it_and_half_of_its_own_time() {
    let cluster = Cluster::start().await;
    let (need_it, others) = by_need(&fingerprints(5));
    for &fingerprint in &others {
        cluster.insert(fingerprint).await.unwrap();
    }
    cluster.processes.nodes[2].freeze();
    let hasty = cluster.client.clone().with_timeout(Duration::from_secs(2));
    let complete = |fingerprint, found: Result<FindAnswer, ClientError>, _| {
        let found = found.unwrap();
        assert_eq!(found.queries[0].matches[0].fingerprint, fingerprint);
        assert!(found.unreachable_nodes.is_empty());
    };
    let partial = |_, found: Result<FindAnswer, ClientError>, _| {
        let unreachable = found.unwrap().unreachable_nodes;
        assert_eq!(Vec::from_iter(unreachable), ["n3"]);
    };
    let time = Duration::from_secs(3);
    tokio::select! {
        () = cluster.ask_in_vain(&need_it, true) => {}
        _ = join(
            ask_for(time, &hasty, &others, true, complete),
            ask_for(time, &hasty, &need_it, true, partial),
        ) => {}
    }
    cluster.processes.nodes[2].thaw();
}
