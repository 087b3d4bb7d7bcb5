//! Connections to the nodes, and one call to one of them.

mod access;
mod lane;
mod life;

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::FutureExt;
use simshard_cluster::{ClusterLayout, Node};
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::{MAX_MESSAGE_BYTES, Reason};
use simshard_topology::{NodeId, ShardSet};
use simshard_transport::{WorkKind, WorkWatch};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use tracing::{debug, warn};

use crate::deadline::Deadline;
use crate::work_watch::watch;
pub(crate) use access::Access;
pub(crate) use lane::Answer;
use lane::Slot;
use life::{Life, Lives};

/// Connections to each node for work on many documents or queries.
const LARGE_WORK_CONNECTIONS: usize = 2;

/// Work on at least this number of documents or queries is large. Smaller work has connections of its own, on which it
/// does not wait behind the megabytes of batches.
const LARGE_WORK_ITEMS: usize = 1024;

/// A node's answer is bounded by it, plus the columns that count.
const MAX_ANSWER_BYTES: usize = 2 * MAX_MESSAGE_BYTES;

/// Delay before the first retry of a call; each later one is twice as long.
const FIRST_RETRY: Duration = Duration::from_millis(25);

/// Most retries of a call.
const RETRIES: usize = 3;

/// Why a node did not do its part.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// No connection, or it broke.
    Unreachable,
    /// No answer by the deadline.
    Late,
    /// No sign of life, where another node may answer.
    Silent,
    /// The node does not hold the corpus.
    NotLoaded,
    /// The node has other records of the shards.
    WrongEpoch,
    /// The node has no tables of these shards.
    Cold(ShardSet),
    /// The node answered, but there is no memory left for the answer.
    NoMemory,
    /// The node said no.
    Refused(Box<Status>),
}

impl CallError {
    /// For an answer to another question.
    pub(crate) fn nonsense() -> Self {
        Self::Refused(Box::new(Status::internal(
            "that is no answer to this request",
        )))
    }
}

pub(crate) type Client = ShardServiceClient<Channel>;

/// The connections to every node of a layout.
#[derive(Debug)]
pub(crate) struct Nodes {
    access: Access,
    /// Whether another node may do the work of one that is lost.
    is_replicated: bool,
    lives: Arc<Lives>,
    by_id: HashMap<NodeId, Arc<Connections>>,
}

#[derive(Debug)]
struct Connections {
    address: String,
    /// For searches with few queries.
    queries: Slot,
    /// For changes of few documents: searches do not wait for their syncs.
    documents: Slot,
    large: Vec<Slot>,
    next: AtomicUsize,
    life: Arc<Life>,
    watch: WorkWatch,
}

impl Nodes {
    /// Connects when first needed, and again after a connection broke.
    pub(crate) fn new(layout: &ClusterLayout, access: Access) -> Result<Self, Status> {
        let mut nodes = Self {
            access,
            is_replicated: layout.map().is_replicated(),
            lives: Arc::default(),
            by_id: HashMap::new(),
        };
        for node in layout.nodes() {
            let connections = Arc::new(Connections::new(node, &nodes)?);
            nodes.by_id.insert(node.id.clone(), connections);
        }
        Ok(nodes)
    }

    /// The connections to the nodes of another layout. Nodes whose address is the same keep theirs. A node whose
    /// address cannot be parsed is unreachable.
    pub(crate) fn of_layout(&self, layout: &ClusterLayout) -> Self {
        let connections = |node: &Node| match self.by_id.get(&node.id) {
            Some(known) if known.address == node.address => Some(Arc::clone(known)),
            Some(_) | None => match Connections::new(node, self) {
                Ok(new) => Some(Arc::new(new)),
                Err(error) => {
                    warn!(node = %node.id, address = node.address, %error, "an address of the layout cannot be used");
                    None
                }
            },
        };
        let nodes = layout.nodes().iter();
        let by_id = nodes.filter_map(|node| Some((node.id.clone(), connections(node)?)));
        Self {
            access: self.access.clone(),
            by_id: by_id.collect(),
            lives: Arc::clone(&self.lives),
            is_replicated: layout.map().is_replicated(),
        }
    }

