//! A lane: one long-lived stream of work to a node, many requests on it at once. Requests that are
//! ready at one time go as one message, so messages grow with the load.
//!
//! # Invariants
//! - LN1: a request is answered at most once, by the answer that has its sequence; no other request of the lane has
//!   that. A refusal is an answer.
//! - LN2: once a lane has ended, no request waits on it. Requests that wait, and later ones, fail at once: the node is
//!   unreachable. The caller decides whether to try again.
//! - LN3: the lane forgets a request as soon as its caller has gone. Its item is not sent if it still waits in the queue;
//!   if it was sent, the node is sent a cancellation, whatever waits in the queue.
//! - LN4: the lane drops an answer that the budget has no room for. The request fails, and the lane continues.
//! - LN5: requests that need a lane at the same time share one attempt to open it. If it fails, all of them fail with
//!   it; they do not try one after the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, Shared};
use futures_util::{FutureExt, Stream, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::status_from_bytes;
use simshard_transport::{Budget, Taken};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tonic::Status;

use super::life::Life;
use super::{CallError, Client};
use crate::deadline::Deadline;

/// Items that wait for the transport, and most items of a message. The caller of a further item waits for room.
const QUEUE: usize = 1024;

/// Bytes of the items that are sent as one message, unless a single one has more.
const MESSAGE: usize = 64 << 10;

/// The outcome of opening a lane, for all calls that wait for it.
type Opening = Shared<BoxFuture<'static, Result<Arc<Lane>, CallError>>>;

/// A connection, and the lane on it while it has one.
#[derive(Debug)]
pub(super) struct Slot {
    client: Client,
    /// The memory for answers.
    budget: Budget,
    /// Of the node.
    life: Arc<Life>,
    lane: Mutex<Option<Opening>>,
}

impl Slot {
    pub(super) fn new(client: Client, budget: Budget, life: Arc<Life>) -> Self {
        Self {
            client,
            budget,
            life,
            lane: Mutex::default(),
        }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The lane; a new one if there is none, or it has ended. Concurrent callers wait for the same one.
    pub(super) async fn lane(&self) -> Result<Arc<Lane>, CallError> {
        let opening = {
            let mut lane = self.lane.lock();
            match lane.as_ref().map(|opening| (opening, opening.peek())) {
                Some((_, Some(Ok(lane)))) if !lane.waiting.is_closed() => {
                    return Ok(Arc::clone(lane));
                }
                Some((opening, None)) => opening.clone(),
                Some((_, Some(_))) | None => lane.insert(self.open()).clone(),
            }
        };
        opening.await
    }

    fn open(&self) -> Opening {
        let opened = Lane::open(self.client(), self.budget.clone(), Arc::clone(&self.life));
        opened.map(|lane| Ok(Arc::new(lane?))).boxed().shared()
    }
}

/// The answer of a node, and its memory.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) memory: Taken,
}

/// Where an answer goes.
type Sender = oneshot::Sender<Result<Answer, CallError>>;

/// A stream of work, open until the connection breaks or the node stops.
#[derive(Debug)]
pub(super) struct Lane {
    items: mpsc::Sender<pb::WorkItem>,
    /// As many as there are requests that were waited for, at most.
    cancels: mpsc::UnboundedSender<u64>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
}

impl Lane {
    async fn open(mut client: Client, budget: Budget, life: Arc<Life>) -> Result<Self, Status> {
        let (lane, queue) = Self::new();
        let answers = client.work(messages(queue)).await?.into_inner();
        let waiting = Arc::clone(&lane.waiting);
        tokio::spawn(receive(answers, waiting, budget, life));
        Ok(lane)
    }

    /// A lane, and what it has to send.
    fn new() -> (Self, Queue) {
        let (items, queued) = mpsc::channel(QUEUE);
        let (cancels, cancelled) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        let queue = Queue {
            next: None,
            cancels: cancelled,
            items: queued,
            waiting: Arc::clone(&waiting),
        };
        let lane = Self {
            items,
            cancels,
            waiting,
            next: AtomicU64::new(0),
        };
        (lane, queue)
    }

    /// Sends work and waits for the answer. Dropping the future cancels the work.
    pub(super) async fn work(&self, deadline: Deadline, work: Work) -> Result<Answer, CallError> {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = self.waiting.add(sequence)?;
        let _until_answered = CancelOnDrop {
            lane: self,
            sequence,
        };
        let room = self.items.reserve().await;
        let room = room.map_err(|_| CallError::Unreachable)?;
        let left = deadline.instant().saturating_duration_since(Instant::now());
        room.send(pb::WorkItem {
            sequence,
            timeout_micros: u64::try_from(left.as_micros()).unwrap_or(u64::MAX),
            work: Some(work),
        });
        let answer = answer.await.unwrap_or(Err(CallError::Unreachable))?;
        match answer.outcome {
            Outcome::Status(status) => Err(status_from_bytes(status).into()),
            Outcome::Changed(_) | Outcome::Matches(_) | Outcome::Confirmed(_) => Ok(answer),
        }
    }
}

/// Cancels a request when it is dropped, unless it was answered.
struct CancelOnDrop<'a> {
    lane: &'a Lane,
    sequence: u64,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.lane.waiting.take(self.sequence).is_some() {
            // If the lane has ended, so has the work.
            let _ = self.lane.cancels.send(self.sequence);
        }
    }
}

