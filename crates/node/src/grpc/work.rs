//! A stream of work from a router: many requests under way at once, answered as they are done.
//!
//! # Invariants
//! - WK1: a request that was read is answered once, with its sequence, unless it is cancelled or the router goes. A
//!   refusal is an answer, and does not end the stream.
//! - WK2: at most [`UNDER_WAY`] requests of a stream are under way, and none is read while an answer waits for the
//!   router to take it.
//! - WK3: what is cancelled is not answered, and given up, as all is once the router goes: a search ends, a change
//!   that was begun goes on.
//! - WK4: a node that stops answers what is under way, refuses what it reads meanwhile, and then ends the stream.
//! - WK5: a request and its answer count until the answer has gone. Where there is no room for one of them, that is
//!   the answer.
//! - WK6: a small answer is sent before all large ones that are not on their way yet.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_request::Work;
use simshard_proto::shard::v1::work_response::Outcome;
use simshard_proto::transport::{Admitted, NO_MEMORY, Taken, overloaded};
use simshard_proto::{Violations, bits_from, status_into_bytes};
use simshard_topology::Version;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::decode;
use crate::engine::{self, Engine};
use crate::error::NodeError;

/// Requests of one stream under way at once. The next is read when one of them is answered, so a router that does
/// not read stops its own writing. Enough that a word to cancel one of them seldom waits; the bytes of all of them
/// are bounded by the budget.
const UNDER_WAY: usize = 512;

/// An answer of so many bytes is large: small ones are sent first.
const LARGE: usize = 256 << 10;

/// One stream; its other end is the lane of a router.
pub(super) struct Lane {
    pub(super) engine: Arc<Engine>,
    pub(super) answers: mpsc::Sender<Result<pb::WorkResponse, Status>>,
    /// The memory of what has arrived.
    pub(super) admitted: Admitted,
    /// Once it is cancelled, nothing more is begun.
    pub(super) stopping: CancellationToken,
}

impl Lane {
    /// Does what the requests ask for, until they or the interest in the answers end, or the node is to stop.
    pub(super) async fn run(
        self,
        mut requests: impl Stream<Item = Result<pb::WorkRequest, Status>> + Unpin,
    ) {
        let mut under_way = FuturesUnordered::new();
        let mut cancels: HashMap<u64, AbortHandle> = HashMap::new();
        let mut ready = Ready::default();
        let mut is_open = true;
        while is_open || !under_way.is_empty() || !ready.is_empty() {
            tokio::select! {
                Some((sequence, done)) = under_way.next() => {
                    cancels.remove(&sequence);
                    if let Ok(done) = done {
                        ready.push(done);
                    }
                }
                Ok(place) = self.answers.reserve(), if !ready.is_empty() => {
                    if let Some(done) = ready.pop() {
                        place.send(Ok(done.answer));
                    }
                }
                request = requests.next(), if is_open && ready.is_empty() && under_way.len() < UNDER_WAY => {
                    let Some(Ok(request)) = request else {
                        is_open = false;
                        continue;
                    };
                    if let Some(Work::Cancel(sequence)) = request.work {
                        if let Some(handle) = cancels.remove(&sequence) {
                            handle.abort();
                        }
                        continue;
                    }
                    let sequence = request.sequence;
                    let (handle, registration) = AbortHandle::new_pair();
                    let work = self.begin(request);
                    let work = Abortable::new(work, registration);
                    cancels.insert(sequence, handle);
                    under_way.push(async move { (sequence, work.await) });
                }
                // Others are told so at once, for as long as some are under way.
                () = self.stopping.cancelled(), if under_way.is_empty() && ready.is_empty() => return,
                () = self.answers.closed() => return,
            }
        }
    }

    /// Begins a request, or says why not. What it holds counts until its answer has gone.
    fn begin(&self, request: pb::WorkRequest) -> impl Future<Output = Done> + Send + use<> {
        let engine = Arc::clone(&self.engine);
        let memory = self.admitted.split();
        let refused = if self.stopping.is_cancelled() {
            Some(NodeError::Stopping.into())
        } else if !memory.fits() {
            Some(overloaded(NO_MEMORY))
        } else {
            None
        };
        async move {
            match refused {
                None => answer(engine, request, memory).await,
                Some(status) => Done {
                    answer: response(request.sequence, Err(status)),
                    is_large: false,
                    _memory: memory,
                },
            }
        }
    }
}

/// An answer that waits to be sent.
struct Done {
    answer: pb::WorkResponse,
    is_large: bool,
    /// What it and its request take.
    _memory: Taken,
}

/// Answers that wait to be sent.
#[derive(Default)]
struct Ready {
    small: VecDeque<Done>,
    large: VecDeque<Done>,
}

impl Ready {
    fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    fn push(&mut self, done: Done) {
        match done.is_large {
            true => self.large.push_back(done),
            false => self.small.push_back(done),
        }
    }

    /// The next to send.
    fn pop(&mut self) -> Option<Done> {
        self.small.pop_front().or_else(|| self.large.pop_front())
    }
}

fn response(sequence: u64, outcome: Result<Outcome, Status>) -> pb::WorkResponse {
    let status = |status| Outcome::Status(status_into_bytes(&status));
    pb::WorkResponse {
        sequence,
        outcome: Some(outcome.unwrap_or_else(status)),
    }
}

/// Answers a request, and holds the memory for both until the answer has gone.
async fn answer(engine: Arc<Engine>, request: pb::WorkRequest, mut memory: Taken) -> Done {
    let sequence = request.sequence;
    let deadline = Instant::now().checked_add(Duration::from_micros(request.timeout_micros));
    let mut answer = response(sequence, outcome(&engine, request.work, deadline).await);
    let bytes = answer.encoded_len();
    let fits = memory.try_grow(bytes);
    if !fits {
        answer = response(sequence, Err(overloaded(NO_MEMORY)));
    }
    Done {
        answer,
        is_large: fits && bytes >= LARGE,
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
            let (target, change) = decode::change(change)?;
            let documents = change.documents.fingerprints.len();
            let outcome = engine
                .change(target, change, beyond_clock, deadline)
                .await?;
            Ok(Outcome::Changed(changed(documents, &outcome)))
        }
        Some(Work::FindAll(find)) => {
            let query = decode::near_query(find)?;
            Ok(Outcome::Matches(engine.find(query, deadline).await?))
        }
        Some(Work::Cancel(_)) | None => Err(Violations::of("work", "is not set")),
    }
}

/// What a change of so many documents did, as columns.
fn changed(documents: usize, outcome: &engine::Outcome) -> pb::Changed {
    let mut newer: BTreeMap<u32, Version> = BTreeMap::new();
    for &(place, version) in &outcome.newer {
        let highest = newer.entry(place).or_default();
        *highest = version.max(*highest);
    }
    pb::Changed {
        documents: bits_from(documents, &outcome.changed),
        newer_documents: newer.keys().copied().collect(),
        newer_versions: newer.values().map(|version| version.0).collect(),
    }
}

#[cfg(test)]
mod tests;
