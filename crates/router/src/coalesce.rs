//! Requests that arrive together become one batch.
//!
//! Nobody waits for company: a request that finds a worker free goes at once. Those that arrive while all workers
//! are busy are the next batch, so batches grow with the load, and an idle router adds no latency.
//!
//! # Invariants
//! - CL1: every job that is waited for is done once, in one batch of jobs with its key.
//! - CL2: no more than [`WORKERS`] batches of a key are under way.
//! - CL3: a batch weighs no more than [`HEAVIEST`], unless it is a single job.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Batches of one key under way at once: while the nodes work on one, the next is planned.
const WORKERS: usize = 2;

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
    workers: usize,
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
    /// Has a job done by `work`, in a batch with those that wait beside it. It answers each job of a batch in
    /// order. `None` if it never did, as the process is ending.
    pub(crate) async fn run<F>(
        self: &Arc<Self>,
        key: K,
        job: J,
        work: impl Fn(Vec<J>) -> F + Send + 'static,
    ) -> Option<J::Answer>
    where
        F: Future<Output = Vec<J::Answer>> + Send + 'static,
    {
        let (sender, answer) = oneshot::channel();
        if self.add(&key, (job, sender)) {
            let worker = Worker {
                coalescer: Arc::clone(self),
                key,
                is_over: false,
            };
            tokio::spawn(worker.run(work));
        }
        answer.await.ok()
    }

    /// Adds a job to those that wait; returns whether there is to be another worker.
    fn add(&self, key: &K, job: Waiting<J>) -> bool {
        let mut queues = self.lock();
        let queue = queues.entry(key.clone()).or_insert_with(|| Queue {
            waiting: VecDeque::new(),
            workers: 0,
        });
        queue.waiting.push_back(job);
        let is_free = queue.workers < WORKERS;
        queue.workers += usize::from(is_free);
        is_free
    }

    /// The next batch; `None` if no job waits, and the worker that asks is to end.
    fn take(&self, key: &K) -> Option<Vec<Waiting<J>>> {
        let mut queues = self.lock();
        let queue = queues.get_mut(key)?;
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
            Self::end_worker(&mut queues, key);
            return None;
        }
        Some(batch)
    }

    /// In the same lock in which it found nothing to do: else a job that arrives meanwhile would rely on it.
    fn end_worker(queues: &mut HashMap<K, Queue<J>>, key: &K) {
        if let Some(queue) = queues.get_mut(key) {
            queue.workers -= 1;
            if queue.workers == 0 && queue.waiting.is_empty() {
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
    is_over: bool,
}

impl<K, J> Worker<K, J>
where
    K: Clone + Eq + Hash + Send + 'static,
    J: Job,
{
    async fn run<F>(mut self, work: impl Fn(Vec<J>) -> F)
    where
        F: Future<Output = Vec<J::Answer>>,
    {
        while let Some(batch) = self.coalescer.take(&self.key) {
            let (jobs, senders): (Vec<J>, Vec<_>) = batch.into_iter().unzip();
            for (answer, sender) in work(jobs).await.into_iter().zip(senders) {
                // Whoever waited may have gone.
                let _ = sender.send(answer);
            }
        }
        self.is_over = true;
    }
}

impl<K, J> Drop for Worker<K, J>
where
    K: Clone + Eq + Hash + Send + 'static,
    J: Job,
{
    /// A panic takes the batch with it, but not the worker's place.
    fn drop(&mut self) {
        if !self.is_over {
            Coalescer::end_worker(&mut self.coalescer.lock(), &self.key);
        }
    }
}

#[cfg(test)]
mod tests;
