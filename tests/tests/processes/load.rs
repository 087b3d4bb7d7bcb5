//! A load that runs while something happens to a cluster: inserts, each looked for at once. No request may fail.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use parking_lot::Mutex;
use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_testkit::{until, until_some};
use tokio::task::JoinHandle;

/// Documents in a batch: their shards are on all nodes.
const BATCH: u64 = 40;

/// Requests that are in flight at once at each router.
const AT_ONCE: usize = 2;

/// The corpus of the load.
pub(crate) const CORPUS: &str = "crawl";

/// Batches that are looked for with one request, once the load has ended.
const AT_END: u64 = 100;

/// The batch of this number.
fn batch(number: u64) -> Queries {
    batches(number..number + 1)
}

/// The batches of these numbers.
fn batches(numbers: Range<u64>) -> Queries {
    let places = numbers.start * BATCH..numbers.end * BATCH;
    let spread = |place: u64| place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Queries::Fingerprints(places.map(spread).map(Fingerprint).collect())
}

/// How many of these are found.
async fn found(client: &Client, batch: Queries) -> Result<usize, ClientError> {
    let found = client.find_all(CORPUS, batch, SearchSpec::default());
    let queries = found.await?.queries.into_iter();
    Ok(queries.filter(|query| !query.matches.is_empty()).count())
}

/// Waits until searches are answered. The documents of this number of batches are found.
pub(crate) async fn until_found(client: &Client, batches: u64) {
    for number in 0..batches {
        let found = until_some("searches are answered", async || {
            let found = found(client, batch(number)).await;
            found.inspect_err(|error| println!("{error}")).ok()
        });
        assert_eq!(found.await as u64, BATCH);
    }
}

/// A load through some routers.
pub(crate) struct Load {
    progress: Arc<Progress>,
    tasks: Vec<JoinHandle<u64>>,
}

#[derive(Default)]
struct Progress {
    /// Batches that are taken.
    next: AtomicU64,
    done: AtomicU64,
    is_over: AtomicBool,
    gaps: Mutex<Gaps>,
}

/// The longest times in which nothing was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    pub(crate) changes: Duration,
    pub(crate) searches: Duration,
    last_change: Option<Instant>,
    last_search: Option<Instant>,
}

/// Creates the corpus of a load.
pub(crate) async fn create(client: &Client) {
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
}

impl Load {
    pub(crate) fn start(clients: &[Client]) -> Self {
        let progress = Arc::new(Progress::default());
        let clients = clients.iter().flat_map(|client| vec![client; AT_ONCE]);
        let tasks = clients.map(|client| {
            let (client, progress) = (client.clone(), Arc::clone(&progress));
            tokio::spawn(async move {
                // A request that fails ends the others too.
                let _guard = Over(Arc::clone(&progress));
                progress.run(client).await
            })
        });
        Self {
            tasks: tasks.collect(),
            progress,
        }
    }

    /// Waits until this many more batches are done.
    pub(crate) async fn until_more(&self, more: u64) {
        let progress = &self.progress;
        let enough = progress.done.load(Ordering::Relaxed) + more;
        until("batches are done", async || {
            progress.done.load(Ordering::Relaxed) >= enough
                || progress.is_over.load(Ordering::Relaxed)
        })
        .await;
    }

    /// The longest gaps since this was last asked.
    pub(crate) fn gaps(&self) -> Gaps {
        let mut gaps = self.progress.gaps.lock();
        let Gaps {
            last_change,
            last_search,
            ..
        } = *gaps;
        let next = Gaps {
            last_change,
            last_search,
            ..Gaps::default()
        };
        std::mem::replace(&mut *gaps, next)
    }

    /// Ends the load. Each document was new and is found now. Returns the number of batches.
    pub(crate) async fn end(self, client: &Client) -> u64 {
        self.progress.is_over.store(true, Ordering::Relaxed);
        let inserted = join_all(self.tasks).await.into_iter().map(Result::unwrap);
        let all = self.progress.next.load(Ordering::Relaxed);
        // A change that was sent again may count a document that it had inserted before as there.
        assert!(inserted.sum::<u64>() <= all * BATCH);
        for first in (0..all).step_by(AT_END as usize) {
            let numbers = first..all.min(first + AT_END);
            let expected = (numbers.end - numbers.start) * BATCH;
            let there = found(client, batches(numbers.clone())).await.unwrap();
            assert_eq!(there as u64, expected, "of batches {numbers:?}");
        }
        all
    }
}

impl Progress {
    /// Inserts one batch after the other and looks for it at once. Returns how many documents were new.
    async fn run(&self, client: Client) -> u64 {
        let mut inserted = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let documents = Documents {
                keys: batch(number),
                ids: vec![],
            };
            inserted += client.insert(CORPUS, documents).await.unwrap();
            self.gaps.lock().note_change();
            assert_eq!(found(&client, batch(number)).await.unwrap() as u64, BATCH);
            self.gaps.lock().note_search();
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        inserted
    }
}

impl Gaps {
    fn note_change(&mut self) {
        let now = Instant::now();
        let last = self.last_change.replace(now).unwrap_or(now);
        self.changes = self.changes.max(now - last);
    }

    fn note_search(&mut self) {
        let now = Instant::now();
        let last = self.last_search.replace(now).unwrap_or(now);
        self.searches = self.searches.max(now - last);
    }
}

/// Ends the load when it is dropped.
struct Over(Arc<Progress>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}
