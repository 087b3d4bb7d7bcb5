//! A stream of work from a router: many items in flight at once, answered as they are done.
//!
//! # Invariants
//! - WK1: an item that was read is answered once, with its sequence, unless it is cancelled or the router goes. A
//!   refusal is an answer, and does not end the stream.
//! - WK2: no message is read while [`IN_FLIGHT`] items of a stream are in flight; an answer that waits for the router to
//!   take it counts. A message with more items than that ends the stream, so at most twice as many are in flight.
//! - WK3: the node gives up a cancelled item and does not answer it; a large answer that waits is dropped. When the
//!   router goes, the node gives up all items. A search that is given up ends; a change that has begun continues.
//! - WK4: a node that stops answers what is in flight, refuses what it reads meanwhile, and then ends the stream.
//! - WK5: an item and its answer count until the answer has gone. Where there is no room for one of them, that is
//!   the answer. A message counts until all its items are answered.
//! - WK6: a small answer is sent before all large ones that are not on their way yet.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt};
use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::{Violations, bits_from, shards_from, status_into_bytes};
use simshard_topology::Version;
use simshard_topology::replication::Sent;
use simshard_transport::{Admitted, NO_MEMORY, Taken, WorkKind, WorkWatch, overloaded};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::decode;
use crate::engine::{self, Engine};
use crate::error::NodeError;

/// Items of one stream in flight at once. The next message is read when one of them is answered, so a router that does
/// not read stops its own writing. Enough that a word to cancel one of them seldom waits; the bytes of all of them
/// are bounded by the budget.
const IN_FLIGHT: usize = 4096;

/// Items that are polled in one go.
const AT_ONCE: usize = 64;

/// Answers from this many bytes on are large; small ones go first.
const LARGE_ANSWER_BYTES: usize = 256 << 10;

/// One stream; its other end is the lane of a router.
pub(super) struct WorkStream {
    pub(super) engine: Arc<Engine>,
    pub(super) answers: mpsc::Sender<Result<WorkMessage, Status>>,
    /// The memory of what has arrived.
    pub(super) admitted: Admitted,
    /// Once it is cancelled, nothing more is begun.
    pub(super) stopping: CancellationToken,
    /// What watches the items.
    pub(super) watch: Arc<WorkWatch>,
}

impl WorkStream {
    /// Does what the messages ask for, until they or the interest in the answers end, or the node is to stop.
    pub(super) async fn run(
        self,
        mut messages: impl Stream<Item = Result<pb::WorkRequest, Status>> + Unpin,
    ) {
        let mut in_flight = InFlight::default();
        let mut is_open = true;
        while is_open || !in_flight.is_empty() {
            let has_room = in_flight.has_room();
            let InFlight { works, ready, .. } = &mut in_flight;
            tokio::select! {
                Some(first) = works.next() => in_flight.answered(first).await,
                Ok(place) = self.answers.reserve(), if !ready.is_empty() => {
                    place.send(Ok(ready.message()));
                }
                message = messages.next(), if is_open && has_room => {
                    let Some(Ok(message)) = message else {
                        is_open = false;
                        continue;
                    };
                    if message.items.len() > IN_FLIGHT {
                        let refusal = Violations::of("items", format!("has more than {IN_FLIGHT}"));
                        let _ = self.answers.send(Err(refusal)).await;
                        return;
                    }
                    let memory = Arc::new(self.admitted.split());
                    for (place, item) in (1_usize..).zip(message.items) {
                        in_flight.begin(&self, item, &memory);
                        if place.is_multiple_of(AT_ONCE) {
                            in_flight.ready.send_what_fits(&self.answers);
                            tokio::task::yield_now().await;
                        }
                        if self.answers.is_closed() {
                            return;
                        }
                    }
                }
                // Others are told so at once, for as long as some are in flight.
                () = self.stopping.cancelled(), if works.is_empty() && ready.is_empty() => return,
                () = self.answers.closed() => return,
            }
        }
    }

