//! Requests that arrive together become one batch.
//!
//! Nobody waits for company: a request that finds a worker free goes at once. Those that arrive while all workers
//! are busy are the next batch, so batches grow with the load, and an idle router adds no latency.
//!
//! # Invariants
//! - CL1: every job that is waited for is done once, in one batch of jobs with its key.
//! - CL2: no more than [`WORKERS`] batches of a key are under way, but for those that take longer than [`SLOW`]. However
//!   many these are, a job that waits is taken as soon as others leave room: what one node that hangs holds up is no
//!   reason for others to wait.
//! - CL3: a batch weighs no more than [`HEAVIEST`], unless it is a single job.
//! - CL4: a batch that nobody waits for any longer is given up. So there are no more batches than requests under way.
//! - CL5: while a job waits, a worker has a place, and will come to take it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

/// Places for workers on one key: while the nodes work on one batch, the next is planned.
const WORKERS: usize = 2;

/// A worker whose batch takes longer than this gives up its place, and ends with that batch.
const SLOW: Duration = Duration::from_millis(50);

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
    /// Workers that have a place.
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
        if self.add(&key, (job, sender)) {
            self.start(key, Arc::new(work));
        }
        answer.await.ok()
    }

    /// Starts the worker that a place was taken for.
    fn start<W, F>(self: &Arc<Self>, key: K, work: Arc<W>)
    where
        W: Fn(Vec<J>, Replies<J::Answer>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let worker = Worker {
            coalescer: Arc::clone(self),
            key,
            has_place: true,
        };
        // Boxed, as a worker starts others.
        let run: BoxFuture<'static, ()> = Box::pin(worker.run(work));
        tokio::spawn(run);
    }

    /// Adds a job to those that wait; whether a place was free and is taken, for a worker to be started.
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

    /// Frees the place of a worker. Where it was the last, nobody is to wait for one.
    fn free(queues: &mut HashMap<K, Queue<J>>, key: &K) {
        if let Some(queue) = queues.get_mut(key) {
            queue.workers -= 1;
            if queue.workers == 0 {
                queues.remove(key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Queue<J>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works on the jobs of a key until none is left, or a batch is slow.
struct Worker<K: Clone + Eq + Hash + Send + 'static, J: Job> {
    coalescer: Arc<Coalescer<K, J>>,
    key: K,
    /// Whether it has a place, which it frees once.
    has_place: bool,
}

impl<K, J> Worker<K, J>
where
    K: Clone + Eq + Hash + Send + 'static,
    J: Job,
{
    async fn run<W, F>(mut self, work: Arc<W>)
    where
        W: Fn(Vec<J>, Replies<J::Answer>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        while let Some(batch) = self.take() {
            let (jobs, senders): (Vec<J>, Vec<_>) = batch.into_iter().unzip();
            let replies = Replies::new(senders);
            let mut done = std::pin::pin!(work(jobs, replies.clone()));
            let mut slow = std::pin::pin!(tokio::time::sleep(SLOW));
            loop {
                tokio::select! {
                    () = &mut done => break,
                    () = replies.unwanted() => break,
                    () = &mut slow, if self.has_place => {
                        // Those who wait do not wait for this batch.
                        if self.give_way() {
                            self.coalescer.start(self.key.clone(), Arc::clone(&work));
                        }
                    }
                }
            }
        }
    }

    /// The next batch; `None` if no job waits, or the worker has no place any more: then it is to end.
    fn take(&mut self) -> Option<Vec<Waiting<J>>> {
        if !self.has_place {
            return None;
        }
        let mut queues = self.coalescer.lock();
        let queue = queues.get_mut(&self.key)?;
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
            Coalescer::free(&mut queues, &self.key);
            self.has_place = false;
            return None;
        }
        Some(batch)
    }

    /// Leaves its place, to another worker if jobs wait: whether one is to be started.
    fn give_way(&mut self) -> bool {
        let mut queues = self.coalescer.lock();
        let queue = queues.get(&self.key);
        let is_needed = queue.is_some_and(|queue| !queue.waiting.is_empty());
        if !is_needed {
            Coalescer::free(&mut queues, &self.key);
        }
        self.has_place = false;
        is_needed
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

    pub(crate) fn new(senders: Vec<oneshot::Sender<A>>) -> Self {
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

    /// Whether somebody waits for the answer to a job.
    pub(crate) fn is_wanted(&self, job: usize) -> bool {
        let senders = self.lock();
        senders[job]
            .as_ref()
            .is_some_and(|sender| !sender.is_closed())
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
        if self.has_place {
            Coalescer::free(&mut self.coalescer.lock(), &self.key);
        }
    }
}

#[cfg(test)]
mod tests;
