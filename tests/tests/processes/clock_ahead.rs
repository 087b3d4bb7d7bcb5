//! Documents that were written by a clock which was far ahead, and then set right: they harm no others, and can be
//! removed.
//!
//! No process takes such a version, so the test writes it into the directories of nodes that are stopped.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use simshard_client::{
    Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use simshard_cluster::{ClusterLayout, CorpusName, CorpusUid, FileStore, MetadataStore};
use simshard_simhash::{Layout, Tables};
use simshard_storage::{
    Change, ChangeKind, Failure, Operation, Options, Refusal, SharedChange, Sink, Store, Writer,
};
use simshard_testkit::{End, ProcessCluster, binary, run, until, until_some};
use simshard_topology::{NodeId, ShardId, Version};

const CORPUS: &str = "c";

const NODES: usize = 3;

const ALL: [usize; NODES] = [0, 1, 2];

const DAY: Duration = Duration::from_secs(86_400);

/// Three nodes and a router, with two corpora.
struct Scene {
    cluster: ProcessCluster,
    client: Client,
    layout: Arc<ClusterLayout>,
    uid: CorpusUid,
}

impl Scene {
    async fn start() -> Self {
        let cluster = ProcessCluster::start_by_layout(NODES);
        let client = cluster.client();
        for name in [CORPUS, "other"] {
            let create = v1::CreateCorpusRequest {
                name: name.to_owned(),
                ..v1::CreateCorpusRequest::default()
            };
            client.create_corpus(create).await.unwrap();
        }
        let store = FileStore::open(cluster.layout()).await.unwrap();
        let name = CorpusName::new(CORPUS).unwrap();
        Self {
            layout: store.layout().await.unwrap(),
            uid: store.corpus(&name).await.unwrap().unwrap().uid,
            cluster,
            client,
        }
    }

    /// Inserts documents as a router would have done whose clock is so far ahead, on some of the nodes.
    fn insert_ahead(&mut self, nodes: &[usize], ahead: Duration, fingerprints: &[u64]) {
        self.write(ChangeKind::Insert, nodes, ahead, fingerprints);
    }

    fn write(&mut self, kind: ChangeKind, nodes: &[usize], ahead: Duration, fingerprints: &[u64]) {
        let change = Change {
            kind,
            corpus: self.uid,
            version: ahead_by(ahead),
            shards: ShardId::all().collect(),
            documents: simshard_storage::Documents {
                fingerprints: fingerprints.iter().copied().map(Fingerprint).collect(),
                ids: Vec::new(),
            },
        };
        for &number in nodes {
            let node = NodeId::new(&format!("n{}", number + 1)).unwrap();
            let shards = self.layout.map().owned_by(&node);
            let change = Change {
                shards,
                ..change.clone()
            };
            let write = |data: &Path| write(data, change);
            self.cluster.while_stopped(number, write);
        }
    }

    async fn insert(&self, corpus: &str, fingerprints: &[u64]) -> Result<u64, ClientError> {
        self.client.insert(corpus, columns(fingerprints)).await
    }

    async fn remove(&self, fingerprints: &[u64]) -> Result<u64, ClientError> {
        self.client.remove(CORPUS, columns(fingerprints)).await
    }

    async fn remove_beyond_clock(&self, fingerprints: &[u64]) -> Result<u64, ClientError> {
        let client = self.client.clone().removing_beyond_clock();
        client.remove(CORPUS, columns(fingerprints)).await
    }

    /// Waits until a router that may have lost its connections has all nodes again.
    async fn until_all_answer(&self) {
        let all: Vec<Fingerprint> = (0..=255).map(|byte| Fingerprint(byte << 56)).collect();
        let find = || {
            let all = Queries::Fingerprints(all.clone());
            self.client.find_all(CORPUS, all, SearchSpec::default())
        };
        until("all nodes answer", async || find().await.is_ok()).await;
    }

