//! A lane: one long-lived stream of work to a node, many requests on it at once. Requests that are
//! ready at one time go as one message, so messages grow with the load.
//!
//! # Invariants
//! - LN1: a request is answered at most once, by the answer that has its sequence; no other request of the lane has
//!   that. A refusal is an answer.
//! - LN2: once a lane has ended, no request waits on it. Requests that wait, and later ones, fail at once: the node is
//!   unreachable. The caller decides whether to try again.
//! - LN3: the lane forgets a request as soon as its caller has gone; its item stays in the queue until it is sent. The
//!   lane sends the node a cancellation if the queue has room. If not, the node gives the request up at its deadline.
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

use super::{CallError, Client};
use crate::deadline::Deadline;

/// Items that wait for the transport, and most items of a message. The caller of a further item waits for room.
const QUEUE: usize = 1024;

/// Bytes of the items that are sent as one message, unless a single one has more.
const MESSAGE: usize = 64 << 10;

/// A lane that is being opened, or what came of that, for all who need it.
type Opening = Shared<BoxFuture<'static, Result<Arc<Lane>, CallError>>>;

/// A connection, and the lane on it while it has one.
#[derive(Debug)]
pub(super) struct Slot {
    client: Client,
    /// The memory for answers.
    budget: Budget,
    lane: Mutex<Option<Opening>>,
}

impl Slot {
    pub(super) fn new(client: Client, budget: Budget) -> Self {
        Self {
            client,
            budget,
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
        let opened = Lane::open(self.client(), self.budget.clone());
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
    waiting: Arc<Waiting>,
    next: AtomicU64,
}

impl Lane {
    async fn open(mut client: Client, budget: Budget) -> Result<Self, Status> {
        let (items, receiver) = mpsc::channel(QUEUE);
        let answers = client.work(messages(receiver)).await?;
        Ok(Self::over(items, answers.into_inner(), budget))
    }

    /// A lane over an open pair of streams.
    fn over(
        items: mpsc::Sender<pb::WorkItem>,
        answers: impl Stream<Item = Result<pb::WorkResponse, Status>> + Send + Unpin + 'static,
        budget: Budget,
    ) -> Self {
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(receive(answers, Arc::clone(&waiting), budget));
        Self {
            items,
            waiting,
            next: AtomicU64::new(0),
        }
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
            Outcome::Changed(_) | Outcome::Matches(_) => Ok(answer),
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
            let cancel = pb::WorkItem {
                work: Some(Work::Cancel(self.sequence)),
                ..pb::WorkItem::default()
            };
            // If there is no room, the node gives the work up at its deadline.
            let _ = self.lane.items.try_send(cancel);
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
) {
    while let Some(Ok(response)) = answers.next().await {
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

/// The messages that items are sent in: all that wait at one time, up to [`MESSAGE`] bytes.
fn messages(
    receiver: mpsc::Receiver<pb::WorkItem>,
) -> impl Stream<Item = pb::WorkRequest> + Send + 'static {
    futures_util::stream::unfold((receiver, None), |(mut receiver, next)| async move {
        let first: pb::WorkItem = match next {
            Some(item) => item,
            None => receiver.recv().await?,
        };
        // Requests that are ready to run now join it: with many in flight, messages are larger and fewer.
        tokio::task::yield_now().await;
        let mut bytes = first.encoded_len();
        let mut items = vec![first];
        while bytes < MESSAGE
            && items.len() < QUEUE
            && let Ok(item) = receiver.try_recv()
        {
            bytes += item.encoded_len();
            if bytes > MESSAGE {
                return Some((pb::WorkRequest { items }, (receiver, Some(item))));
            }
            items.push(item);
        }
        Some((pb::WorkRequest { items }, (receiver, None)))
    })
}

#[cfg(test)]
mod tests;
