//! Records of shards that change while requests are in flight: some processes hear of a record before others do. No
//! request fails, and what was acknowledged is found.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::join_all;
use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_cluster::{FileKeyValues, KeyValueStore, MAX_OPERATIONS, Outcome, Transaction};
use simshard_testkit::{ProcessCluster, is_long};
use tokio::task::yield_now;

const NODES: usize = 3;

/// Documents in a batch: their shards are on all nodes.
const BATCH: u64 = 40;

/// Requests that are in flight at once at each router.
const AT_ONCE: u64 = 2;

/// Requests that are done between two changes of the records.
const BETWEEN: u64 = 4;

fn rounds() -> u64 {
    if is_long() { 400 } else { 25 }
}

/// The batch of this number.
fn batch(number: u64) -> Queries {
    let spread = |place: u64| (number * BATCH + place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Queries::Fingerprints((0..BATCH).map(spread).map(Fingerprint).collect())
}

async fn found(client: &Client, batch: Queries) -> usize {
    let found = client.find_all("crawl", batch, SearchSpec::default());
    let queries = found.await.unwrap().queries.into_iter();
    queries.filter(|query| !query.matches.is_empty()).count()
}

/// Gives every shard the record of the next epoch. The holders stay.
async fn advance(cluster: &ProcessCluster, epoch: u64) {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let records = keys.read("shards/").await.unwrap().pairs;
    let before = format!("\"epoch\":\"0.{epoch}\"");
    let after = format!("\"epoch\":\"0.{}\"", epoch + 1);
    for some in records.chunks(MAX_OPERATIONS) {
        let mut change = Transaction::new();
        for record in some {
            assert!(record.value.contains(&before), "{}", record.value);
            change = change.put(&*record.key, record.value.replacen(&before, &after, 1));
        }
        let made = keys.commit(&change).await.unwrap();
        assert!(matches!(made, Outcome::Committed(_)));
    }
}

/// What is done while the records change.
#[derive(Default)]
struct Load {
    /// Batches that are taken.
    next: AtomicU64,
    done: AtomicU64,
    is_over: AtomicBool,
}

impl Load {
    /// Inserts one batch after the other and looks for it at once. Returns how many documents were new.
    async fn run(&self, client: Client) -> u64 {
        let mut inserted = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let documents = Documents {
                keys: batch(number),
                ids: vec![],
            };
            inserted += client.insert("crawl", documents).await.unwrap();
            assert_eq!(found(&client, batch(number)).await as u64, BATCH);
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        inserted
    }

    /// Waits until this many more batches are done.
    async fn until_more(&self, more: u64) {
        let enough = self.done.load(Ordering::Relaxed) + more;
        while self.done.load(Ordering::Relaxed) < enough && !self.is_over.load(Ordering::Relaxed) {
            yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_the_records_of_shards_change() {
    let mut cluster = ProcessCluster::start_registered(NODES);
    let other = cluster.add_router();
    let create = v1::CreateCorpusRequest {
        name: "crawl".to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    cluster.client().create_corpus(create).await.unwrap();
    let load = Arc::new(Load::default());
    let clients = (0..AT_ONCE).flat_map(|_| [cluster.client(), cluster.client_of(other)]);
    let tasks: Vec<_> = clients
        .map(|client| {
            let load = Arc::clone(&load);
            tokio::spawn(async move {
                // A request that fails ends the others too.
                let _guard = Over(Arc::clone(&load));
                load.run(client).await
            })
        })
        .collect();
    for round in 1..=rounds() {
        load.until_more(BETWEEN).await;
        advance(&cluster, round).await;
    }
    load.until_more(BETWEEN).await;
    load.is_over.store(true, Ordering::Relaxed);
    let inserted = join_all(tasks).await.into_iter().map(Result::unwrap);

    let batches = load.next.load(Ordering::Relaxed);
    assert_eq!(inserted.sum::<u64>(), batches * BATCH);
    let client = cluster.client_of(other);
    for number in 0..batches {
        assert_eq!(found(&client, batch(number)).await as u64, BATCH);
    }
}

/// Ends the load when it is dropped.
struct Over(Arc<Load>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}
