//! Real nodes and routers are killed, or told to stop, at any moment while documents come and go: what was
//! acknowledged is as it was told, what was not is one or the other. Every answer is exactly that, each document once.
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

/// The largest of a match, in a corpus that is made without saying so.
const DISTANCE: u32 = 3;

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

impl Oracle {
    /// The fingerprints that were ever written.
    fn fingerprints(&self) -> BTreeSet<Fingerprint> {
        let documents = self.live.keys().chain(&self.open);
        documents
            .map(|(fingerprint, _)| Fingerprint(*fingerprint))
            .collect()
    }

    /// What is wrong with the documents that were found near a query: they are those that must be found, each once,
    /// and perhaps some of which nobody knows.
    fn wrong(&self, query: Fingerprint, found: &[Document]) -> Vec<String> {
        let is_near = |document: &Document| (document.0 ^ query.0).count_ones() <= DISTANCE;
        let live = self.live.iter().filter(|(_, is_live)| **is_live);
        let must: BTreeSet<&Document> = live
            .map(|(document, _)| document)
            .filter(|document| is_near(document) && !self.open.contains(document))
            .collect();
        let mut seen = BTreeSet::new();
        let mut wrong = Vec::new();
        for document in found {
            let may = is_near(document) && self.open.contains(document);
            if !may && !must.contains(document) {
                wrong.push(format!("{document:?} should not be found"));
            }
            if !seen.insert(document) {
                wrong.push(format!("{document:?} was found again"));
            }
        }
        let missed = must.difference(&seen);
        wrong.extend(missed.map(|document| format!("{document:?} was missed")));
        wrong
    }
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
    let known = oracle.fingerprints().into_iter();
    known.filter(|_| random.u8(0..30) == 0).collect()
}

/// One of a few thousand documents of a writer, near to others of its own, and to none of another writer: the centers
/// are 16 bits apart at least.
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
    let queries: Vec<Fingerprint> = oracle.fingerprints().into_iter().collect();
    for queries in queries.chunks(500) {
        let asked = Queries::Fingerprints(queries.to_vec());
        let found = client.find_all(CORPUS, asked, FindOptions::default()).await;
        compare(oracle, queries, found.unwrap());
    }
}

/// Compares what was found with a linear scan over what is known.
fn compare(oracle: &Oracle, queries: &[Fingerprint], found: Found) {
    assert_eq!(found.queries.len(), queries.len());
    for (&query, answer) in queries.iter().zip(found.queries) {
        assert_eq!(answer.query, query);
        let mut found = Vec::new();
        for one in answer.matches {
            let fingerprint = one.fingerprint;
            let distance = (fingerprint.0 ^ query.0).count_ones();
            assert_eq!(one.distance, distance, "{fingerprint:?} near {query:?}");
            let ids = one.ids.len() as u64;
            assert_eq!(one.document_count, ids, "{fingerprint:?} near {query:?}");
            assert_ne!(ids, 0, "{fingerprint:?} near {query:?}");
            found.extend(one.ids.into_iter().map(|id| (fingerprint.0, id)));
        }
        let wrong = oracle.wrong(query, &found);
        assert!(wrong.is_empty(), "near {query:?}: {wrong:?}");
    }
}

#[test]
fn the_oracle_knows_a_wrong_answer() {
    let [live, gone, open, far] = [3, 5, 6, 255].map(|fingerprint| (fingerprint, String::new()));
    let oracle = Oracle {
        live: [(&live, true), (&gone, false), (&open, true), (&far, true)]
            .map(|(document, is_live)| (document.clone(), is_live))
            .into(),
        open: [open.clone()].into(),
    };
    let invented = (1, String::new());
    let is_wrong = |found: &[&Document]| {
        let found: Vec<Document> = found.iter().copied().cloned().collect();
        !oracle.wrong(Fingerprint(0), &found).is_empty()
    };
    assert!(!is_wrong(&[&live]));
    assert!(!is_wrong(&[&open, &live]));
    assert!(is_wrong(&[]), "one is missed");
    assert!(is_wrong(&[&live, &live]), "one is repeated");
    assert!(is_wrong(&[&live, &open, &open]), "one is repeated");
    assert!(is_wrong(&[&live, &gone]), "one was removed");
    assert!(is_wrong(&[&live, &invented]), "one is invented");
    assert!(is_wrong(&[&live, &far]), "one is too far");
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
