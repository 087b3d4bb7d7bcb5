//! Requests of one document or one query each while something fails, and the longest times without a success.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use simshard_client::{Stub, v1 as pb};
use simshard_simhash::Fingerprint;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::Status;

use super::super::settings::BARE;
use super::super::streams::find_request;

/// How long a client waits for an answer, its second attempt included.
const PATIENCE: Duration = Duration::from_secs(5);

/// Searches and inserts, half of each, until they are ended.
pub(super) struct Load {
    shared: Arc<Shared>,
    askers: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    reads: Successes,
    writes: Successes,
    next: AtomicU64,
    retried: AtomicU64,
    failed: AtomicU64,
    is_over: AtomicBool,
}

/// The times of successful searches, and of successful inserts.
pub(super) type Times = [Vec<Duration>; 2];

/// The longest times without a successful request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    pub(super) reads: Duration,
    pub(super) writes: Duration,
}

/// How requests ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) done: u64,
    /// Those that failed at first.
    pub(super) retried: u64,
    pub(super) failed: u64,
}

/// Times in microseconds since the load began.
struct Successes {
    begun: Instant,
    count: AtomicU64,
    last: AtomicU64,
    longest_gap: AtomicU64,
    /// How long requests took that succeeded.
    times: Mutex<Vec<Duration>>,
}

impl Default for Successes {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            count: AtomicU64::new(0),
            last: AtomicU64::new(0),
            longest_gap: AtomicU64::new(0),
            times: Mutex::default(),
        }
    }
}

impl Successes {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    fn note(&self, time: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.end_gap();
        self.times().push(time);
    }

    fn times(&self) -> MutexGuard<'_, Vec<Duration>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A gap that goes on counts as far as it has come.
    fn end_gap(&self) {
        let now = self.now();
        let last = self.last.swap(now, Ordering::SeqCst);
        self.longest_gap
            .fetch_max(now.saturating_sub(last), Ordering::SeqCst);
    }

    fn take_gap(&self) -> Duration {
        self.end_gap();
        Duration::from_micros(self.longest_gap.swap(0, Ordering::SeqCst))
    }
}

impl Load {
    /// Keeps this many requests in flight.
    pub(super) fn start(
        connections: &[Stub],
        queries: Vec<Fingerprint>,
        in_flight: usize,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let (shared, queries) = (Arc::<Shared>::default(), Arc::new(queries));
        let mut askers = JoinSet::new();
        for number in 0..in_flight {
            let stub = connections[number / 2 % connections.len()].clone();
            let (shared, queries) = (Arc::clone(&shared), Arc::clone(&queries));
            askers.spawn(async move {
                while !shared.is_over.load(Ordering::Relaxed) {
                    let next = shared.next.fetch_add(1, Ordering::Relaxed);
                    if number % 2 == 0 {
                        let query = queries[next as usize % queries.len()];
                        shared
                            .ask(&shared.reads, || find(stub.clone(), query))
                            .await;
                    } else {
                        // An odd factor goes through all numbers, in no order.
                        let new = (next ^ seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                        shared
                            .ask(&shared.writes, || insert(stub.clone(), new))
                            .await;
                    }
                }
            });
        }
        Ok(Self { shared, askers })
    }

    /// The longest gaps since this was last asked.
    pub(super) fn take_gaps(&self) -> Gaps {
        Gaps {
            reads: self.shared.reads.take_gap(),
            writes: self.shared.writes.take_gap(),
        }
    }

    /// The times of requests that succeeded since this was last asked.
    pub(super) fn take_latencies(&self) -> Times {
        [&self.shared.reads, &self.shared.writes].map(|of| std::mem::take(&mut *of.times()))
    }

    /// How many requests succeed in this time.
    pub(super) async fn done_in(&self, time: Duration) -> u64 {
        let before = self.failures().done;
        sleep(time).await;
        self.failures().done - before
    }

    /// How requests have ended so far.
    pub(super) fn failures(&self) -> Ended {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Ended {
            done: of(&self.shared.reads.count) + of(&self.shared.writes.count),
            retried: of(&self.shared.retried),
            failed: of(&self.shared.failed),
        }
    }

    /// Ends it, once requests in flight have ended.
    pub(super) async fn end(mut self) -> anyhow::Result<Ended> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.askers.join_next().await {
            ended?;
        }
        Ok(self.failures())
    }
}

impl Shared {
    /// Makes a request, and once more if it fails.
    async fn ask<F>(&self, successes: &Successes, request: impl Fn() -> F)
    where
        F: Future<Output = Result<(), Status>>,
    {
        let begun = Instant::now();
        let attempts = async {
            if request().await.is_ok() {
                return true;
            }
            self.retried.fetch_add(1, Ordering::Relaxed);
            request().await.is_ok()
        };
        if timeout(PATIENCE, attempts).await.unwrap_or(false) {
            successes.note(begun.elapsed());
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn find(mut stub: Stub, query: Fingerprint) -> Result<(), Status> {
    let answer = stub.find_all(find_request(BARE, &[query])).await?;
    // It is of no use if something may be missing.
    match answer.into_inner().completeness {
        None => Ok(()),
        Some(_) => Err(Status::unavailable("a partial answer")),
    }
}

async fn insert(mut stub: Stub, fingerprint: u64) -> Result<(), Status> {
    let request = pb::InsertRequest {
        corpus: BARE.to_owned(),
        fingerprints: vec![fingerprint],
        ..pb::InsertRequest::default()
    };
    stub.insert(request).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_ends_with_a_success_or_goes_on() {
        let successes = Successes::default();
        successes.take_gap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {}
        successes.note(Duration::ZERO);
        successes.note(Duration::ZERO);
        assert!(successes.take_gap() >= Duration::from_millis(5));
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(3) {}
        assert!(successes.take_gap() >= Duration::from_millis(3));
    }
}
