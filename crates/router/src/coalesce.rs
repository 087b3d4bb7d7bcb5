//! Requests that arrive together become one batch.
//!
//! Nobody waits for company: a request that finds a worker free goes at once. Those that arrive while all workers
//! are busy are the next batch, so batches grow with the load, and an idle router adds no latency.
//!
//! # Invariants
//! - CL1: every job that is waited for is done once, in one batch of jobs with its key.
//! - CL2: no more than [`WORKERS`] batches of a key are under way, but for those that take longer than [`SLOW`]: what
//!   one node that hangs holds up is no reason for others to wait.
//! - CL3: a batch weighs no more than [`HEAVIEST`], unless it is a single job.
//! - CL4: a batch that nobody waits for any longer is given up.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

/// Batches of one key under way at once: while the nodes work on one, the next is planned.
const WORKERS: usize = 2;

/// A batch that takes longer than this makes room for another beside it …
const SLOW: Duration = Duration::from_millis(50);

/// … up to so many of a key.
const MOST_WORKERS: usize = 64;

/// The number of the next worker, of all keys: one that has ended must never be taken for another.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Heaviest batch, in documents or queries.
const HEAVIEST: usize = 4096;

/// Part of a batch.
pub(crate) trait Job: Send + 'static {
    /// What its request waits for.
    type Answer: Send + 'static;

    /// Number of its documents or queries.
    fn weight(&self) -> usize;
}

/// Jobs by key; only those with equal keys can share a batch.
pub(crate) struct Coalescer<K, J: Job> {
    queues: Mutex<HashMap<K, Queue<J>>>,
}

/// A job, and where its answer goes.
type Waiting<J> = (J, oneshot::Sender<<J as Job>::Answer>);

struct Queue<J: Job> {
    waiting: VecDeque<Waiting<J>>,
    /// When each worker took its batch.
    workers: HashMap<u64, Instant>,
}

impl<J: Job> Queue<J> {
    /// A worker more, if there may be one.
    fn hire(&mut self) -> Option<u64> {
        let busy = self.workers.values();
        let quick = busy.filter(|since| since.elapsed() < SLOW).count();
        if quick >= WORKERS || self.workers.len() >= MOST_WORKERS {
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.workers.insert(number, Instant::now());
        Some(number)
    }
}

impl<K, J: Job> Default for Coalescer<K, J> {
    fn default() -> Self {
        Self {
            queues: Mutex::default(),
        }
    }
}

impl<K, J: Job> fmt::Debug for Coalescer<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coalescer").finish_non_exhaustive()
    }
}

