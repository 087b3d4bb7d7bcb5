//! Real nodes and routers are killed, or told to stop, at any moment while clients insert and remove documents through
//! two routers. An acknowledged operation took effect; one that was not acknowledged took effect or did not. Searches
//! answer exactly the documents that follow, each once. Some clients give up early. Operations that are acknowledged
//! after that are final, whatever is still in flight.
//!
//! Meanwhile another corpus is deleted and created again and again. It has the documents that were inserted since,
//! and none of the deleted ones.
//!
//! The oracle lives in this process. Twenty cycles, or two hundred with `SIMSHARD_LONG`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simshard_client::{Client, Documents, FindAnswer, Queries, Reason, SearchSpec, v1};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, PATIENCE, ProcessCluster, Shape, is_long, until};
use tokio::task::JoinHandle;

const CORPUS: &str = "crawl";

/// The largest of a match, in a corpus that is made without saying so.
const DISTANCE: u32 = 3;

/// A corpus that is deleted and made anew.
const AGAIN: &str = "again";

const NODES: usize = 3;

const ROUTERS: usize = 2;

/// Writers at work at once, each on fingerprints of its own.
const WRITERS: u64 = 4;

/// Acknowledged batches between two kills, at most.
const BATCHES: u64 = 40;

/// A process that is told to stop under load does so before its requests would be cut off, and starts again.
const DRAIN: Duration = Duration::from_secs(9);

/// Clients that give up do so after at most this many milliseconds.
const IMPATIENCE: u64 = 30;

/// A document of the oracle.
type Document = (u64, String);

/// The expected documents of one writer.
#[derive(Debug, Default)]
struct Oracle {
    /// Whether the last operation that was acknowledged inserted it.
    live: BTreeMap<Document, bool>,
    /// These may be there or not: an operation on them was not acknowledged.
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

    /// The errors in an answer. It must have each live document near the query once, and may have `open` ones.
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

/// Ends a node, or a router, and starts it again.
fn restart(cluster: &mut ProcessCluster, which: usize, end: End) {
    match which.checked_sub(NODES) {
        None => cluster.restart_node(which, end),
        Some(router) => {
            cluster.end_router(router, end);
            cluster.start_router(router);
        }
    }
}

/// A client of each router.
fn clients(cluster: &ProcessCluster) -> Vec<Client> {
    (0..ROUTERS)
        .map(|router| cluster.client_of(router))
        .collect()
}

/// One of the clients; now and then one that gives up early.
fn choose(random: &mut fastrand::Rng, clients: &[Client]) -> Client {
    let client = clients[random.usize(0..clients.len())].clone();
    match random.u8(0..4) {
        0 => client.with_timeout(Duration::from_millis(random.u64(1..IMPATIENCE))),
        _ => client,
    }
}

/// Inserts, removes and finds until it is told to stop, and notes what was acknowledged. Whatever is found, also
/// while processes are killed, is held against that.
async fn write(
    clients: Vec<Client>,
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
        let client = choose(&mut random, &clients);
        let outcome = if insert {
            client.insert(CORPUS, documents).await
        } else {
            client.remove(CORPUS, documents).await
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
        let client = &clients[random.usize(0..ROUTERS)];
        let asked = Queries::Fingerprints(queries.clone());
        if let Ok(found) = client.find_all(CORPUS, asked, SearchSpec::default()).await {
            compare(&oracle, &queries, found);
        }
    }
    oracle
}

/// Makes a corpus, fills it, looks into it and deletes it, each through one router or the other, until it is told to
/// stop. Returns how often it was filled.
async fn make_anew(clients: Vec<Client>, seed: u64, stop: Arc<AtomicBool>) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut filled = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut oracle = Oracle::default();
        let mut one = || clients[random.usize(0..ROUTERS)].clone();
        let create = v1::CreateCorpusRequest {
            name: AGAIN.to_owned(),
            ..v1::CreateCorpusRequest::default()
        };
        // One that failed may have been made all the same: it is deleted below.
        let is_made = one().create_corpus(create).await.is_ok();
        let client = one();
        let batch: BTreeSet<Document> = (0..20).map(|_| document(&mut random, 0)).collect();
        if is_made && client.insert(AGAIN, columns(&batch)).await.is_ok() {
            filled += 1;
            oracle
                .live
                .extend(batch.into_iter().map(|document| (document, true)));
            for client in &clients {
                look_into(client, &oracle).await;
            }
        }
        let queries: Vec<Fingerprint> = oracle.fingerprints().into_iter().collect();
        delete(&clients, &mut random).await;
        // A creation that failed before may come to its end now: then the corpus is empty.
        for client in &clients {
            let asked = Queries::Fingerprints(queries.clone());
            let found = client.find_all(AGAIN, asked, SearchSpec::default());
            for answer in found.await.into_iter().flat_map(|found| found.queries) {
                assert!(answer.matches.is_empty(), "seed {seed}: {answer:?}");
            }
        }
    }
    filled
}