/// The unanswered requests; `None` once the stream has ended.
#[derive(Debug)]
struct Waiting(Mutex<Option<HashMap<u64, Sender>>>);

impl Default for Waiting {
    fn default() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }
}

impl Waiting {
    fn add(
        &self,
        sequence: u64,
    ) -> Result<oneshot::Receiver<Result<Answer, CallError>>, CallError> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        let waiting = waiting.as_mut().ok_or(CallError::Unreachable)?;
        waiting.insert(sequence, sender);
        Ok(receiver)
    }

    fn take(&self, sequence: u64) -> Option<Sender> {
        self.lock().as_mut()?.remove(&sequence)
    }

    fn has(&self, sequence: u64) -> bool {
        let waiting = self.lock();
        waiting
            .as_ref()
            .is_some_and(|all| all.contains_key(&sequence))
    }

    fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, Sender>>> {
        self.0.lock()
    }
}

/// Hands the answers out until the stream ends. Those who still wait then hear that it has.
async fn receive(
    mut answers: impl Stream<Item = Result<pb::WorkResponse, Status>> + Unpin,
    waiting: Arc<Waiting>,
    budget: Budget,
    life: Arc<Life>,
) {
    while let Some(Ok(response)) = answers.next().await {
        life.note_sign();
        for outcome in response.outcomes {
            hand_out(outcome, &waiting, &budget);
        }
    }
    waiting.close();
}

fn hand_out(outcome: pb::WorkOutcome, waiting: &Waiting, budget: &Budget) {
    let Some(sender) = waiting.take(outcome.sequence) else {
        return;
    };
    let answer = match budget.try_take(outcome.encoded_len()) {
        None => Err(CallError::NoMemory),
        Some(memory) => {
            let outcome = outcome.outcome.ok_or_else(CallError::nonsense);
            outcome.map(|outcome| Answer { outcome, memory })
        }
    };
    // The caller may have gone just now.
    let _ = sender.send(answer);
}

/// What a lane has to send.
#[derive(Debug)]
struct Queue {
    /// An item that did not fit in the message before.
    next: Option<pb::WorkItem>,
    cancels: mpsc::UnboundedReceiver<u64>,
    items: mpsc::Receiver<pb::WorkItem>,
    waiting: Arc<Waiting>,
}

impl Queue {
    /// What is sent next, once there is something; `None` once the lane is gone.
    async fn next(&mut self) -> Option<pb::WorkItem> {
        loop {
            if let Some(item) = self.try_next() {
                return Some(item);
            }
            tokio::select! {
                item = self.items.recv() => self.next = Some(item?),
                Some(sequence) = self.cancels.recv() => return Some(cancel(sequence)),
            }
        }
    }

    /// The same, if there is something now. Cancellations overtake items: what was cancelled is not sent any more.
    fn try_next(&mut self) -> Option<pb::WorkItem> {
        if let Ok(sequence) = self.cancels.try_recv() {
            return Some(cancel(sequence));
        }
        loop {
            let item = self.next.take().or_else(|| self.items.try_recv().ok())?;
            // Its caller waits.
            if self.waiting.has(item.sequence) {
                return Some(item);
            }
        }
    }
}

fn cancel(sequence: u64) -> pb::WorkItem {
    pb::WorkItem {
        work: Some(Work::Cancel(sequence)),
        ..pb::WorkItem::default()
    }
}

/// The messages that items are sent in: all that wait at one time, up to [`MESSAGE`] bytes.
fn messages(queue: Queue) -> impl Stream<Item = pb::WorkRequest> + Send + 'static {
    futures_util::stream::unfold(queue, |mut queue| async move {
        let first = queue.next().await?;
        // Requests that are ready to run now join it: with many in flight, messages are larger and fewer.
        tokio::task::yield_now().await;
        let mut bytes = first.encoded_len();
        let mut items = vec![first];
        while bytes < MESSAGE
            && items.len() < QUEUE
            && let Some(item) = queue.try_next()
        {
            bytes += item.encoded_len();
            if bytes > MESSAGE {
                queue.next = Some(item);
                break;
            }
            items.push(item);
        }
        Some((pb::WorkRequest { items }, queue))
    })
}

#[cfg(test)]
mod tests;