    /// Makes one call to one node; again where the connection failed, as every
    /// call may be repeated.
    pub(crate) async fn call<M, A, F>(
        &self,
        node: &NodeId,
        deadline: Deadline,
        message: &M,
        method: impl Fn(Client, M) -> F,
    ) -> Result<A, CallError>
    where
        M: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let connections = self.connections(node)?;
        let attempt = || async {
            let answer = method(connections.queries.client(), message.clone()).await;
            answer.map(Response::into_inner).map_err(CallError::from)
        };
        let answer = connections.again(node, attempt);
        let answer = tokio::time::timeout_at(deadline.instant(), answer).await;
        answer.unwrap_or(Err(CallError::Late))
    }

    /// Has one node do work; again where the connection failed, as all work may be repeated, unless another node may do
    /// it as well. The deadline goes to the node with the work. This future has no timeout of its own: run it in [`call_all`].
    pub(crate) async fn work<F>(
        &self,
        node: &NodeId,
        deadline: Deadline,
        kind: WorkKind,
        work: impl Fn() -> F,
    ) -> Result<Answer, CallError>
    where
        F: Future<Output = Result<Work, CallError>>,
    {
        let connections = self.connections(node)?;
        let _watched = connections.watch.begin(kind);
        let attempt = || async {
            let lane = connections.slot(kind).lane().await?;
            lane.work(deadline, work().await?).await
        };
        if self.is_replicated {
            let answer = attempt().await;
            connections.note(&answer);
            answer
        } else {
            connections.again(node, attempt).await
        }
    }

    /// The nodes that gave no sign of life a moment ago.
    pub(crate) fn silent(&self) -> BTreeSet<NodeId> {
        let silent = self.by_id.iter().filter(|(_, one)| one.life.is_silent());
        silent.map(|(node, _)| node.clone()).collect()
    }

    /// Whether a node gave no sign of life a moment ago.
    pub(crate) fn is_silent(&self, node: &NodeId) -> bool {
        let connections = self.by_id.get(node);
        connections.is_some_and(|one| one.life.is_silent())
    }

    /// Takes note that a node gives no sign of life. A later one from it takes that back.
    pub(crate) fn note_silent(&self, node: &NodeId) {
        if let Some(connections) = self.by_id.get(node) {
            connections.life.note_silent();
        }
    }

    /// Takes note that a node says that it cannot read shards.
    pub(crate) fn note_damage(&self, node: &NodeId, shards: ShardSet, says: &str) {
        if let Some(connections) = self.by_id.get(node) {
            connections.life.note_damage(shards, says);
        }
    }

    fn connections(&self, node: &NodeId) -> Result<&Connections, CallError> {
        let connections = self.by_id.get(node);
        connections.map(|one| &**one).ok_or(CallError::Unreachable)
    }
}

impl Connections {
    fn new(node: &Node, among: &Nodes) -> Result<Self, Status> {
        let Access {
            dialer,
            budget,
            observed,
        } = &among.access;
        let (endpoint, life) = (dialer.endpoint(&node.address)?, among.lives.of(&node.id));
        let slot = || {
            let client = ShardServiceClient::new(dialer.connect(&endpoint))
                .max_decoding_message_size(MAX_ANSWER_BYTES)
                .max_encoding_message_size(usize::MAX);
            Slot::new(client, budget.clone(), Arc::clone(&life))
        };
        Ok(Self {
            address: node.address.clone(),
            queries: slot(),
            documents: slot(),
            large: (0..LARGE_WORK_CONNECTIONS).map(|_| slot()).collect(),
            next: AtomicUsize::new(0),
            life,
            watch: watch(observed, &node.id),
        })
    }

    /// Does `attempt`; again where the connection failed.
    async fn again<A, F>(&self, node: &NodeId, attempt: impl Fn() -> F) -> Result<A, CallError>
    where
        F: Future<Output = Result<A, CallError>>,
    {
        let mut answer = attempt().await;
        if matches!(answer, Err(CallError::Unreachable)) {
            // In a box, so that usual calls do not carry its state about.
            answer = Box::pin(self.retry(node, attempt)).await;
        }
        self.note(&answer);
        answer
    }

