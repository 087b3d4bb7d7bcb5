//! A lane: one long-lived stream of work to a node, many requests on it at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_request::Work;
use simshard_proto::shard::v1::work_response::Outcome;
use simshard_proto::status_from_bytes;
use simshard_proto::transport::{Budget, Taken};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::{CallError, Client};
use crate::deadline::Deadline;

/// Requests that wait for the transport. Whoever has one more waits as well.
const QUEUE: usize = 16;

/// A connection, and the lane on it while it has one.
#[derive(Debug)]
pub(super) struct Slot {
    client: Client,
    /// The memory for answers.
    budget: Budget,
    lane: tokio::sync::Mutex<Option<Arc<Lane>>>,
}

impl Slot {
    pub(super) fn new(client: Client, budget: Budget) -> Self {
        Self {
            client,
            budget,
            lane: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The lane; a new one if there is none, or it has ended. Whoever else asks meanwhile waits for it.
    pub(super) async fn lane(&self) -> Result<Arc<Lane>, CallError> {
        let mut lane = self.lane.lock().await;
        if let Some(lane) = lane.as_ref().filter(|lane| !lane.waiting.is_closed()) {
            return Ok(Arc::clone(lane));
        }
        let opened = Arc::new(Lane::open(self.client(), self.budget.clone()).await?);
        *lane = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

/// What a node answered, and the memory that this takes.
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
    requests: mpsc::Sender<pb::WorkRequest>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
}

impl Lane {
    async fn open(mut client: Client, budget: Budget) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::channel(QUEUE);
        let answers = client.work(ReceiverStream::new(receiver)).await?;
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(receive(answers.into_inner(), Arc::clone(&waiting), budget));
        Ok(Self {
            requests,
            waiting,
            next: AtomicU64::new(0),
        })
    }

    /// Has the node do something; tells it if nobody waits for that any longer.
    pub(super) async fn work(&self, deadline: Deadline, work: Work) -> Result<Answer, CallError> {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = self.waiting.add(sequence)?;
        let _until_answered = Wanted {
            lane: self,
            sequence,
        };
        let left = deadline.instant().saturating_duration_since(Instant::now());
        let request = pb::WorkRequest {
            sequence,
            timeout_micros: u64::try_from(left.as_micros()).unwrap_or(u64::MAX),
            work: Some(work),
        };
        let sent = self.requests.send(request).await;
        sent.map_err(|_| CallError::Unreachable)?;
        let answer = answer.await.unwrap_or(Err(CallError::Unreachable))?;
        match answer.outcome {
            Outcome::Status(status) => Err(status_from_bytes(status).into()),
            Outcome::Changed(_) | Outcome::Matches(_) => Ok(answer),
        }
    }
}

/// Cancels a request when it is dropped, unless it was answered.
struct Wanted<'a> {
    lane: &'a Lane,
    sequence: u64,
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        if self.lane.waiting.take(self.sequence).is_some() {
            let cancel = pb::WorkRequest {
                work: Some(Work::Cancel(self.sequence)),
                ..pb::WorkRequest::default()
            };
            // If there is no room, the node gives the work up at its deadline.
            let _ = self.lane.requests.try_send(cancel);
        }
    }
}

/// Who waits for which answer; nobody any more, once the stream has ended.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the answers out until the stream ends. Those who still wait then hear that it has.
async fn receive(mut answers: Streaming<pb::WorkResponse>, waiting: Arc<Waiting>, budget: Budget) {
    while let Ok(Some(response)) = answers.message().await {
        let memory = budget.try_take(response.encoded_len());
        if let Some((sender, outcome)) = waiting.take(response.sequence).zip(response.outcome) {
            let answer = |memory| Answer { outcome, memory };
            // Whoever waited may have gone just now.
            let _ = sender.send(memory.map(answer).ok_or(CallError::NoMemory));
        }
    }
    waiting.close();
}
