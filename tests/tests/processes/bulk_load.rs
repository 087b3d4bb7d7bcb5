//! `simshard insert --checkpoint` is killed at any point and run again: in the end every document is in, once.
//!
//! A hundred thousand documents, or a million with `SIMSHARD_LONG`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use simshard_client::{Client, Queries, SearchSpec, v1};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, ProcessCluster, Running, binary, is_long, until, until_some};
use tokio::task::block_in_place;

const CORPUS: &str = "crawl";

const NODES: usize = 3;

/// How much is done.
struct Scale {
    documents: u64,
    kills: usize,
    /// In the end, one in this many documents is looked for.
    sample: u64,
}

impl Scale {
    fn of_environment() -> Self {
        if is_long() {
            return Self {
                documents: 1_000_000,
                kills: 20,
                sample: 1,
            };
        }
        Self {
            documents: 100_000,
            kills: 4,
            sample: 10,
        }
    }
}

/// A load, as its operator sees it.
struct Load {
    input: PathBuf,
    checkpoint: PathBuf,
    router: String,
}

impl Load {
    fn new(cluster: &ProcessCluster, documents: u64) -> Self {
        let input = cluster.folder().join("crawl.tsv");
        let mut tsv = String::new();
        for number in 0..documents {
            writeln!(tsv, "{}\t{}", id(number), fingerprint(number).0).unwrap();
        }
        std::fs::write(&input, tsv).unwrap();
        Self {
            input,
            checkpoint: cluster.folder().join("crawl.checkpoint"),
            router: cluster.url(),
        }
    }

    fn start(&self) -> Running {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let args = [
            "insert".to_owned(),
            text(&self.input),
            "--checkpoint".to_owned(),
            text(&self.checkpoint),
            "--corpus".to_owned(),
            CORPUS.to_owned(),
            "--router".to_owned(),
            self.router.clone(),
        ];
        Running::start(binary(), args)
    }

    /// Runs it to its end; what it says.
    fn finish(&self) -> String {
        let output = self.start().output();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{log}");
        log
    }

    /// The documents that the checkpoint counts: it is whole at every instant (CP4).
    fn counted(&self) -> u64 {
        let Ok(json) = std::fs::read(&self.checkpoint) else {
            return 0;
        };
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        json["documents"].as_u64().unwrap()
    }
}

fn id(number: u64) -> String {
    format!("https://example.org/{number}")
}

fn fingerprint(number: u64) -> Fingerprint {
    Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The documents of the corpus, if all nodes are there to say it.
async fn documents(client: &Client) -> Option<u64> {
    client.get_corpus(CORPUS).await.ok()?.document_count
}

/// Waits until the corpus has `stored` documents and the checkpoint counts `counted`, or the load has
/// ended.
async fn wait_for(
    client: &Client,
    load: &Load,
    running: &mut Running,
    (stored, counted): (u64, u64),
) {
    until("the load has come this far", async || {
        let documents = documents(client).await;
        let is_there = documents.is_some_and(|now| now >= stored) && load.counted() >= counted;
        is_there || running.has_ended()
    })
    .await;
}

/// The documents of the corpus, once all nodes are there.
async fn stored(client: &Client) -> u64 {
    until_some("all nodes answer", async || documents(client).await).await
}

/// Looks for one in `scale.sample` documents by its fingerprint.
async fn look_for(client: &Client, scale: &Scale) {
    let numbers: Vec<u64> = (0..scale.documents)
        .step_by(usize::try_from(scale.sample).unwrap())
        .collect();
    let options = SearchSpec {
        max_distance: Some(0),
        ..SearchSpec::default()
    };
    for numbers in numbers.chunks(4096) {
        let queries = numbers.iter().copied().map(fingerprint).collect();
        let found = client.find_all(CORPUS, Queries::Fingerprints(queries), options);
        let found = found.await.unwrap().queries;
        for (number, found) in numbers.iter().zip(found) {
            let ids = found.matches.first().map(|found| found.ids.as_slice());
            assert_eq!(ids, Some(&[id(*number)][..]), "{number}");
        }
    }
}

/// A cluster with an empty corpus, and what is to be loaded into it.
async fn scene(scale: &Scale) -> (ProcessCluster, Client, Load) {
    let cluster = ProcessCluster::start_by_layout(NODES);
    let client = cluster.client();
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    let load = Load::new(&cluster, scale.documents);
    (cluster, client, load)
}

/// Every document is in, once.
async fn check(client: &Client, scale: &Scale) {
    assert_eq!(stored(client).await, scale.documents);
    look_for(client, scale).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_is_killed_at_any_point_and_run_again_ends_with_every_document() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let scale = Scale::of_environment();
    let (mut cluster, client, load) = scene(&scale).await;

    // All over the load, but for its end, where it could not be caught.
    let mut points: Vec<u64> = (0..scale.kills)
        .map(|_| random.u64(1..scale.documents * 4 / 5))
        .collect();
    points.sort_unstable();
    let mut caught = 0;
    for (kill, point) in points.into_iter().enumerate() {
        if random.bool() {
            // One that has hardly begun.
            load.start().kill();
        }
        // Every other one has gone on from where the one before was.
        let least = [0, load.counted() + 1][kill % 2];
        let mut running = load.start();
        wait_for(&client, &load, &mut running, (point, least)).await;
        match kill % 10 {
            1 => block_in_place(|| cluster.restart_node(random.usize(0..NODES), End::Killed)),
            2 => block_in_place(|| cluster.restart_router(End::Killed)),
            _ => {}
        }
        caught += usize::from(!running.has_ended());
        running.kill();
        let (counted, stored) = (load.counted(), stored(&client).await);
        println!("kill {kill} at {point}: {stored} are stored, {counted} counted");
        assert!(counted <= stored, "CP1");
    }
    assert!(caught > 0, "all had ended");

    let counted = load.counted();
    let log = load.finish();
    println!("{log}");
    if counted > 0 && counted < scale.documents {
        assert!(
            log.contains(&format!("after {counted} that were done before")),
            "{log}"
        );
    }
    check(&client, &scale).await;
    let again = load.finish();
    assert!(again.starts_with("inserted nothing"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_outlives_the_nodes_and_the_router() {
    let scale = Scale::of_environment();
    let (mut cluster, client, load) = scene(&scale).await;
    let mut running = load.start();
    for part in 1..=3 {
        let point = scale.documents * part / 8;
        wait_for(&client, &load, &mut running, (point, 0)).await;
        assert!(!running.has_ended());
        match part {
            2 => block_in_place(|| cluster.restart_router(End::Killed)),
            node => block_in_place(|| cluster.restart_node(node as usize - 1, End::Killed)),
        }
    }
    let output = running.output();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    check(&client, &scale).await;
}
