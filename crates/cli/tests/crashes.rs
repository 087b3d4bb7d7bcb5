//! Real nodes and routers are killed, or told to stop, at any moment while documents come and go: what was
//! acknowledged is there, what was not is one or the other, and no match of the former is missed.
//!
//! The oracle lives in this process. Twenty cycles, or two hundred with `SIMSHARD_LONG`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simshard_client::{Client, Documents, FindOptions, Found, Queries, v1};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, ProcessCluster};

const BINARY: &str = env!("CARGO_BIN_EXE_simshard");

const CORPUS: &str = "crawl";

const NODES: usize = 3;

/// Writers at work at once, each on fingerprints of its own.
const WRITERS: u64 = 4;

/// Acknowledged batches between two kills, at most.
const BATCHES: u64 = 40;

/// A process that is told to stop under load does so before its requests would be cut off, and starts again.
const DRAIN: Duration = Duration::from_secs(9);

/// How long a test waits for a cluster to answer again.
const PATIENCE: Duration = Duration::from_secs(60);

/// A document of the oracle.
type Document = (u64, String);

/// What is known of the documents of one writer.
#[derive(Debug, Default)]
struct Oracle {
    /// Whether the last operation that was acknowledged inserted it.
    live: BTreeMap<Document, bool>,
    /// Of these nobody knows: an operation was not acknowledged.
    open: BTreeSet<Document>,
}

/// Ends a node, or the router, and starts it again.
fn restart(cluster: &mut ProcessCluster, which: usize, end: End) {
    match which {
        NODES => cluster.restart_router(end),
        node => cluster.restart_node(node, end),
    }
}

/// Inserts, removes and finds until it is told to stop, and notes what was acknowledged. Whatever is found, also
/// while processes are killed, is held against that.
async fn write(
    client: Client,
    seed: u64,
    writer: u64,
    mut oracle: Oracle,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
) -> Oracle {
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let batch: BTreeSet<Document> = (0..random.usize(1..200))
            .map(|_| document(&mut random, writer))
            .collect();
        let insert = random.u8(0..3) > 0;
        let documents = columns(&batch);
        let outcome = match insert {
            true => client.insert(CORPUS, documents).await,
            false => client.remove(CORPUS, documents).await,
        };
        for document in batch {
            match outcome {
                Ok(_) => {
                    oracle.open.remove(&document);
                    oracle.live.insert(document, insert);
                }
                Err(_) => drop(oracle.open.insert(document)),
            }
        }
        if outcome.is_ok() {
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        let queries = some_of(&mut random, &oracle);
        let asked = Queries::Fingerprints(queries.clone());
        if let Ok(found) = client.find_all(CORPUS, asked, FindOptions::default()).await {
            compare(&oracle, &queries, found);
        }
    }
    oracle
}

/// A few of the fingerprints that were ever written.
fn some_of(random: &mut fastrand::Rng, oracle: &Oracle) -> Vec<Fingerprint> {
    let known = oracle.live.keys().map(|(fingerprint, _)| *fingerprint);
    known
        .filter(|_| random.u8(0..30) == 0)
        .map(Fingerprint)
        .collect()
}

/// One of a few thousand documents of a writer, near to others of its own.
fn document(random: &mut fastrand::Rng, writer: u64) -> Document {
    let center = random.u64(0..300) * WRITERS + writer;
    let fingerprint = center.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (1 << random.u32(0..4));
    let id = match random.u8(0..3) {
        0 => String::new(),
        1 => "a".to_owned(),
        _ => format!("https://example.org/page/{}", random.u8(0..3)),
    };
    (fingerprint, id)
}

fn columns<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Documents {
    let (fingerprints, ids) = documents
        .into_iter()
        .map(|(fingerprint, id)| (Fingerprint(*fingerprint), id.clone()))
        .unzip();
    Documents {
        keys: Queries::Fingerprints(fingerprints),
        ids,
    }
}

