//! Lanes over channels, with a node that the test plays; and connections to a peer that never answers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::join_all;
use simshard_proto::endpoint;
use simshard_proto::{Reason, status_into_bytes};
use simshard_topology::NodeId;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};

use super::*;

/// A longer wait means that the event will not come.
const LONG: Duration = Duration::from_secs(20);

/// The other end of a lane.
struct Node {
    messages: Pin<Box<dyn Stream<Item = pb::WorkRequest> + Send>>,
    /// Items of the last message that were not looked at yet.
    items: VecDeque<pb::WorkItem>,
    answers: mpsc::Sender<Result<pb::WorkResponse, Status>>,
}

impl Node {
    /// A request, and the time that it has.
    async fn request(&mut self) -> (u64, Work, Duration) {
        while self.items.is_empty() {
            let message = timeout(LONG, self.messages.next()).await;
            self.items
                .extend(message.expect("a request").unwrap().items);
        }
        let request = self.items.pop_front().unwrap();
        let time = Duration::from_micros(request.timeout_micros);
        (request.sequence, request.work.unwrap(), time)
    }

    /// Whether nothing more was sent.
    async fn has_all(&mut self) -> bool {
        for _ in 0..10 {
            if let Some(Some(_)) = self.messages.next().now_or_never() {
                return false;
            }
            tokio::task::yield_now().await;
        }
        self.items.is_empty()
    }

    async fn answer(&self, sequence: u64, outcome: Outcome) {
        let outcome = Some(outcome);
        self.send(pb::WorkOutcome { sequence, outcome }).await;
    }

    async fn send(&self, outcome: pb::WorkOutcome) {
        let outcomes = vec![outcome];
        let answer = pb::WorkResponse { outcomes };
        self.answers.send(Ok(answer)).await.unwrap();
    }
}

fn lane(budget: &Budget) -> (Arc<Lane>, Node) {
    let (answers, receiver) = mpsc::channel(1);
    let (lane, queue) = Lane::new();
    let answered = ReceiverStream::new(receiver);
    let waiting = Arc::clone(&lane.waiting);
    tokio::spawn(receive(answered, waiting, budget.clone(), life()));
    let node = Node {
        messages: Box::pin(messages(queue)),
        items: VecDeque::new(),
        answers,
    };
    (Arc::new(lane), node)
}

fn life() -> Arc<Life> {
    Arc::new(Life::new(NodeId::new("n1").unwrap()))
}

fn plenty() -> Budget {
    Budget::new(1 << 20)
}

/// Work that can be told from other work.
fn work(number: u32) -> Work {
    let max_distance = number;
    Work::from(pb::FindAll {
        max_distance,
        ..Default::default()
    })
}

/// The answer to it.
fn done(number: u32) -> Outcome {
    Outcome::Changed(pb::Changed {
        newer_documents: vec![number],
        ..Default::default()
    })
}

fn refused() -> Outcome {
    Outcome::Status(status_into_bytes(&Reason::NotOwner.status("no", [])))
}

fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(60))
}

type AnswerTask = tokio::task::JoinHandle<Result<Answer, CallError>>;

/// Has the node do work.
fn ask(lane: &Arc<Lane>, number: u32) -> AnswerTask {
    let lane = Arc::clone(lane);
    tokio::spawn(async move { lane.work(soon(), work(number)).await })
}

/// The result.
async fn answer(asked: AnswerTask) -> Result<Answer, CallError> {
    let answer = timeout(LONG, asked).await;
    answer.expect("an answer").unwrap()
}

fn is_unreachable<T>(answer: &Result<T, CallError>) -> bool {
    matches!(answer, Err(CallError::Unreachable))
}

/// LN1.
#[tokio::test]
async fn each_request_gets_the_one_answer_that_has_its_sequence() {
    let (lane, mut node) = lane(&plenty());
    let asked = [ask(&lane, 0), ask(&lane, 1), ask(&lane, 2)];
    let mut sequences = [0; 3];
    for _ in &asked {
        let (sequence, work, time) = node.request().await;
        let Work::FindAll(find) = work else {
            panic!("{work:?}");
        };
        assert!(time > Duration::from_secs(50), "{time:?}");
        sequences[find.max_distance as usize] = sequence;
    }
    node.answer(u64::MAX, done(9)).await;
    node.answer(sequences[2], done(2)).await;
    node.answer(sequences[2], done(9)).await;
    node.answer(sequences[1], refused()).await;
    node.answer(sequences[0], done(0)).await;
    let [first, second, third] = asked;
    assert_eq!(answer(first).await.unwrap().outcome, done(0));
    assert_eq!(answer(third).await.unwrap().outcome, done(2));
    let Err(CallError::Refused(status)) = answer(second).await else {
        panic!("the second one was refused");
    };
    assert_eq!(Reason::of(&status), Some(Reason::NotOwner));
    assert!(node.has_all().await, "nothing to cancel");
}