    /// Documents of the corpus, and of all its shards together.
    async fn counts(&self) -> (u64, u64) {
        let shown = self.client.get_corpus(CORPUS).await.unwrap();
        let stored = shown.nodes.iter().flat_map(|node| &node.document_counts);
        (shown.document_count.unwrap(), stored.sum())
    }
}

/// Applies what the log has, as a node does.
struct Applier(Arc<Store>);

impl Sink<Sender<()>> for Applier {
    fn committed(&self, batch: Vec<(Operation, Sender<()>)>) {
        let tables = Tables::new(Layout::default());
        for (operation, done) in batch {
            let Operation::Change(change) = operation else {
                panic!("{operation:?}");
            };
            let shared = SharedChange::new(&change);
            for shard in change.shards.iter() {
                let is_there = |fingerprint| {
                    tables
                        .document_shards(fingerprint)
                        .any(|one| one == shard.0)
                };
                let places = (0..).zip(&change.documents.fingerprints);
                let places = places.filter(|(_, fingerprint)| is_there(**fingerprint));
                let places: Vec<u32> = places.map(|(place, _)| place).collect();
                self.0.apply(shard, &shared, &places, |_| true);
            }
            done.send(()).unwrap();
        }
    }

    fn refused(&self, _: Vec<Sender<()>>, refusal: Refusal) {
        panic!("{refusal}");
    }

    fn failed(&self, _: Vec<Sender<()>>, failure: Failure) {
        panic!("{failure}");
    }
}

fn write(data: &Path, change: Change) {
    let store = Store::open(data, change.shards, Options::default()).unwrap();
    let store = Arc::new(store);
    let writer = Writer::start(&store, Applier(Arc::clone(&store))).unwrap();
    let (ticket, done) = channel();
    writer.append(Operation::Change(change), ticket).unwrap();
    done.recv().unwrap();
    writer.close();
}

fn ahead_by(time: Duration) -> Version {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    Version::at(u64::try_from((now + time).as_millis()).unwrap())
}

fn columns(fingerprints: &[u64]) -> Documents {
    let fingerprints = fingerprints.iter().copied().map(Fingerprint).collect();
    Documents {
        keys: Queries::Fingerprints(fingerprints),
        ids: Vec::new(),
    }
}

/// A fingerprint for a number, with five shards on all nodes.
fn fingerprint(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn fingerprints(numbers: std::ops::Range<u64>) -> Vec<u64> {
    numbers.map(fingerprint).collect()
}

/// Sees to it that an error is about a clock, and says what to do; returns its message.
fn clock_ahead(error: &ClientError) -> String {
    assert_eq!(error.reason(), Some(Reason::ClockAhead), "{error}");
    let message = error.to_string();
    assert!(message.contains("set the clocks"), "{message}");
    message
}

/// CH3, V3: once one of them was met, every write of the router was refused, of whatever corpus.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_of_tomorrow_fails_its_own_request_and_harms_no_other_document() {
    let mut scene = Scene::start().await;
    let poisoned = fingerprint(1);
    scene.insert_ahead(&ALL, DAY, &[poisoned]);
    scene.until_all_answer().await;
    let message = clock_ahead(&scene.remove(&[poisoned]).await.unwrap_err());
    assert!(message.contains("--beyond-clock"), "{message}");
    assert!(message.contains(&poisoned.to_string()), "{message}");

    let others = fingerprints(2..400);
    assert_eq!(scene.insert(CORPUS, &others).await.unwrap(), 398);
    assert_eq!(scene.insert("other", &others).await.unwrap(), 398);
    assert_eq!(scene.remove(&others[..10]).await.unwrap(), 10);

    // In one request: the others of it are removed, and it fails.
    let request = [&others[10..320], &[poisoned]].concat();
    clock_ahead(&scene.remove(&request).await.unwrap_err());
    assert_eq!(scene.counts().await.0, 1 + 398 - 320);

    // In one batch, each with its own answer.
    let requests = (0..200).map(async |number: usize| match number % 20 {
        0 => clock_ahead(&scene.remove(&[poisoned]).await.unwrap_err()).is_empty(),
        _ => {
            scene
                .remove(&[fingerprint(1000 + number as u64)])
                .await
                .unwrap()
                > 0
        }
    });
    assert!(join_all(requests).await.into_iter().all(|removed| !removed));
    assert_eq!(
        scene.insert(CORPUS, &[poisoned]).await.unwrap(),
        0,
        "it is there"
    );
    assert_eq!(scene.remove(&others).await.unwrap(), 398 - 320);
}