    /// Begins an item, or says why not. What it holds counts until its answer has gone.
    fn begin(
        &self,
        item: pb::WorkItem,
        message: Arc<Taken>,
    ) -> impl Future<Output = WaitingAnswer> + Send + use<> {
        let (engine, watch) = (Arc::clone(&self.engine), Arc::clone(&self.watch));
        let memory = Memory {
            own: self.admitted.split(),
            _message: message,
        };
        let refused = if self.stopping.is_cancelled() {
            Some(NodeError::Stopping.into())
        } else if !memory.own.fits() {
            Some(overloaded(NO_MEMORY))
        } else {
            None
        };
        async move {
            match refused {
                None => answer(engine, watch, item, memory).await,
                Some(status) => WaitingAnswer {
                    answer: response(item.sequence, Err(status)),
                    is_large: false,
                    _memory: memory,
                },
            }
        }
    }
}

/// The items of a stream that were read, until their answers are sent.
#[derive(Default)]
struct InFlight {
    works: FuturesUnordered<Abortable<BoxFuture<'static, WaitingAnswer>>>,
    /// How to give them up, by sequence.
    cancels: HashMap<u64, AbortHandle>,
    ready: WaitingAnswers,
}

impl InFlight {
    fn is_empty(&self) -> bool {
        self.works.is_empty() && self.ready.is_empty()
    }

    /// Whether another message may be read (WK2). Cancellations and small work do not wait for large answers to be sent.
    fn has_room(&self) -> bool {
        self.works.len() + self.ready.len() < IN_FLIGHT
    }

    /// Begins an item, or cancels one. What can be answered at once is.
    fn begin(&mut self, stream: &WorkStream, item: pb::WorkItem, message: &Arc<Taken>) {
        let sequence = item.sequence;
        if let Some(Work::Cancel(sequence)) = item.work {
            match self.cancels.remove(&sequence) {
                Some(cancel) => cancel.abort(),
                None => self.ready.forget(sequence),
            }
            return;
        }
        let mut work = stream.begin(item, Arc::clone(message)).boxed();
        if let Some(done) = (&mut work).now_or_never() {
            return self.ready.push(done);
        }
        let (handle, registration) = AbortHandle::new_pair();
        self.works.push(Abortable::new(work, registration));
        self.cancels.insert(sequence, handle);
    }

    /// Takes note of what is done: what is done by now goes in one message.
    async fn answered(&mut self, first: Result<WaitingAnswer, Aborted>) {
        let Self {
            works,
            cancels,
            ready,
        } = self;
        let more = std::iter::from_fn(|| works.next().now_or_never().flatten());
        let mut taken = 0;
        for done in std::iter::once(first).chain(more).take(AT_ONCE) {
            taken += 1;
            if let Ok(done) = done {
                cancels.remove(&done.answer.sequence);
                ready.push(done);
            }
        }
        if taken == AT_ONCE {
            // A search may take 0.2 ms of this thread: other tasks have their turn.
            tokio::task::yield_now().await;
        }
    }
}

/// The memory of an item and its answer.
struct Memory {
    /// The answer.
    own: Taken,
    /// The message that brought the item, and others with it.
    _message: Arc<Taken>,
}

/// An answer that waits to be sent.
struct WaitingAnswer {
    answer: pb::WorkOutcome,
    is_large: bool,
    _memory: Memory,
}

/// Answers in one message. Their memory counts until the transport takes the message.
pub(crate) struct WorkMessage(Vec<WaitingAnswer>);

impl WorkMessage {
    pub(super) fn into_response(self) -> pb::WorkResponse {
        pb::WorkResponse {
            outcomes: self.0.into_iter().map(|done| done.answer).collect(),
        }
    }
}

/// Answers that wait to be sent.
#[derive(Default)]
struct WaitingAnswers {
    small: VecDeque<WaitingAnswer>,
    large: VecDeque<WaitingAnswer>,
}

