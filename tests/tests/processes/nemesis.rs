//! Nodes and routers of a cluster with replicas are killed and frozen at random, while documents are inserted, removed and
//! looked for. What was acknowledged is found, what was removed is not, and each shard has all its replicas in the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_cluster::{FileKeyValues, shard_records};
use simshard_testkit::{End, ProcessCluster, is_long};
use tokio::task::{block_in_place, yield_now};
use tokio::time::timeout;

use crate::load::{CORPUS, create};

const NODES: usize = 3;

/// Tasks that change documents, each its own.
const WRITERS: u64 = 3;

/// Documents of a writer.
const DOCUMENTS: u64 = 200;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(120);

fn faults() -> usize {
    if is_long() { 300 } else { 8 }
}

/// What a writer knows of its documents. Those whose last change was answered with an error may be there or not.
struct Writer {
    number: u64,
    random: Rng,
    clients: Vec<Client>,
    live: BTreeMap<u64, bool>,
    unknown: u64,
}

#[derive(Default)]
struct Progress {
    done: AtomicU64,
    failed: AtomicU64,
    is_over: AtomicBool,
}

impl Writer {
    fn fingerprint(&self, document: u64) -> Fingerprint {
        let number = self.number * DOCUMENTS + document;
        Fingerprint((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    async fn run(mut self, progress: Arc<Progress>) -> Self {
        while !progress.is_over.load(Ordering::Relaxed) {
            let document = self.random.u64(..DOCUMENTS);
            let client = self.clients[self.random.usize(..self.clients.len())].clone();
            let outcome = if self.random.bool() {
                self.change(&client, document).await
            } else {
                self.look_for(&client, document).await
            };
            let count = if outcome {
                &progress.done
            } else {
                &progress.failed
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        self
    }

    /// Inserts a document, or removes it. Answers whether that was acknowledged.
    async fn change(&mut self, client: &Client, document: u64) -> bool {
        let documents = Documents {
            keys: Queries::Fingerprints(vec![self.fingerprint(document)]),
            ids: vec!["x".to_owned()],
        };
        let insert = self.random.bool();
        let outcome = if insert {
            client.insert(CORPUS, documents).await.map(|_| ())
        } else {
            client.remove(CORPUS, documents).await.map(|_| ())
        };
        if outcome.is_ok() {
            self.live.insert(document, insert);
        } else {
            self.unknown += u64::from(self.live.remove(&document).is_some());
        }
        outcome.is_ok()
    }

    /// Looks for a document: a complete answer says what is known.
    async fn look_for(&self, client: &Client, document: u64) -> bool {
        let query = Queries::Fingerprints(vec![self.fingerprint(document)]);
        let found = client.find_all(CORPUS, query, SearchSpec::default()).await;
        let Ok(found) = found else { return false };
        let mut matches = found.queries[0].matches.iter();
        let is_there = matches.any(|found| found.distance == 0);
        if let Some(&is_live) = self.live.get(&document) {
            assert_eq!(
                is_there, is_live,
                "writer {}, document {document}",
                self.number
            );
        }
        true
    }

    /// Checks everything that is known.
    async fn check(&self, client: &Client) {
        for &document in self.live.keys() {
            while !self.look_for(client, document).await {
                yield_now().await;
            }
        }
    }
}

async fn until(what: impl AsyncFn() -> bool) {
    let reached = async {
        while !what().await {
            yield_now().await;
        }
    };
    timeout(PATIENCE, reached).await.unwrap();
}

/// Whether each shard has all its replicas in sync.
async fn is_whole(cluster: &ProcessCluster, replicas: usize) -> bool {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let records = shard_records(&keys).await.unwrap();
    records
        .values()
        .all(|record| record.in_sync.len() == replicas)
}

/// Lets this time pass, by what is done meanwhile.
async fn pass(time: Duration) {
    let begun = Instant::now();
    until(async || begun.elapsed() >= time).await;
}

/// Does something to a node, and takes it back.
async fn fault(cluster: &mut ProcessCluster, random: &mut Rng, node: usize) {
    let away = Duration::from_millis(random.u64(..3_000));
    match random.u8(..3) {
        0 => {
            cluster.freeze_node(node);
            pass(away).await;
            cluster.thaw_node(node);
        }
        1 => {
            block_in_place(|| cluster.end_node(node, End::Stopped));
            pass(away).await;
            block_in_place(|| cluster.start_node(node));
        }
        _ => {
            block_in_place(|| cluster.end_node(node, End::Killed));
            pass(away).await;
            block_in_place(|| cluster.start_node(node));
        }
    }
}

async fn survive(replicas: usize) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut cluster = ProcessCluster::start_replicated(NODES, replicas);
    let other = cluster.add_router();
    create(&cluster.client()).await;
    let progress = Arc::new(Progress::default());
    let clients = [cluster.client(), cluster.client_of(other)];
    let clients = clients.map(|client| client.with_timeout(Duration::from_secs(15)));
    let writers = (0..WRITERS).map(|number| Writer {
        number,
        random: random.fork(),
        clients: clients.to_vec(),
        live: BTreeMap::new(),
        unknown: 0,
    });
    let tasks: Vec<_> = writers
        .map(|writer| tokio::spawn(writer.run(Arc::clone(&progress))))
        .collect();
    pass(Duration::from_secs(1)).await;
    for _ in 0..faults() {
        let node = random.usize(..NODES);
        fault(&mut cluster, &mut random, node).await;
        // Sometimes the next one comes before all is well.
        if random.u8(..3) > 0 {
            until(async || is_whole(&cluster, replicas).await).await;
        }
    }
    until(async || is_whole(&cluster, replicas).await).await;
    progress.is_over.store(true, Ordering::Relaxed);
    let mut writers = Vec::new();
    for task in tasks {
        writers.push(task.await.unwrap());
    }
    let unknown: u64 = writers.iter().map(|writer| writer.unknown).sum();
    let (done, failed) = (&progress.done, &progress.failed);
    println!("{done:?} done, {failed:?} failed, {unknown} times a document of unknown state");
    // Whichever node is lost now, the others know everything.
    for node in 0..NODES {
        block_in_place(|| cluster.end_node(node, End::Killed));
        for writer in &writers {
            writer.check(&clients[0]).await;
        }
        block_in_place(|| cluster.start_node(node));
        until(async || is_whole(&cluster, replicas).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_survive_faults_one_after_the_other() {
    survive(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_survive_faults_one_after_the_other() {
    survive(3).await;
}