/// Compares what the cluster finds near every fingerprint that was ever written with a linear scan.
async fn check(client: &Client, oracle: &Oracle) {
    let known: BTreeSet<u64> = oracle
        .live
        .keys()
        .map(|(fingerprint, _)| *fingerprint)
        .collect();
    let queries: Vec<Fingerprint> = known.iter().copied().map(Fingerprint).collect();
    for queries in queries.chunks(500) {
        let asked = Queries::Fingerprints(queries.to_vec());
        let found = client.find_all(CORPUS, asked, FindOptions::default()).await;
        compare(oracle, queries, found.unwrap());
    }
}

/// Compares what was found with a linear scan over what is known.
fn compare(oracle: &Oracle, queries: &[Fingerprint], found: Found) {
    assert_eq!(found.queries.len(), queries.len());
    for (query, answer) in queries.iter().zip(found.queries) {
        let found: BTreeSet<Document> = answer
            .matches
            .into_iter()
            .flat_map(|found| {
                let fingerprint = found.fingerprint.0;
                found.ids.into_iter().map(move |id| (fingerprint, id))
            })
            .collect();
        let near = |document: &&Document| (document.0 ^ query.0).count_ones() <= 3;
        for document in oracle.live.keys().filter(near) {
            if !oracle.open.contains(document) {
                let is_live = oracle.live[document];
                assert_eq!(
                    found.contains(document),
                    is_live,
                    "{document:?} near {query:?}"
                );
            }
        }
    }
}

/// Waits for a condition.
async fn until(condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, met).await.unwrap();
}

/// Waits until every node answers again.
async fn wait_for(client: &Client) {
    let answered = async {
        while client.get_corpus(CORPUS).await.is_err() {
            tokio::task::yield_now().await;
        }
        loop {
            let all = (0..=255).map(|byte| Fingerprint(byte << 56)).collect();
            let all = Queries::Fingerprints(all);
            match client.find_all(CORPUS, all, FindOptions::default()).await {
                Ok(_) => break,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_processes_end() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let cycles = match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => 200,
        None => 20,
    };
    let mut cluster = ProcessCluster::start(BINARY, NODES);
    let client = cluster.client();
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    let mut oracles: Vec<Oracle> = (0..WRITERS).map(|_| Oracle::default()).collect();
    for cycle in 0..cycles {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let writers: Vec<_> = (0..WRITERS)
            .zip(oracles.drain(..))
            .map(|(writer, oracle)| {
                let (stop, acknowledged) = (Arc::clone(&stop), Arc::clone(&acknowledged));
                let seed = random.u64(..);
                tokio::spawn(write(
                    cluster.client(),
                    seed,
                    writer,
                    oracle,
                    stop,
                    acknowledged,
                ))
            })
            .collect();
        let enough = random.u64(1..BATCHES);
        until(|| acknowledged.load(Ordering::Relaxed) >= enough).await;
        let which = random.usize(0..=NODES);
        let end = match random.u8(0..4) {
            0 => End::Stopped,
            _ => End::Killed,
        };
        let start = Instant::now();
        tokio::task::block_in_place(|| restart(&mut cluster, which, end));
        let took = start.elapsed();
        assert!(took < DRAIN, "{which} {end:?}: {took:?}");
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            oracles.push(writer.await.unwrap());
        }
        wait_for(&client).await;
        for oracle in &mut oracles {
            check(&client, oracle).await;
            settle(&client, oracle).await;
        }
        println!("cycle {cycle}: {enough} batches, then {which} {end:?}, and back after {took:?}");
    }
}

/// Writes anew what nobody knows of.
async fn settle(client: &Client, oracle: &mut Oracle) {
    if oracle.open.is_empty() {
        return;
    }
    client.insert(CORPUS, columns(&oracle.open)).await.unwrap();
    for document in std::mem::take(&mut oracle.open) {
        oracle.live.insert(document, true);
    }
}