/// If there is an answer, it is exactly what the oracle knows.
async fn look_into(client: &Client, oracle: &Oracle) {
    let queries: Vec<Fingerprint> = oracle.fingerprints().into_iter().collect();
    let asked = Queries::Fingerprints(queries.clone());
    if let Ok(found) = client.find_all(AGAIN, asked, SearchSpec::default()).await {
        compare(oracle, &queries, found);
    }
}

/// Deletes the corpus that is made anew: repeats that until it is acknowledged.
async fn delete(clients: &[Client], random: &mut fastrand::Rng) {
    let started = Instant::now();
    loop {
        let client = &clients[random.usize(0..ROUTERS)];
        match client.delete_corpus(AGAIN).await {
            Ok(()) => break,
            Err(error) if error.reason() == Some(Reason::CorpusNotFound) => break,
            Err(error) => assert!(started.elapsed() < PATIENCE, "{error}"),
        }
    }
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
        let found = client.find_all(CORPUS, asked, SearchSpec::default()).await;
        compare(oracle, queries, found.unwrap());
    }
}

/// Compares what was found with a linear scan over what is known.
fn compare(oracle: &Oracle, queries: &[Fingerprint], found: FindAnswer) {
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

/// Waits until every node answers again.
async fn wait_for(client: &Client) {
    until("every node answers", async || {
        let all = (0..=255).map(|byte| Fingerprint(byte << 56)).collect();
        let find = client.find_all(CORPUS, Queries::Fingerprints(all), SearchSpec::default());
        client.get_corpus(CORPUS).await.is_ok() && find.await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_processes_end() {
    end_processes_of(ProcessCluster::start_by_layout(NODES)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_registered_processes_end() {
    end_processes_of(ProcessCluster::start(Shape::of(NODES))).await;
}

async fn end_processes_of(mut cluster: ProcessCluster) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let cycles = if is_long() { 200 } else { 20 };
    cluster.add_router();
    let clients = clients(&cluster);
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    clients[0].create_corpus(create).await.unwrap();
    let mut oracles: Vec<Oracle> = (0..WRITERS).map(|_| Oracle::default()).collect();
    let mut made_anew = 0;
    for cycle in 0..cycles {
        let load = Load::start(&cluster, &mut random, std::mem::take(&mut oracles));
        let enough = random.u64(1..BATCHES);
        until("batches are acknowledged", async || {
            load.acknowledged.load(Ordering::Relaxed) >= enough
        })
        .await;
        let which = random.usize(0..NODES + ROUTERS);
        let end = match random.u8(0..4) {
            0 => End::Stopped,
            _ => End::Killed,
        };
        let start = Instant::now();
        tokio::task::block_in_place(|| restart(&mut cluster, which, end));
        let took = start.elapsed();
        assert!(took < DRAIN, "{which} {end:?}: {took:?}");
        let filled;
        (oracles, filled) = load.stop().await;
        made_anew += filled;
        for client in &clients {
            wait_for(client).await;
        }
        for oracle in &mut oracles {
            for client in &clients {
                check(client, oracle).await;
            }
            settle(&clients[0], oracle).await;
        }
        println!("cycle {cycle}: {enough} batches, then {which} {end:?}, and back after {took:?}");
    }
    println!("the other corpus was made anew and filled {made_anew} times");
    assert!(made_anew > 0, "nothing was tested");
}

/// The load while processes end.
struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    writers: Vec<JoinHandle<Oracle>>,
    make_anew: JoinHandle<usize>,
}

impl Load {
    fn start(cluster: &ProcessCluster, random: &mut fastrand::Rng, oracles: Vec<Oracle>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let start = |(writer, oracle)| {
            let (stop, acknowledged) = (Arc::clone(&stop), Arc::clone(&acknowledged));
            let (clients, seed) = (clients(cluster), random.u64(..));
            tokio::spawn(write(clients, seed, writer, oracle, stop, acknowledged))
        };
        let writers = (0..WRITERS).zip(oracles).map(start).collect();
        let make_anew = make_anew(clients(cluster), random.u64(..), Arc::clone(&stop));
        Self {
            make_anew: tokio::spawn(make_anew),
            stop,
            acknowledged,
            writers,
        }
    }

    /// Ends it: what the writers know, and how often the other corpus was filled.
    async fn stop(self) -> (Vec<Oracle>, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let mut oracles = Vec::new();
        for writer in self.writers {
            oracles.push(writer.await.unwrap());
        }
        (oracles, self.make_anew.await.unwrap())
    }
}

/// Writes the `open` documents again, so that they are live.
async fn settle(client: &Client, oracle: &mut Oracle) {
    if oracle.open.is_empty() {
        return;
    }
    client.insert(CORPUS, columns(&oracle.open)).await.unwrap();
    for document in std::mem::take(&mut oracle.open) {
        oracle.live.insert(document, true);
    }
}
