//! Small searches and large batches on one node at once: neither class waits until the other is done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use simshard_cluster::{ClusterLayout, Node, random_corpus_uid};
use simshard_proto::endpoint::limited;
use simshard_proto::matches_from_bytes;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_testkit::{ForgetfulCluster, PATIENCE};
use simshard_topology::NodeId;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

type Stub = ShardServiceClient<Channel>;

/// Batches that are in flight at once.
const BATCHES: usize = 60;

/// Queries of a batch: with [`CROWD`] matches each, and an id of 40 bytes a match, an answer has some 12 MB.
const QUERIES: usize = 112;

/// All within 3 bits of the center of the crowd and of its 64 nearest neighbours.
const CROWD: usize = 1 + 64 + 64 * 63 / 2;

/// Documents that are near no other.
const LONELY: usize = 2_000;

/// Single searches of a measurement.
const SINGLES: usize = 300;

/// Where a node listens, and the corpus that all requests are about.
struct Scene {
    url: String,
    target: pb::Target,
    crowd: Vec<u64>,
    lonely: Vec<u64>,
}

impl Scene {
    /// A node that runs for as long as the first of both is kept: tasks may still hold the other.
    async fn start(seed: u64) -> (ForgetfulCluster, Arc<Self>) {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let center = random.u64(..);
        let bits = 0..64_u64;
        let mut crowd = vec![center];
        crowd.extend(bits.clone().map(|bit| center ^ 1 << bit));
        let pairs = bits.flat_map(|a| (0..a).map(move |b| 1 << a | 1 << b));
        crowd.extend(pairs.map(|pair: u64| center ^ pair));
        assert_eq!(crowd.len(), CROWD);
        // Room for all answers at once, so that none is refused.
        let cluster = ForgetfulCluster::start_with(1, &["--in-flight-mib", "2048"], &[]);
        let scene = Self {
            url: cluster.nodes[0].url().to_owned(),
            target: target(),
            crowd,
            lonely: (0..LONELY).map(|_| random.u64(..)).collect(),
        };
        scene.fill().await;
        (cluster, Arc::new(scene))
    }

    async fn fill(&self) {
        let mut stub = self.stub();
        let created = stub.create_corpus(pb::CreateCorpusRequest {
            target: Some(self.target.clone()),
            node: "n1".to_owned(),
        });
        created.await.unwrap();
        let documents = self.crowd.iter().chain(&self.lonely);
        let fingerprints: Vec<u64> = documents.copied().collect();
        let change = pb::Change {
            target: Some(self.target.clone()),
            kind: pb::ChangeKind::Insert.into(),
            shards: (0..=255).collect(),
            ids: fingerprints
                .iter()
                .map(|one| format!("{one:040}"))
                .collect(),
            fingerprints,
            version: 1,
            beyond_clock: false,
            repairs: false,
        };
        let answer = self.lane().await.ask(Work::from(change)).await;
        assert!(matches!(answer, Outcome::Changed(_)), "{answer:?}");
    }

    /// The node's interface, on a connection of its own.
    fn stub(&self) -> Stub {
        let endpoint = Endpoint::from_shared(self.url.clone()).unwrap();
        let endpoint = limited(endpoint);
        Stub::new(endpoint.connect_lazy()).max_decoding_message_size(usize::MAX)
    }

    async fn lane(&self) -> Lane {
        Lane::open(self.stub()).await
    }

    fn find(&self, fingerprints: Vec<u64>) -> Work {
        Work::from(pb::FindAll {
            target: Some(self.target.clone()),
            shards: (0..=255).collect(),
            active_lead_groups: 0b1111,
            max_distance: 3,
            fingerprints,
            ..Default::default()
        })
    }

    /// Searches for one document after the other, and returns how long each search took.
    async fn singles(&self, lane: &mut Lane, count: usize) -> Vec<Duration> {
        let mut taken = Vec::new();
        for &one in self.lonely.iter().cycle().take(count) {
            let begin = Instant::now();
            let answer = lane.ask(self.find(vec![one])).await;
            taken.push(begin.elapsed());
            assert_eq!(matches(answer), 1);
        }
        taken
    }

    /// Has one batch after the other answered, and counts them, until this is dropped.
    async fn batches(&self, mut lane: Lane, answered: &watch::Sender<usize>) {
        let queries = self.crowd[..=64].iter().copied().cycle().take(QUERIES);
        let queries: Vec<u64> = queries.collect();
        loop {
            let answer = lane.ask(self.find(queries.clone())).await;
            assert_eq!(matches(answer), QUERIES * CROWD);
            answered.send_modify(|answered| *answered += 1);
        }
    }
}