    /// Repeats `attempt` after growing delays: [`RETRIES`] times at most, never if the node was unreachable within
    /// the last second.
    async fn retry<A, F>(&self, node: &NodeId, attempt: impl Fn() -> F) -> Result<A, CallError>
    where
        F: Future<Output = Result<A, CallError>>,
    {
        let lately = self.life.was_lost_lately();
        let backoff = ExponentialBuilder::default()
            .with_min_delay(FIRST_RETRY)
            .with_max_times(if lately { 0 } else { RETRIES })
            .with_jitter();
        for delay in backoff.build() {
            debug!(%node, ?delay, "node is unreachable, trying again");
            tokio::time::sleep(delay).await;
            let answer = attempt().await;
            if !matches!(answer, Err(CallError::Unreachable)) {
                return answer;
            }
        }
        Err(CallError::Unreachable)
    }

    /// The connection for this work.
    fn slot(&self, kind: WorkKind) -> &Slot {
        match kind {
            WorkKind::Search(..LARGE_WORK_ITEMS) | WorkKind::Confirm(_) => &self.queries,
            WorkKind::Change(..LARGE_WORK_ITEMS) => &self.documents,
            WorkKind::Search(_) | WorkKind::Change(_) => {
                let next = self.next.fetch_add(1, Ordering::Relaxed);
                &self.large[next % self.large.len()]
            }
        }
    }

    /// Takes note of what an answer says about the node.
    fn note<A>(&self, answer: &Result<A, CallError>) {
        match answer {
            Err(CallError::Unreachable) => drop(self.life.note_lost()),
            // It says nothing about the connection.
            Err(CallError::Late | CallError::Silent) => {}
            Ok(_)
            | Err(
                CallError::NotLoaded
                | CallError::NoMemory
                | CallError::WrongEpoch
                | CallError::Cold(_)
                | CallError::Refused(_),
            ) => drop(self.life.note_answer()),
        }
    }
}

/// Makes calls, `at_once` at a time, and hands `each` the place of every call with its answer, as it comes. At the
/// deadline, calls without an answer are [`CallError::Late`], and so are calls that were not begun by then. Once `each`
/// fails, so does this.
pub(crate) async fn call_all<A, E>(
    calls: impl IntoIterator<Item = impl Future<Output = Result<A, CallError>>>,
    at_once: usize,
    deadline: Deadline,
    mut each: impl FnMut(usize, Result<A, CallError>) -> Result<(), E>,
) -> Result<(), E> {
    let calls = calls.into_iter().map(Box::pin).enumerate();
    let mut calls: Vec<_> = calls.collect();
    let mut end = pin!(tokio::time::sleep_until(deadline.instant()));
    poll_fn(|context| {
        // A round has few calls: to poll all that are in flight costs less than to know which of them was woken.
        let mut next = 0;
        while next < calls.len().min(at_once) {
            let Poll::Ready(answer) = calls[next].1.poll_unpin(context) else {
                next += 1;
                continue;
            };
            let (place, _) = calls.remove(next);
            each(place, answer)?;
        }
        if !calls.is_empty() {
            ready!(end.as_mut().poll(context));
        }
        let mut late = calls.drain(..).map(|(place, _)| place);
        Poll::Ready(late.try_for_each(|place| each(place, Err(CallError::Late))))
    })
    .await
}

/// The shards that a node says it has no tables of, if that is why it refuses.
fn cold_shards(reason: Reason, status: &Status) -> Option<ShardSet> {
    if reason != Reason::Cold {
        return None;
    }
    Reason::metadata(status, "shards")?.parse().ok()
}

/// The codes that a broken connection gives rise to.
const CONNECTION_CODES: [Code; 5] = [
    Code::Unavailable,
    Code::Unknown,
    Code::Cancelled,
    Code::Internal,
    // The node's transport found that too much was asked of it.
    Code::ResourceExhausted,
];