/// FI1: more requests wait for a node that never answers than its lane has room for.
#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_answer_delays_no_request_to_another() {
    let budget = plenty();
    let ((silent, _frozen), (lane, mut node)) = (lane(&budget), lane(&budget));
    let waiting: Vec<AnswerTask> = (0..QUEUE + 10).map(|_| ask(&silent, 0)).collect();
    while silent.items.capacity() > 0 {
        tokio::task::yield_now().await;
    }
    let start = Instant::now();
    for number in 0..100 {
        let asked = ask(&lane, number);
        let (sequence, ..) = node.request().await;
        node.answer(sequence, done(number)).await;
        assert_eq!(answer(asked).await.unwrap().outcome, done(number));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(waiting.iter().all(|asked| !asked.is_finished()));
}

/// LN2.
#[tokio::test]
async fn the_end_of_a_lane_is_told_to_those_who_wait_and_to_those_who_come() {
    for end in [None, Some(Status::unavailable("gone"))] {
        let (lane, mut node) = lane(&plenty());
        let waiting = ask(&lane, 0);
        node.request().await;
        assert!(!lane.waiting.is_closed());
        if let Some(status) = end {
            node.answers.send(Err(status)).await.unwrap();
        }
        node.answers = mpsc::channel(1).0;
        assert!(is_unreachable(&answer(waiting).await));
        assert!(lane.waiting.is_closed());
        assert!(is_unreachable(&lane.work(soon(), work(1)).await));
        assert!(node.has_all().await, "no item is sent any more");
    }
}

/// LN3.
#[tokio::test]
async fn a_request_without_a_waiter_is_cancelled_and_forgotten() {
    let budget = plenty();
    let (lane, mut node) = lane(&budget);
    let asked = ask(&lane, 0);
    let (sequence, ..) = node.request().await;
    asked.abort();
    let (_, cancel, _) = node.request().await;
    assert_eq!(cancel, Work::Cancel(sequence));
    assert_eq!(lane.waiting.lock().as_ref().unwrap().len(), 0);

    // It was on its way already.
    node.answer(sequence, done(0)).await;
    let other = ask(&lane, 1);
    let (sequence, ..) = node.request().await;
    node.answer(sequence, done(1)).await;
    assert_eq!(answer(other).await.unwrap().outcome, done(1));
    assert!(budget.take(1 << 20).fits(), "nothing is kept");
}

/// LN3.
#[tokio::test]
async fn what_was_given_up_is_not_sent_or_cancelled_however_much_waits() {
    let (lane, mut node) = lane(&plenty());
    let sent = ask(&lane, 0);
    let (sequence, ..) = node.request().await;
    let queued: Vec<AnswerTask> = (0..QUEUE).map(|_| ask(&lane, 1)).collect();
    while lane.items.capacity() > 0 {
        tokio::task::yield_now().await;
    }
    for asked in std::iter::once(sent).chain(queued) {
        asked.abort();
        assert!(asked.await.unwrap_err().is_cancelled());
    }
    assert_eq!(lane.waiting.lock().as_ref().unwrap().len(), 0);
    let last = ask(&lane, 2);
    let mut cancelled = Vec::new();
    loop {
        match node.request().await {
            (_, Work::Cancel(sequence), _) => cancelled.push(sequence),
            (_, asked_for, _) => {
                assert_eq!(asked_for, work(2));
                break;
            }
        }
    }
    assert!(cancelled.contains(&sequence));
    assert!(!last.is_finished());
}