impl<K, J> Coalescer<K, J>
where
    K: Clone + Eq + Hash + Send + 'static,
    J: Job,
{
    /// Has a job done by `work`, in a batch with those that wait beside it. It answers each job of a batch when it
    /// can. `None` if it never did.
    pub(crate) async fn run<F>(
        self: &Arc<Self>,
        key: K,
        job: J,
        work: impl Fn(Vec<J>, Replies<J::Answer>) -> F + Send + Sync + 'static,
    ) -> Option<J::Answer>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, answer) = oneshot::channel();
        if let Some(number) = self.add(&key, (job, sender)) {
            self.start(key, number, Arc::new(work));
        }
        answer.await.ok()
    }

    fn start<W, F>(self: &Arc<Self>, key: K, number: u64, work: Arc<W>)
    where
        W: Fn(Vec<J>, Replies<J::Answer>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let worker = Worker {
            coalescer: Arc::clone(self),
            key,
            number,
        };
        // Boxed, as a worker starts others.
        let run: BoxFuture<'static, ()> = Box::pin(worker.run(work));
        tokio::spawn(run);
    }

    /// The number of another worker, if jobs wait and there may be one.
    fn hire(&self, key: &K) -> Option<u64> {
        let mut queues = self.lock();
        let queue = queues.get_mut(key)?;
        match queue.waiting.is_empty() {
            true => None,
            false => queue.hire(),
        }
    }

    /// Adds a job to those that wait; returns the number of another worker, if there is to be one.
    fn add(&self, key: &K, job: Waiting<J>) -> Option<u64> {
        let mut queues = self.lock();
        let queue = queues.entry(key.clone()).or_insert_with(|| Queue {
            waiting: VecDeque::new(),
            workers: HashMap::new(),
        });
        queue.waiting.push_back(job);
        queue.hire()
    }

    /// The next batch; `None` if no job waits, and the worker that asks is to end.
    fn take(&self, key: &K, worker: u64) -> Option<Vec<Waiting<J>>> {
        let mut queues = self.lock();
        let queue = queues.get_mut(key)?;
        queue.workers.insert(worker, Instant::now());
        let mut batch: Vec<Waiting<J>> = Vec::new();
        let mut weight = 0;
        while let Some((job, sender)) = queue.waiting.pop_front() {
            weight += job.weight();
            if weight > HEAVIEST && !batch.is_empty() {
                queue.waiting.push_front((job, sender));
                break;
            }
            if !sender.is_closed() {
                batch.push((job, sender));
            }
        }
        if batch.is_empty() {
            // In the same lock in which it found nothing to do: else a job that arrives meanwhile would rely on it.
            Self::dismiss(&mut queues, key, worker);
            return None;
        }
        Some(batch)
    }

    /// Lets a worker go, if it is still there. Where it was the last, nobody is to wait for one.
    fn dismiss(queues: &mut HashMap<K, Queue<J>>, key: &K, worker: u64) {
        if let Some(queue) = queues.get_mut(key) {
            let was_there = queue.workers.remove(&worker).is_some();
            if was_there && queue.workers.is_empty() {
                queues.remove(key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Queue<J>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works on the jobs of a key until none is left.
struct Worker<K: Clone + Eq + Hash + Send + 'static, J: Job> {
    coalescer: Arc<Coalescer<K, J>>,
    key: K,
    number: u64,
}

impl<K, J> Worker<K, J>
where
    K: Clone + Eq + Hash + Send + 'static,
    J: Job,
{
    async fn run<W, F>(self, work: Arc<W>)
    where
        W: Fn(Vec<J>, Replies<J::Answer>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        while let Some(batch) = self.coalescer.take(&self.key, self.number) {
            let (jobs, senders): (Vec<J>, Vec<_>) = batch.into_iter().unzip();
            let replies = Replies::new(senders);
            let mut done = std::pin::pin!(work(jobs, replies.clone()));
            let mut slow = std::pin::pin!(tokio::time::sleep(SLOW));
            loop {
                tokio::select! {
                    () = &mut done => break,
                    () = replies.unwanted() => break,
                    () = &mut slow => {
                        // Those who wait do not wait for this batch.
                        if let Some(number) = self.coalescer.hire(&self.key) {
                            self.coalescer.start(self.key.clone(), number, Arc::clone(&work));
                        }
                        slow.set(tokio::time::sleep(SLOW));
                    }
                }
            }
        }
    }
}

/// Where the answers to a batch go, by the places of its jobs.
pub(crate) struct Replies<A>(Arc<Mutex<Vec<Option<oneshot::Sender<A>>>>>);

impl<A> Clone for Replies<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A> Replies<A> {
    /// For a job by itself, and its answer.
    pub(crate) fn one() -> (Self, oneshot::Receiver<A>) {
        let (sender, answer) = oneshot::channel();
        (Self::new(vec![sender]), answer)
    }

    fn new(senders: Vec<oneshot::Sender<A>>) -> Self {
        Self(Arc::new(Mutex::new(
            senders.into_iter().map(Some).collect(),
        )))
    }

    /// Answers a job, unless it was answered already.
    pub(crate) fn send(&self, job: usize, answer: A) {
        let sender = self.lock()[job].take();
        // Whoever waited may have gone.
        let _ = sender.map(|sender| sender.send(answer));
    }

    /// Waits until nobody waits for an answer any more.
    async fn unwanted(&self) {
        std::future::poll_fn(|context| {
            let mut senders = self.lock();
            let mut open = senders.iter_mut().flatten();
            match open.all(|sender| sender.poll_closed(context).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<oneshot::Sender<A>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, J> Drop for Worker<K, J>
where
    K: Clone + Eq + Hash + Send + 'static,
    J: Job,
{
    /// A panic takes the batch with it, but not the worker's place.
    fn drop(&mut self) {
        Coalescer::dismiss(&mut self.coalescer.lock(), &self.key, self.number);
    }
}

#[cfg(test)]
mod tests;
