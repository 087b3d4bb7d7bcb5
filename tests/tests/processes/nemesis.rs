//! Nodes of a cluster with replicas are killed, frozen and robbed of their disks at random, while documents are inserted, removed and
//! looked for. What was acknowledged is found, what was removed is not, and each shard has all its replicas in the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_cluster::{key_values_at, shard_records};
use simshard_testkit::{End, EtcdServer, ProcessCluster, is_long};
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

/// A cluster, and what its metadata are in.
struct World {
    cluster: ProcessCluster,
    etcd: Option<EtcdServer>,
    metadata: String,
    replicas: usize,
}

impl World {
    fn in_a_file(replicas: usize, hot: usize) -> Self {
        let cluster = ProcessCluster::start_hot_and_cold(NODES, replicas, hot);
        Self {
            metadata: format!("file:{}", cluster.metadata_file().display()),
            etcd: None,
            cluster,
            replicas,
        }
    }

    fn in_etcd(replicas: usize, hot: usize) -> Self {
        let etcd = EtcdServer::start();
        let metadata = etcd.url();
        Self {
            cluster: ProcessCluster::start_hot_and_cold_at(NODES, replicas, hot, &metadata),
            etcd: Some(etcd),
            metadata,
            replicas,
        }
    }

    /// Whether each shard has all its replicas in sync.
    async fn is_whole(&self) -> bool {
        let keys = key_values_at(&self.metadata).unwrap();
        let Ok(records) = shard_records(&*keys).await else {
            return false;
        };
        records
            .values()
            .all(|record| record.in_sync.len() == self.replicas)
    }

    async fn until_whole(&self) {
        until(async || self.is_whole().await).await;
    }

    /// Does something to a node or to etcd, and takes it back. A disk is lost only if all others have what it had, and
    /// what starts needs the metadata.
    async fn fault(&mut self, random: &mut Rng, was_whole: bool) {
        let node = random.usize(..NODES);
        let away = Duration::from_millis(random.u64(..3_000));
        let cluster = &mut self.cluster;
        match random.u8(..8) {
            0 | 1 => {
                cluster.freeze_node(node);
                pass(away).await;
                cluster.thaw_node(node);
            }
            2 if let Some(etcd) = &mut self.etcd => {
                block_in_place(|| etcd.stop());
                pass(away).await;
                block_in_place(|| etcd.restart());
            }
            3 if was_whole => block_in_place(|| cluster.restart_node_empty(node)),
            number => {
                let end = [End::Stopped, End::Killed][usize::from(number % 2)];
                block_in_place(|| cluster.end_node(node, end));
                pass(away).await;
                block_in_place(|| cluster.start_node(node));
            }
        }
    }
}

/// Lets this time pass, by what is done meanwhile.
async fn pass(time: Duration) {
    let begun = Instant::now();
    until(async || begun.elapsed() >= time).await;
}

async fn survive(mut world: World) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let other = world.cluster.add_router();
    create(&world.cluster.client()).await;
    let progress = Arc::new(Progress::default());
    let clients = [world.cluster.client(), world.cluster.client_of(other)];
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
    let mut waits = true;
    for _ in 0..faults() {
        world.fault(&mut random, waits).await;
        // Sometimes the next one comes before all is well.
        waits = random.u8(..3) > 0;
        if waits {
            world.until_whole().await;
        }
    }
    world.until_whole().await;
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
        block_in_place(|| world.cluster.end_node(node, End::Killed));
        for writer in &writers {
            writer.check(&clients[0]).await;
        }
        block_in_place(|| world.cluster.start_node(node));
        world.until_whole().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_survive_faults_one_after_the_other() {
    survive(World::in_a_file(2, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_survive_faults_one_after_the_other() {
    survive(World::in_a_file(3, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_whose_records_are_in_etcd_survive_faults_of_both() {
    survive(World::in_etcd(3, 2)).await;
}
