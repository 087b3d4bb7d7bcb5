//! What is known from outside of the documents of a cluster, and whether its answers agree.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use parking_lot::Mutex;
use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_testkit::until;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::short_lived::Maker;
use super::whole_reads::{self, Reader};
use crate::load::CORPUS;

/// Tasks that change documents, each its own.
const WRITERS: u64 = 3;

/// Documents of a writer.
const DOCUMENTS: u64 = 200;

/// Bits in which a query may differ from a document that it finds.
const DISTANCE: usize = 3;

/// Where clocks differ, a change may act for so long after its caller was told that it failed: a router may go on with
/// it for 30 s.
const LINGERS: Duration = Duration::from_secs(32);

/// After that a request may have been sent a second time.
const AT_ONCE: Duration = Duration::from_millis(90);

/// Longer than the cluster needs to go on without a part, on a busy machine too.
const SERVED: Duration = Duration::from_secs(45);

/// When the clocks of routers and nodes differed.
#[derive(Debug, Default)]
pub(crate) struct Skew {
    /// How many are wrong now.
    wrong: AtomicUsize,
    /// When they last did; `None` if never.
    last: Mutex<Option<Instant>>,
}

impl Skew {
    /// Takes note that one more clock is wrong from now on.
    pub(crate) fn begin(&self) {
        self.wrong.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes note that a clock is right again.
    pub(crate) fn end(&self) {
        *self.last.lock() = Some(Instant::now());
        self.wrong.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether versions may have been given in another order than time's since then.
    fn has_been_since(&self, time: Instant) -> bool {
        // A clock that was set back only counts for a while.
        let may_matter = |last: Instant| last + LINGERS >= time;
        self.wrong.load(Ordering::SeqCst) > 0 || self.last.lock().is_some_and(may_matter)
    }
}

/// What a writer knows of one of its documents.
#[derive(Clone, Copy, Debug, Default)]
struct Document {
    /// Whether it is there; `None` if its last change failed.
    is_live: Option<bool>,
    /// When changes that may still act began and ended.
    lingering: Option<(Instant, Instant)>,
}

impl Document {
    /// Whether a change may act now that was answered before.
    fn may_change(&self, now: Instant, skew: &Skew) -> bool {
        self.lingering
            .is_some_and(|(begun, ended)| now < ended + LINGERS && skew.has_been_since(begun))
    }
}

/// What a writer knows of its documents.
struct Writer {
    number: u64,
    random: Rng,
    clients: Vec<Client>,
    documents: BTreeMap<u64, Document>,
    skew: Arc<Skew>,
}

impl Writer {
    fn fingerprint(&self, document: u64) -> Fingerprint {
        let number = self.number * DOCUMENTS + document;
        Fingerprint((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    async fn run(mut self, progress: Arc<Progress>) -> Self {
        while !progress.is_over() {
            let document = self.random.u64(..DOCUMENTS);
            let client = self.clients[self.random.usize(..self.clients.len())].clone();
            let is_done = if self.random.bool() {
                self.change(&client, document).await
            } else {
                self.look_for(&client, document).await
            };
            progress.note(is_done);
        }
        self
    }

    /// Inserts a document, or removes it. Answers whether that was acknowledged.
    async fn change(&mut self, client: &Client, number: u64) -> bool {
        let documents = Documents {
            keys: Queries::Fingerprints(vec![self.fingerprint(number)]),
            ids: vec!["x".to_owned()],
        };
        let insert = self.random.bool();
        let begun = Instant::now();
        let outcome = if insert {
            client.insert(CORPUS, documents).await.map(|_| ())
        } else {
            client.remove(CORPUS, documents).await.map(|_| ())
        };
        let document = self.documents.entry(number).or_default();
        let may_linger = outcome.is_err() || begun.elapsed() >= AT_ONCE;
        let is_known = outcome.is_ok() && !document.may_change(begun, &self.skew);
        document.is_live = is_known.then_some(insert);
        if may_linger {
            let first = document.lingering.map_or(begun, |(first, _)| first);
            document.lingering = Some((first, Instant::now()));
        }
        outcome.is_ok()
    }

    /// Looks for a document by a query near it: a complete answer says what is known.
    async fn look_for(&mut self, client: &Client, number: u64) -> bool {
        let fingerprint = self.fingerprint(number);
        let mut query = fingerprint.0;
        for bit in self.random.choose_multiple(0..64, DISTANCE) {
            query ^= u64::from(self.random.bool()) << bit;
        }
        let known = self.documents.get(&number).copied().unwrap_or_default();
        let begun = Instant::now();
        let query = Queries::Fingerprints(vec![Fingerprint(query)]);
        let found = client.find_all(CORPUS, query, SearchSpec::default()).await;
        let Ok(found) = found else { return false };
        let mut matches = found.queries[0].matches.iter();
        let is_there = matches.any(|found| found.fingerprint == fingerprint);
        if let Some(is_live) = known.is_live
            && !known.may_change(begun, &self.skew)
        {
            assert_eq!(
                is_there, is_live,
                "writer {}, document {number}: {known:?}",
                self.number
            );
        }
        true
    }

    /// Checks everything that is known.
    async fn check(&mut self, client: &Client) {
        for number in 0..DOCUMENTS {
            until("the document is looked for", async || {
                self.look_for(client, number).await
            })
            .await;
        }
    }
}

/// Waits until a router takes a change, if any does now, and answers a search.
pub(crate) async fn until_served(clients: &[Client], takes_changes: bool) {
    let begun = Instant::now();
    let fingerprint = || Queries::Fingerprints(vec![Fingerprint(u64::MAX)]);
    let is_served = async |client: &Client| {
        let documents = Documents {
            keys: fingerprint(),
            ids: vec!["served".to_owned()],
        };
        let is_changed = !takes_changes || client.insert(CORPUS, documents).await.is_ok();
        let spec = SearchSpec::default();
        is_changed && client.find_all(CORPUS, fingerprint(), spec).await.is_ok()
    };
    let served = until("requests succeed", async || {
        let served = join_all(clients.iter().map(is_served)).await;
        served.contains(&true)
    });
    let served = timeout(SERVED, served).await;
    assert!(served.is_ok(), "no request succeeds for {SERVED:?}");
    println!("served within {:.1?}", begun.elapsed());
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    done: AtomicU64,
    failed: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn note(&self, is_done: bool) {
        let count = if is_done { &self.done } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writers at work.
pub(crate) struct Oracle {
    progress: Arc<Progress>,
    tasks: Vec<JoinHandle<Writer>>,
    /// How many corpora came and went, and how many streams about one that stays ended in order.
    others: [JoinHandle<u64>; 2],
    pub(crate) skew: Arc<Skew>,
}

impl Oracle {
    /// Lets writers begin, through these routers, and who creates, deletes and reads corpora.
    pub(crate) async fn begin(random: &mut Rng, clients: &[Client]) -> Self {
        whole_reads::make(&clients[0]).await;
        let (progress, skew) = (Arc::<Progress>::default(), Arc::<Skew>::default());
        let writer = |number| Writer {
            number,
            random: random.fork(),
            clients: clients.to_vec(),
            documents: BTreeMap::new(),
            skew: Arc::clone(&skew),
        };
        let writers: Vec<Writer> = (0..WRITERS).map(writer).collect();
        let tasks = writers
            .into_iter()
            .map(|writer| tokio::spawn(writer.run(Arc::clone(&progress))));
        let tasks = tasks.collect();
        let maker = Maker::new(random.fork(), clients, &progress);
        let reader = Reader {
            random: random.fork(),
            clients: clients.to_vec(),
            progress: Arc::clone(&progress),
        };
        Self {
            tasks,
            others: [tokio::spawn(maker.run()), tokio::spawn(reader.run())],
            progress,
            skew,
        }
    }

    /// Whether a task has ended, as an answer was wrong.
    pub(crate) fn has_failed(&self) -> bool {
        let is_finished = self.tasks.iter().any(JoinHandle::is_finished);
        is_finished || self.others.iter().any(JoinHandle::is_finished)
    }

    /// Ends the writers. Answers what they know.
    pub(crate) async fn end(self) -> Knowledge {
        self.progress.is_over.store(true, Ordering::Relaxed);
        let writers = join_all(self.tasks).await.into_iter().map(Result::unwrap);
        let writers: Vec<Writer> = writers.collect();
        let [maker, reader] = self.others;
        let (corpora, streams) = (maker.await.unwrap(), reader.await.unwrap());
        println!("{corpora} corpora came and went, {streams} streams ended in order");
        assert!(corpora > 0 && streams > 0);
        let Progress { done, failed, .. } = &*self.progress;
        let known = writers.iter().flat_map(|writer| writer.documents.values());
        let known = known.filter(|document| document.is_live.is_some()).count();
        println!("{done:?} done, {failed:?} failed, {known} documents of known state");
        Knowledge(writers)
    }
}

/// What writers know that have ended.
pub(crate) struct Knowledge(Vec<Writer>);

impl Knowledge {
    /// The documents that were removed last.
    pub(super) fn removed(&self) -> Vec<Fingerprint> {
        let now = Instant::now();
        let of_writer = |writer: &Writer| {
            let documents = writer.documents.iter();
            let removed = documents.filter(|(_, document)| {
                document.is_live == Some(false) && !document.may_change(now, &writer.skew)
            });
            let removed = removed.map(|(number, _)| writer.fingerprint(*number));
            removed.collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of_writer).collect()
    }

    /// Checks all of it.
    pub(crate) async fn check(&mut self, client: &Client) {
        for writer in &mut self.0 {
            writer.check(client).await;
        }
    }
}