/// LN4.
#[tokio::test]
async fn an_answer_that_does_not_fit_fails_alone() {
    let (sequence, outcome) = (1, Some(done(1)));
    let bytes = pb::WorkOutcome { sequence, outcome }.encoded_len();
    let budget = Budget::new(bytes);
    let (lane, mut node) = lane(&budget);
    let asked = [ask(&lane, 1), ask(&lane, 1)];
    for _ in &asked {
        node.request().await;
    }
    node.answer(0, refused()).await;
    node.answer(1, done(1)).await;
    let [first, second] = asked;
    assert!(matches!(answer(first).await, Err(CallError::NoMemory)));
    let held = answer(second).await.unwrap();
    assert!(budget.try_take(1).is_none(), "it counts while it is held");
    drop(held);
    assert!(budget.try_take(bytes).is_some());
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_nonsense() {
    let (lane, mut node) = lane(&plenty());
    let asked = ask(&lane, 0);
    let (sequence, ..) = node.request().await;
    let outcome = None;
    node.send(pb::WorkOutcome { sequence, outcome }).await;
    assert!(matches!(answer(asked).await, Err(CallError::Refused(_))));
}

/// LN5.
#[tokio::test]
async fn those_who_wait_while_a_lane_cannot_be_opened_share_the_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = endpoint::limited(endpoint).connect_lazy();
    let slot = Slot::new(Client::new(channel), plenty(), life());

    // A peer that takes connections, reads, and does not answer; then it is gone.
    let mute = async {
        for connections in 1.. {
            let (mut connection, _) = listener.accept().await.unwrap();
            assert_eq!(connections, 1, "one attempt is enough");
            connection.read_u8().await.unwrap();
        }
    };
    let lanes = join_all((0..100).map(|_| slot.lane()));
    let lanes = tokio::select! {
        lanes = lanes => lanes,
        () = mute => unreachable!("it goes on"),
    };
    assert!(lanes.iter().all(is_unreachable), "{lanes:?}");

    // A later caller tries again.
    let again = tokio::join!(slot.lane(), async {
        drop(listener.accept().await.unwrap());
    });
    assert!(is_unreachable(&again.0));
}

/// A node that opens a lane for each permit, and counts the requests for one.
#[derive(Clone, Default)]
struct Opener {
    requests: Arc<AtomicUsize>,
    asked: Arc<Notify>,
    permits: Arc<Notify>,
}

impl NamedService for Opener {
    const NAME: &str = "simshard.shard.v1.ShardService";
}

impl Service<http::Request<Body>> for Opener {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.asked.notify_one();
        let permits = Arc::clone(&self.permits);
        Box::pin(async move {
            permits.notified().await;
            Ok(http::Response::new(Body::empty()))
        })
    }
}

/// LN5.
#[tokio::test]
async fn who_gives_up_opening_a_lane_leaves_it_to_the_others() {
    let node = Opener::default();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let server = Server::builder().add_service(node.clone());
    tokio::spawn(server.serve_with_incoming(incoming));
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = endpoint::limited(endpoint).connect_lazy();
    let slot = Arc::new(Slot::new(Client::new(channel), plenty(), life()));
    let ask = || {
        let slot = Arc::clone(&slot);
        tokio::spawn(async move { slot.lane().await })
    };
    let first = ask();
    timeout(LONG, node.asked.notified()).await.unwrap();
    let second = ask();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    node.permits.notify_one();
    let lane = timeout(LONG, second).await.expect("a lane");
    assert!(lane.unwrap().is_ok());
    assert_eq!(node.requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn items_that_wait_at_one_time_go_as_one_message_of_bounded_size() {
    let item = |sequence: u64, queries: usize| pb::WorkItem {
        sequence,
        work: Some(Work::from(pb::FindAll {
            fingerprints: vec![1; queries],
            ..Default::default()
        })),
        ..Default::default()
    };
    let (lane, queue) = Lane::new();
    let large = MESSAGE / 8;
    let queries = [1, 1, 1, large, 1, large / 2, large / 3];
    for (sequence, queries) in (0..).zip(queries) {
        let _answer = lane.waiting.add(sequence).unwrap();
        lane.items.send(item(sequence, queries)).await.unwrap();
    }
    drop(lane);
    let messages: Vec<_> = messages(queue).collect().await;
    let sequences = messages.iter().map(|message| {
        let items = message.items.iter();
        items.map(|item| item.sequence).collect::<Vec<u64>>()
    });
    assert!(sequences.eq([vec![0, 1, 2], vec![3], vec![4, 5, 6]]));
}

/// LN3: an item that did not fit in the message before.
#[tokio::test]
async fn an_item_that_waits_for_the_next_message_is_not_sent_once_it_was_given_up() {
    let (lane, queue) = Lane::new();
    let mut messages = Box::pin(messages(queue));
    let mut callers = Vec::new();
    for sequence in 0..2 {
        callers.push(lane.waiting.add(sequence).unwrap());
        let item = pb::WorkItem {
            sequence,
            work: Some(Work::from(pb::FindAll {
                fingerprints: vec![1; MESSAGE / 10],
                ..Default::default()
            })),
            ..Default::default()
        };
        lane.items.send(item).await.unwrap();
    }
    let first = messages.next().await.unwrap();
    assert_eq!(first.items.len(), 1);
    drop(CancelOnDrop {
        lane: &lane,
        sequence: 1,
    });
    drop(lane);
    let rest: Vec<pb::WorkRequest> = messages.collect().await;
    let is_cancel = |item: &pb::WorkItem| item.work == Some(Work::Cancel(1));
    assert!(
        rest.iter()
            .flat_map(|message| &message.items)
            .all(is_cancel)
    );
}