impl From<Status> for CallError {
    /// A status that the node itself made carries a reason.
    fn from(status: Status) -> Self {
        if let Some(reason) = Reason::of(&status) {
            return if reason == Reason::Stopping {
                Self::Unreachable
            } else if reason == Reason::DeadlineTooShort {
                Self::Late
            } else if reason == Reason::CorpusNotLoaded {
                Self::NotLoaded
            } else if reason == Reason::WrongEpoch {
                Self::WrongEpoch
            } else if let Some(cold) = cold_shards(reason, &status) {
                Self::Cold(cold)
            } else {
                Self::Refused(Box::new(status))
            };
        }
        if status.code() == Code::DeadlineExceeded {
            return Self::Late;
        }
        if CONNECTION_CODES.contains(&status.code()) {
            Self::Unreachable
        } else {
            Self::Refused(Box::new(status))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{pending, ready};

    use futures_util::FutureExt;

    use super::*;

    async fn called(calls: Vec<Call>, at_once: usize) -> Vec<(usize, Option<u32>)> {
        let mut answers = Vec::new();
        let soon = Deadline::within(Duration::from_secs(60));
        let Ok(()) = call_all(calls, at_once, soon, |place, answer| {
            assert!(matches!(answer, Ok(_) | Err(CallError::Late)));
            answers.push((place, answer.ok()));
            Ok::<_, Infallible>(())
        })
        .await;
        answers
    }

    type Call = futures_util::future::BoxFuture<'static, Result<u32, CallError>>;

    #[tokio::test(start_paused = true)]
    async fn calls_without_an_answer_by_the_deadline_are_late_and_no_others() {
        let calls = || {
            vec![
                ready(Ok(7)).boxed(),
                pending().boxed(),
                ready(Ok(8)).boxed(),
            ]
        };
        let answers = [(0, Some(7)), (2, Some(8)), (1, None)];
        assert_eq!(called(calls(), 2).await, answers);
        let one_after_the_other = [(0, Some(7)), (1, None), (2, None)];
        assert_eq!(called(calls(), 1).await, one_after_the_other);
        assert_eq!(called(Vec::new(), usize::MAX).await, []);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_there_at_the_deadline_counts() {
        let soon = Deadline::within(Duration::from_secs(60));
        let just_then = async move {
            tokio::time::sleep_until(soon.instant()).await;
            Ok(7)
        };
        let mut answers = Vec::new();
        let Ok(()) = call_all([just_then], 1, soon, |_, answer| {
            answers.push(answer.ok());
            Ok::<_, Infallible>(())
        })
        .await;
        assert_eq!(answers, [Some(7)]);
    }

    #[tokio::test]
    async fn no_answer_is_taken_after_an_answer_that_is_refused() {
        let calls = [1, 2, 3].map(|number| ready(Ok::<u32, CallError>(number)));
        let mut seen = Vec::new();
        let soon = Deadline::within(Duration::from_secs(60));
        let called = call_all(calls, 1, soon, |_, answer| {
            let answer = answer.unwrap();
            seen.push(answer);
            if answer == 2 { Err(answer) } else { Ok(()) }
        });
        assert_eq!(called.await, Err(2));
        assert_eq!(seen, [1, 2]);
    }

    #[test]
    fn what_a_node_says_itself_is_told_from_what_the_transport_says() {
        let said = |reason: Reason| CallError::from(reason.status("no", []));
        assert!(matches!(said(Reason::Stopping), CallError::Unreachable));
        assert!(matches!(said(Reason::DeadlineTooShort), CallError::Late));
        assert!(matches!(
            said(Reason::CorpusNotLoaded),
            CallError::NotLoaded
        ));
        assert!(matches!(said(Reason::WrongEpoch), CallError::WrongEpoch));
        assert!(matches!(said(Reason::Internal), CallError::Refused(_)));
        let late = Status::deadline_exceeded("no");
        assert!(matches!(CallError::from(late), CallError::Late));
        for code in CONNECTION_CODES {
            let broken = CallError::from(Status::new(code, "broken"));
            assert!(matches!(broken, CallError::Unreachable), "{code}");
        }
        let other = CallError::from(Status::unimplemented("no"));
        assert!(matches!(other, CallError::Refused(_)));
    }
}
