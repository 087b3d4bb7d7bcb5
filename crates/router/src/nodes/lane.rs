//! A lane: one long-lived stream of work to a node, many requests on it at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_request::Work;
use simshard_proto::shard::v1::work_response::Outcome;
use simshard_proto::status_from_bytes;
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
    lane: tokio::sync::Mutex<Option<Arc<Lane>>>,
}

impl Slot {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
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
        let opened = Arc::new(Lane::open(self.client()).await?);
        *lane = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

/// A stream of work, open until the connection breaks or the node stops.
#[derive(Debug)]
pub(super) struct Lane {
    requests: mpsc::Sender<pb::WorkRequest>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
}

impl Lane {
    async fn open(mut client: Client) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::channel(QUEUE);
        let answers = client.work(ReceiverStream::new(receiver)).await?;
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(receive(answers.into_inner(), Arc::clone(&waiting)));
        Ok(Self {
            requests,
            waiting,
            next: AtomicU64::new(0),
        })
    }

    /// Has the node do something; tells it if nobody waits for that any longer.
    pub(super) async fn work(&self, deadline: Deadline, work: Work) -> Result<Outcome, CallError> {
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
        match answer.await {
            Ok(Outcome::Status(status)) => Err(status_from_bytes(status).into()),
            Ok(outcome) => Ok(outcome),
            Err(_) => Err(CallError::Unreachable),
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
struct Waiting(Mutex<Option<HashMap<u64, oneshot::Sender<Outcome>>>>);

impl Default for Waiting {
    fn default() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }
}

impl Waiting {
    fn add(&self, sequence: u64) -> Result<oneshot::Receiver<Outcome>, CallError> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        let waiting = waiting.as_mut().ok_or(CallError::Unreachable)?;
        waiting.insert(sequence, sender);
        Ok(receiver)
    }

    fn take(&self, sequence: u64) -> Option<oneshot::Sender<Outcome>> {
        self.lock().as_mut()?.remove(&sequence)
    }

    fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, oneshot::Sender<Outcome>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the answers out until the stream ends. Those who still wait then hear that it has.
async fn receive(mut answers: Streaming<pb::WorkResponse>, waiting: Arc<Waiting>) {
    while let Ok(Some(answer)) = answers.message().await {
        if let Some((sender, outcome)) = waiting.take(answer.sequence).zip(answer.outcome) {
            // Whoever waited may have gone just now.
            let _ = sender.send(outcome);
        }
    }
    waiting.close();
}