/// A corpus with the default layout, in a cluster of one node.
fn target() -> pb::Target {
    let node = Node {
        id: NodeId::new("n1").unwrap(),
        address: "http://n1:7470".to_owned(),
    };
    let layout = ClusterLayout::planned(vec![node], 1).unwrap();
    pb::Target {
        corpus_uid: random_corpus_uid().to_string(),
        blocks: 5,
        distance: 3,
        map_digest: layout.map().digest().0,
        ..pb::Target::default()
    }
}

/// A stream of work with one request at a time.
struct Lane {
    requests: mpsc::Sender<pb::WorkRequest>,
    answers: Streaming<pb::WorkResponse>,
}

impl Lane {
    async fn open(mut stub: Stub) -> Self {
        let (requests, receiver) = mpsc::channel(1);
        let answers = stub.work(ReceiverStream::new(receiver)).await.unwrap();
        Self {
            requests,
            answers: answers.into_inner(),
        }
    }

    async fn ask(&mut self, work: Work) -> Outcome {
        let item = pb::WorkItem {
            sequence: 1,
            timeout_micros: u64::try_from(PATIENCE.as_micros()).unwrap(),
            work: Some(work),
        };
        let request = pb::WorkRequest { items: vec![item] };
        self.requests.send(request).await.unwrap();
        let mut answer = self.answers.message().await.unwrap().unwrap();
        answer.outcomes.pop().unwrap().outcome.unwrap()
    }
}

fn matches(answer: Outcome) -> usize {
    let Outcome::Matches(bytes) = answer else {
        panic!("{answer:?}")
    };
    matches_from_bytes(bytes).unwrap().fingerprints.len()
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// A client of large batches, with a thread of its own, until it is dropped.
struct Batches {
    answered: watch::Receiver<usize>,
    client: Option<Runtime>,
}

impl Batches {
    /// Keeps `count` batches in flight, each on a stream of its own, on two connections.
    async fn start(scene: &Arc<Scene>, count: usize) -> Self {
        let mut client = tokio::runtime::Builder::new_multi_thread();
        let client = client.worker_threads(1).enable_all().build().unwrap();
        let (counter, answered) = watch::channel(0);
        let scene = Arc::clone(scene);
        let (opened, all_opened) = oneshot::channel();
        client.spawn(async move {
            let stubs = [scene.stub(), scene.stub()];
            let mut lanes = JoinSet::new();
            for stub in stubs.iter().cycle().take(count) {
                let lane = Lane::open(stub.clone()).await;
                let (scene, counter) = (Arc::clone(&scene), counter.clone());
                lanes.spawn(async move { scene.batches(lane, &counter).await });
            }
            opened.send(()).unwrap();
            while let Some(ended) = lanes.join_next().await {
                ended.unwrap();
            }
        });
        all_opened.await.unwrap();
        let mut batches = Self {
            answered,
            client: Some(client),
        };
        // Then all of them are in flight in the node.
        batches.wait_for(2).await;
        batches
    }

    /// Waits until `more` more are answered.
    async fn wait_for(&mut self, more: usize) {
        let enough = *self.answered.borrow() + more;
        let all = self.answered.wait_for(|answered| *answered >= enough);
        let all = timeout(PATIENCE, all).await;
        all.expect("answers to batches").unwrap();
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            client.shutdown_background();
        }
    }
}

/// N4.
#[tokio::test]
async fn a_single_search_does_not_wait_for_large_batches() {
    let (_cluster, scene) = Scene::start(1).await;
    let mut lane = scene.lane().await;
    // The first ones find nothing warm.
    scene.singles(&mut lane, SINGLES / 10).await;
    let alone = p99(scene.singles(&mut lane, SINGLES).await);
    let mut batches = Batches::start(&scene, BATCHES).await;
    let beside = timeout(PATIENCE / 3, scene.singles(&mut lane, SINGLES)).await;
    let beside = p99(beside.expect("single searches while batches are in flight"));
    println!("p99 alone {alone:?}, beside batches {beside:?}");
    batches.wait_for(1).await;
    let most = (5 * alone).max(Duration::from_millis(50));
    assert!(beside <= most, "{beside:?}, and {alone:?} alone");
}

/// N4.
#[tokio::test]
async fn large_batches_go_on_beside_constant_small_searches() {
    let (_cluster, scene) = Scene::start(2).await;
    let mut small = JoinSet::new();
    for _ in 0..64 {
        let (scene, mut lane) = (Arc::clone(&scene), scene.lane().await);
        small.spawn(async move { scene.singles(&mut lane, usize::MAX).await.len() });
    }
    let mut batches = Batches::start(&scene, 2).await;
    batches.wait_for(4).await;
    assert!(small.try_join_next().is_none(), "small searches went on");
}