/// CH2: on all nodes with one version, though they had several, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_of_any_time_are_removed_beyond_the_clock_from_all_their_shards() {
    let mut scene = Scene::start().await;
    let (both, first, second) = (fingerprint(1), fingerprint(2), fingerprint(3));
    scene.insert_ahead(&ALL, DAY, &[both]);
    scene.insert_ahead(&[0], DAY, &[first, both]);
    scene.insert_ahead(&[1], 2 * DAY, &[second, both]);
    scene.until_all_answer().await;
    let normal = fingerprint(4);
    scene.insert(CORPUS, &[normal]).await.unwrap();
    let all = [both, first, second, normal];
    clock_ahead(&scene.remove(&all).await.unwrap_err());
    let url = scene.cluster.url();
    let args = [
        "remove",
        "--corpus",
        CORPUS,
        "--beyond-clock",
        "--router",
        &url,
    ];
    let input: String = all.map(|one| format!("\t{one}\n")).concat();
    let args = [&args[..], &["--format", "tsv"]].concat();
    let output = run(binary(), args, input);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(scene.counts().await, (0, 0));

    // Again, changes nothing, nor does a start that replays the log.
    for number in 0..NODES {
        scene.cluster.restart_node(number, End::Killed);
    }
    scene.until_all_answer().await;
    assert_eq!(scene.counts().await, (0, 0));
    assert_eq!(scene.remove(&all).await.unwrap(), 0);
    assert_eq!(scene.remove_beyond_clock(&all).await.unwrap(), 0);

    // What was removed after tomorrow is not inserted before; all else is.
    let message = clock_ahead(&scene.insert(CORPUS, &[both]).await.unwrap_err());
    assert!(message.contains(&both.to_string()), "{message}");
    assert_eq!(scene.insert(CORPUS, &[normal]).await.unwrap(), 1);
    assert_eq!(scene.remove_beyond_clock(&[normal]).await.unwrap(), 1);
    assert_eq!(
        scene.insert(CORPUS, &[normal]).await.unwrap(),
        1,
        "its version is of today"
    );
}

/// CH3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_is_removed_once_its_version_is_a_minute_ahead_and_the_clock_stays() {
    let mut scene = Scene::start().await;
    let (near, soon) = (fingerprint(1), fingerprint(2));
    scene.insert_ahead(&ALL, Duration::from_secs(45), &[near]);
    scene.insert_ahead(&ALL, Duration::from_secs(65), &[soon]);
    scene.until_all_answer().await;
    assert_eq!(scene.remove(&[near]).await.unwrap(), 1);
    let remove = async || {
        let removed = scene.remove(&[soon]).await;
        removed.inspect_err(|error| drop(clock_ahead(error))).ok()
    };
    assert_eq!(until_some("the document is removed", remove).await, 1);
    assert_eq!(scene.counts().await, (0, 0));
    // The clock has not followed: what it stamps is no later than what another removes that is 35 s ahead.
    let others = fingerprints(3..50);
    assert_eq!(scene.insert(CORPUS, &others).await.unwrap(), 47);
    scene.write(ChangeKind::Remove, &ALL, Duration::from_secs(35), &others);
    scene.until_all_answer().await;
    assert_eq!(scene.counts().await, (0, 0));
}
