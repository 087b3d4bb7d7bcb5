//! What an empty corpus costs: memory on the nodes, and time to create.
//!
//! A hundred corpora of a layout, or a thousand with `SIMSHARD_LONG`.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use simshard_client::{Client, Queries, SearchSpec, v1};
use simshard_runtime::system::{anonymous_memory_of, processor_ticks_of};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, ProcessCluster, is_long};
use tempfile::TempDir;

const NODES: usize = 3;

/// The usual layout, those with the most tables and the most blocks, and one between.
const LAYOUTS: [(u32, u32); 4] = [(5, 3), (14, 4), (64, 1), (10, 5)];

/// Most memory that an empty corpus may take on a node.
const MOST_BYTES: u64 = 16 << 10;

/// Most time to create a corpus, but for the syncs of the disk.
const MOST_TIME: Duration = Duration::from_millis(10);

fn corpora() -> u32 {
    if is_long() { 1000 } else { 100 }
}

async fn create(client: &Client, name: String, (blocks, distance): (u32, u32)) {
    let request = v1::CreateCorpusRequest {
        name,
        blocks: Some(blocks),
        distance: Some(distance),
        recipe: String::new(),
    };
    client.create_corpus(request).await.unwrap();
}

/// Asks for few fingerprints and for many, which nodes search in different ways.
async fn search(client: &Client, name: &str) {
    for number in [1, 1000] {
        let queries = (0..number).map(Fingerprint).collect();
        let queries = Queries::Fingerprints(queries);
        let found = client.find_all(name, queries, SearchSpec::default());
        let found = found.await.unwrap();
        assert!(found.queries.iter().all(|query| query.matches.is_empty()));
    }
}

/// Creates corpora and searches each.
async fn create_and_search(client: &Client, layout: (u32, u32), corpora: u32) {
    for number in 0..corpora {
        let name = format!("of-{}-{}-{number}", layout.0, layout.1);
        create(client, name.clone(), layout).await;
        search(client, &name).await;
    }
}

fn memory(cluster: &ProcessCluster) -> [u64; NODES] {
    std::array::from_fn(|number| anonymous_memory_of(cluster.node_id(number)).unwrap())
}

/// Checks how much more memory each node uses for `corpora` more corpora.
fn check(what: &str, before: [u64; NODES], after: [u64; NODES], corpora: u32) {
    for (before, after) in before.into_iter().zip(after) {
        let each = after.saturating_sub(before) / u64::from(corpora);
        println!("{what}: {each} bytes each");
        assert!(each <= MOST_BYTES, "{what}: {each} bytes each");
    }
}

fn restart_nodes(cluster: &mut ProcessCluster) {
    for number in 0..NODES {
        cluster.restart_node(number, End::Stopped);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_corpus_takes_16_kib_at_most_searched_or_loaded() {
    let mut cluster = ProcessCluster::start_by_layout(NODES);
    let client = cluster.client();
    // Connections, threads and the space of a log take memory too.
    create_and_search(&client, (3, 1), 20).await;
    restart_nodes(&mut cluster);
    let loaded = memory(&cluster);
    create_and_search(&client, (4, 1), 20).await;
    // All layouts together stay below the limit of corpora.
    let corpora = corpora().min(240);
    for layout in LAYOUTS {
        let before = memory(&cluster);
        create_and_search(&client, layout, corpora).await;
        let after = memory(&cluster);
        check(&format!("{layout:?}"), before, after, corpora);
    }
    restart_nodes(&mut cluster);
    let all = corpora * LAYOUTS.len() as u32;
    check("loaded", loaded, memory(&cluster), all);
}

/// Files on the disk of a cluster, to measure how long it takes there to make a corpus durable.
struct Disk {
    folder: TempDir,
    log: File,
}

impl Disk {
    fn new(folder: &Path) -> Self {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        log.write_all_at(&[0; 4096], 0).unwrap();
        log.sync_all().unwrap();
        Self { folder, log }
    }

    /// As the log of a node.
    fn sync(&self, number: u32) -> Duration {
        let start = Instant::now();
        self.log.write_all_at(&number.to_le_bytes(), 0).unwrap();
        self.log.sync_data().unwrap();
        start.elapsed()
    }

    /// As the corpora file, of this many bytes.
    fn replace(&self, bytes: u64) -> Duration {
        let start = Instant::now();
        let path = |name: &str| self.folder.path().join(name);
        let mut file = File::create(path("next")).unwrap();
        file.write_all(&vec![b'x'; bytes as usize]).unwrap();
        file.sync_all().unwrap();
        fs::rename(path("next"), path("file")).unwrap();
        File::open(self.folder.path()).unwrap().sync_all().unwrap();
        start.elapsed()
    }
}

/// How long a process has kept a processor busy, about.
fn work_of(process: u32) -> Duration {
    Duration::from_millis(processor_ticks_of(process).unwrap() * 10)
}

/// The work of each node, and that of the router.
fn work(cluster: &ProcessCluster) -> ([Duration; NODES], Duration) {
    let nodes = std::array::from_fn(|number| work_of(cluster.node_id(number)));
    (nodes, work_of(cluster.router_id()))
}

/// Other tests may take the processors meanwhile: the time that passes counts only with `SIMSHARD_LONG`. Else the work
/// counts, of the router and of the slowest node, since all nodes work at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_corpus_is_created_in_10_ms_beside_its_syncs() {
    let cluster = ProcessCluster::start_by_layout(NODES);
    let (client, disk) = (cluster.client(), Disk::new(cluster.folder()));
    let corpora = corpora();
    let before = work(&cluster);
    let (mut creating, mut syncing) = (Duration::ZERO, Duration::ZERO);
    for (number, layout) in (0..corpora).zip(LAYOUTS.into_iter().cycle()) {
        let start = Instant::now();
        create(&client, format!("number-{number}"), layout).await;
        creating += start.elapsed();
        let file = fs::metadata(cluster.folder().join("cluster.corpora.toml")).unwrap();
        // Each node syncs its log; the record is written when the creation begins, and when it ends.
        syncing += disk.sync(number) * NODES as u32 + disk.replace(file.len()) * 2;
    }
    let after = work(&cluster);
    let of_nodes: [_; NODES] = std::array::from_fn(|number| after.0[number] - before.0[number]);
    let router = after.1 - before.1;
    let told = format!(
        "{corpora} corpora in {creating:.1?}: syncs {syncing:.1?}, work of the nodes {of_nodes:.1?}, of the router \
         {router:.1?}"
    );
    println!("{told}");
    let most = MOST_TIME * corpora;
    let slowest = of_nodes.into_iter().max().unwrap_or_default();
    assert!(router + slowest <= most, "{told}");
    assert!(!is_long() || creating <= syncing + most, "{told}");
}