impl WaitingAnswers {
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.small.len() + self.large.len()
    }

    /// Drops an answer that takes much memory.
    fn forget(&mut self, sequence: u64) {
        self.large.retain(|done| done.answer.sequence != sequence);
    }

    /// Sends what the router has room for.
    fn send_what_fits(&mut self, answers: &mpsc::Sender<Result<WorkMessage, Status>>) {
        while !self.is_empty()
            && let Ok(place) = answers.try_reserve()
        {
            place.send(Ok(self.message()));
        }
    }

    fn push(&mut self, done: WaitingAnswer) {
        let answers = if done.is_large {
            &mut self.large
        } else {
            &mut self.small
        };
        answers.push_back(done);
    }

    /// The next message: all small answers, up to [`LARGE_ANSWER_BYTES`] bytes, or a large one.
    fn message(&mut self) -> WorkMessage {
        let mut bytes = 0;
        let mut answers = Vec::new();
        while bytes < LARGE_ANSWER_BYTES
            && let Some(done) = self.small.pop_front()
        {
            bytes += done.answer.encoded_len();
            answers.push(done);
        }
        if answers.is_empty() {
            answers.extend(self.large.pop_front());
        }
        WorkMessage(answers)
    }
}

fn response(sequence: u64, outcome: Result<Outcome, Status>) -> pb::WorkOutcome {
    let status = |status| Outcome::Status(status_into_bytes(&status));
    pb::WorkOutcome {
        sequence,
        outcome: Some(outcome.unwrap_or_else(status)),
    }
}

/// Answers an item, and holds the memory for both until the answer has gone.
async fn answer(
    engine: Arc<Engine>,
    watch: Arc<WorkWatch>,
    item: pb::WorkItem,
    mut memory: Memory,
) -> WaitingAnswer {
    let sequence = item.sequence;
    let deadline = Instant::now().checked_add(Duration::from_micros(item.timeout_micros));
    let kind = item.work.as_ref().and_then(WorkKind::of);
    let watched = kind.map(|kind| watch.begin(kind));
    let mut answer = response(sequence, outcome(&engine, item.work, deadline).await);
    drop(watched);
    let bytes = answer.encoded_len();
    let fits = memory.own.try_grow(bytes);
    if !fits {
        answer = response(sequence, Err(overloaded(NO_MEMORY)));
    }
    WaitingAnswer {
        answer,
        is_large: fits && bytes >= LARGE_ANSWER_BYTES,
        _memory: memory,
    }
}

async fn outcome(
    engine: &Arc<Engine>,
    work: Option<Work>,
    deadline: Option<Instant>,
) -> Result<Outcome, Status> {
    match work {
        Some(Work::Change(change)) => {
            let beyond_clock = change.beyond_clock;
            let sent = if change.repairs {
                Sent::ToRepair
            } else {
                Sent::ByRouter
            };
            let (target, change) = decode::change(*change)?;
            let documents = change.documents.fingerprints.len();
            let outcome = engine
                .change(target, change, sent, beyond_clock, deadline)
                .await?;
            Ok(Outcome::Changed(changed(documents, &outcome)))
        }
        Some(Work::FindAll(find)) => {
            let query = decode::near_query(*find)?;
            Ok(Outcome::Matches(engine.find(query, deadline).await?))
        }
        Some(Work::Confirm(confirm)) => {
            let (store, epochs, read) = decode::confirm(&confirm)?;
            let refused = engine.unconfirmed(store, &epochs, read);
            let refused_shards = shards_from(refused);
            Ok(Outcome::Confirmed(pb::Confirmed { refused_shards }))
        }
        Some(Work::Cancel(_)) | None => Err(Violations::of("work", "is not set")),
    }
}

/// The outcome of a change of `documents` documents, as columns.
fn changed(documents: usize, outcome: &engine::ChangeOutcome) -> pb::Changed {
    let mut newer: BTreeMap<u32, Version> = BTreeMap::new();
    for &(place, version) in &outcome.newer {
        let highest = newer.entry(place).or_default();
        *highest = version.max(*highest);
    }
    pb::Changed {
        documents: bits_from(documents, &outcome.changed),
        newer_documents: newer.keys().copied().collect(),
        newer_versions: newer.values().map(|version| version.0).collect(),
        refused_shards: shards_from(outcome.refused),
    }
}

#[cfg(test)]
mod tests;
